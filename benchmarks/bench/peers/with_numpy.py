"""NumPy: also the referee, since its assignments and ``ufunc.at`` are defined in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cases import Array, Case
from . import Methods

UFUNCS: dict[str, Any] = {"add": np.add, "max": np.maximum}


def methods(case: Case) -> Methods:
    """Return NumPy's methods for a case; the first one defines the answer."""
    data, indices, axis = case.data, case.indices, case.axis
    if case.updates is not None:
        return _scatters(case, case.updates)
    if case.op == "gather":
        place = (slice(None),) * axis + (indices,)
        return {
            "np.take": lambda: np.take(data, indices, axis),
            "np.take(mode='clip')": lambda: np.take(data, indices, axis, mode="clip"),
            "data[indices]": lambda: data[place],
        }
    if case.op == "gather_elements":
        return {"np.take_along_axis": lambda: np.take_along_axis(data, indices, axis)}
    place = tuple(indices.T)
    return {"data[tuple(indices.T)]": lambda: data[place]}


def _scatters(case: Case, updates: Array) -> Methods:
    data, indices, axis = case.data, case.indices, case.axis
    place: tuple[Array, ...] = tuple(indices.T)
    if case.op == "scatter_elements":
        own = tuple(np.ogrid[tuple(slice(n) for n in indices.shape)])
        place = own[:axis] + (indices,) + own[axis + 1 :]

    if case.reduction != "none":
        name, ufunc = f"np.{UFUNCS[case.reduction].__name__}.at", UFUNCS[case.reduction]
        found: Methods = {name: _on_a_copy(data, lambda out: ufunc.at(out, place, updates))}
        if data.ndim == 1 and data.dtype.kind == "f":
            found["data + np.bincount"] = lambda: (
                data + np.bincount(place[0], updates, len(data)).astype(data.dtype)
            )
        return found
    if case.op == "scatter_elements":

        def put(out: Array) -> None:
            np.put_along_axis(out, indices, updates, axis)

        return {"np.put_along_axis": _on_a_copy(data, put)}

    def assign(out: Array) -> None:
        out[place] = updates

    return {"out[indices] = updates": _on_a_copy(data, assign)}


def _on_a_copy(data: Array, change: Callable[[Array], object]) -> Callable[[], Array]:
    def run() -> Array:
        out = data.copy()
        change(out)
        return out

    return run
