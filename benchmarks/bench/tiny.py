"""Calls so small that they measure only overhead, timed in loops as in `timeit`."""

from __future__ import annotations

import timeit
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from .peers import OURS

SECONDS_A_LOOP = 0.02


@dataclass(frozen=True, slots=True)
class Tiny:
    """A small call, as each family writes it.

    Attributes
    ----------
    name : str
        The name for `--only`.
    title : str
        The title in reports.
    statements : mapping
        For each family, the equivalent statements, by the name that a report shows.
    rivals : tuple of str
        The statements with which the goal compares; all statements of the peers if empty.
    peer_goal : float
        The desired speedup over the best rival.
    """

    name: str
    title: str
    statements: Mapping[str, Mapping[str, str]]
    rivals: tuple[str, ...]
    peer_goal: float


def _tiny(
    name: str, title: str, goal: float, rivals: tuple[str, ...] = (), **statements: dict[str, str]
) -> Tiny:
    return Tiny(name, title, statements, rivals, goal)


ADD_AT = "out = d.copy(); np.add.at(out, i, u)"
PUT = "out = d.copy(); np.put_along_axis(out, i, u, 0)"

TINY: tuple[Tiny, ...] = (
    _tiny("tiny-gather", "gather of 5", 1.0, ("np.take",),
          gatherum={"gather": "gather(d, i)"},
          numpy={"d[i]": "d[i]", "np.take": "np.take(d, i)"},
          torch={"torch.index_select": "torch.index_select(d, 0, i)", "d[i]": "d[i]"}),
    _tiny("tiny-elements", "gather_elements 8 x 8", 2.0,
          gatherum={"gather_elements": "gather_elements(d, i)"},
          numpy={"np.take_along_axis": "np.take_along_axis(d, i, 0)"},
          torch={"torch.gather": "torch.gather(d, 0, i)"}),
    _tiny("tiny-scatter", "scatter_elements 8 x 8", 2.0,
          gatherum={"scatter_elements": "scatter_elements(d, i, u)"},
          numpy={"np.put_along_axis": PUT},
          torch={"torch.scatter": "torch.scatter(d, 0, i, u)"}),
    _tiny("tiny-add", "scatter_nd add of 100", 2.0,
          gatherum={"scatter_nd": "scatter_nd(d, i, u, reduction='add')"},
          numpy={"np.add.at": ADD_AT},
          torch={"torch.index_add": "torch.index_add(d, 0, i, u)",
                 "torch.scatter_add": "torch.scatter_add(d, 0, i, u)"}),
)  # fmt: skip


def operands(name: str) -> dict[str, Any]:
    """Return the small arrays of a case: `d`, `i` and, for scatters, `u`."""
    rng = np.random.default_rng(0)
    if name == "tiny-gather":
        return {"d": rng.random(100, dtype="f4"), "i": rng.integers(0, 100, 5)}
    if name == "tiny-add":
        d, u = rng.random(100, dtype="f4"), rng.random(100, dtype="f4")
        return {"d": d, "i": rng.integers(0, 100, (100, 1)), "u": u}
    square = {"d": rng.random((8, 8), dtype="f4"), "i": rng.integers(0, 8, (8, 8))}
    return square if name == "tiny-elements" else square | {"u": rng.random((8, 8), dtype="f4")}


class Loop:
    """A timed loop over one statement, long enough for the clock."""

    def __init__(
        self, statement: str, names: dict[str, Any], lasting: float = SECONDS_A_LOOP
    ) -> None:
        self.timer = timeit.Timer(statement, globals=names)
        # The first call plans, and a pause of the machine outlasts many calls. Neither may shorten
        # the loop, or a few cold calls count as warm calls (1.3 us was shown as 19).
        self.timer.timeit(1)
        count, spent = 1, 0.0
        while spent < lasting / 4:
            count *= 4
            spent = min(self.timer.repeat(3, count))
        self.count = max(1, round(count * lasting / spent))

    def seconds(self) -> float:
        """Time the loop, in seconds per call."""
        return self.timer.timeit(self.count) / self.count


def namespace(name: str, family: str) -> dict[str, Any]:
    """Return the names that the statements of a family use: its library and its arrays."""
    arrays = operands(name)
    if family == OURS:
        from .peers.with_gatherum import OPERATORS

        return {**arrays, **OPERATORS}
    if name == "tiny-add":  # the peers take plain row numbers
        arrays["i"] = arrays["i"][:, 0].copy()
    if family == "torch":
        torch: Any = import_module("torch")
        return {"torch": torch, **{key: torch.from_numpy(a) for key, a in arrays.items()}}
    return {"np": np, **arrays}


def loops(name: str, family: str) -> dict[str, Loop]:
    """Return a timed loop for each statement that a family has for a case."""
    case = next(case for case in TINY if case.name == name)
    names = namespace(name, family)
    return {key: Loop(text, names) for key, text in case.statements.get(family, {}).items()}
