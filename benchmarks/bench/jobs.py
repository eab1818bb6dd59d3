"""Common jobs with indices, as data: named operands that any peer can process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Array

# The reductions of the columns of a table. "range" is the maximum of v1 - the minimum of v2.
QUERIES = {
    "sum, mean": (("v1", "sum"), ("v3", "mean")),
    "sums": (("v1", "sum"), ("v2", "sum"), ("v3", "sum")),
}
ROUNDING = ("sum", "mean", *QUERIES)


@dataclass(frozen=True, slots=True)
class Job:
    """One job with its operands.

    Attributes
    ----------
    op : str
        The name of the job; a peer's module has a function for each supported job.
    operands : mapping
        The arrays by name.
    size : int
        The number of groups, or rows of the result.
    func : str
        The reduction of the values.
    row_bytes : int
        The bytes of the result for each group or row.
    """

    op: str
    operands: Mapping[str, Array]
    size: int
    func: str = "sum"
    row_bytes: int = 8

    def __getitem__(self, name: str) -> Array:
        """Return an operand."""
        return self.operands[name]

    @property
    def call(self) -> tuple[Any, ...]:
        """The data that another process needs to load the job."""
        return ("job", self.op, tuple(self.operands), self.size, self.func, self.row_bytes)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The operands."""
        return tuple(self.operands.values())

    @property
    def result_bytes(self) -> int:
        """The size of the result in bytes."""
        return self.size * self.row_bytes

    @property
    def may_round(self) -> bool:
        """Whether the bits of the result may depend on the order of the operations."""
        return self.func in ROUNDING

    @property
    def added(self) -> float:
        """The total of all added values, or 0 if it is not known."""
        values = self.operands.get("values")
        return 0.0 if values is None or self.func != "sum" else float(np.sum(values, dtype="f8"))

    def whole(self) -> Job:
        """Return the same job on small whole numbers, whose float sums are exact in any order."""
        return replace(self, operands={name: _rounded(a) for name, a in self.operands.items()})

    def save(self, folder: Path) -> None:
        """Write the operands to files that other processes can read."""
        for name, array in self.operands.items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def load(cls, folder: Path, op: str, names: tuple[str, ...], *more: Any) -> Job:
        """Read the operands into the memory of this process (possibly huge pages)."""
        return cls(op, {name: np.load(folder / f"{name}.npy") for name in names}, *more)


def _rounded(array: Array) -> Array:
    return np.rint(array * 8) if array.dtype.kind == "f" else array


class Answer:
    """A peer's result, arranged only for the comparison, outside of the timing."""

    def __init__(self, result: Any, arranged: Callable[[Any], object]) -> None:
        self.result, self.arranged = result, arranged

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the result in the form of the reference."""
        del copy
        return np.asarray(self.arranged(self.result), dtype)


def columns(*results: Any) -> Array:
    """Return one or several columns as float64, in which all results of groups are compared."""
    arranged = np.array([np.asarray(column) for column in results], "f8")
    return arranged[0] if len(results) == 1 else arranged


def at_positions(values: Array, positions: Any) -> Array:
    """Return the values at positions, since positions of equal values are equally valid."""
    return np.take_along_axis(values, np.asarray(positions), 0)


def by_group(groups: Any, *results: Any) -> Array:
    """Return columns with one row for each group, in any order, sorted by group."""
    order = np.argsort(np.asarray(groups))
    return columns(*(np.asarray(column)[order] for column in results))
