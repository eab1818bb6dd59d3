"""Cases of sizes past 2^31: their tables are described, not stored.

Such a case is a small one whose rows lie far apart: the oracle answers the small call, and the rows
of its table, its result and its indices are numbered anew. So nobody needs the memory but whoever
runs the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gatherum._model.operators import Operator

from .call_facts import INDEX, case_record, write_json
from .case import Array, Case, RuleCall, answer
from .rules import SHAPES, items, made, pointing

NAME = "far_sizes"
_WIDE = 2  # columns
# Rows of a table, and which of them are not zero: where row numbers pass 31 bits, where offsets of
# elements do and row numbers do not, and where 32 bits are passed.
_TABLES = (
    (2**31 + 2, (0, 1, 2**31 - 1, 2**31, 2**31 + 1)),
    (2**30 + 2, (0, 1, 2**30 - 1, 2**30, 2**30 + 1)),
    (2**32 + 2, (0, 1, 2**31, 2**32, 2**32 + 1)),
)


class VirtualArray(NamedTuple):
    """An array that is described: zeros, but for a few rows.

    Attributes
    ----------
    shape : tuple of int
        Its shape.
    dtype : numpy.dtype
        Its dtype.
    rows : dict
        The rows that are not zeros, by their numbers along the first dimension.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: Mapping[int, Array]

    def array(self) -> Array:
        """Return the array itself, which takes as much memory as its shape says."""
        made = np.zeros(self.shape, self.dtype)
        for number, row in self.rows.items():
            made[number] = row
        return made

    def described(self) -> dict[str, Any]:
        """Return the same as plain values."""
        rows = {str(number): _values(row) for number, row in self.rows.items()}
        return {"shape": list(self.shape), "dtype": self.dtype.name, "fill": 0, "rows": rows}


def cases(row: Operator, dtype: np.dtype[Any]) -> Iterator[Case]:
    """Yield the cases of an operator."""
    number = 0
    for size, places in _TABLES:
        for small in _calls(row, dtype, len(places)):
            found, error = answer(small)
            if error in ("TypeError", "ValueError"):
                continue  # the dtype has no such reduction
            far = _far(row, small, size, places)
            expected = _spread(found, size, places) if found is not None and row.scatters else found
            title = f"{row.name}_{NAME}_{number}"
            yield Case(title, small.operator, small.attributes, far, expected, error, NAME, SHAPES)
            number += 1


def _calls(row: Operator, dtype: np.dtype[Any], n: int) -> Iterator[RuleCall]:
    table = items((n, _WIDE), dtype, 1)
    yield made(row, table, pointing(row, 4, 0, 2, 3))
    yield made(row, table, pointing(row, -1, -3, 1))
    if row.scatters:
        yield made(row, table, pointing(row, 3, 3, 4), reduction="add")
    yield made(row, table, pointing(row, 0, n))  # the first that is outside


def _far(row: Operator, small: RuleCall, size: int, places: tuple[int, ...]) -> dict[str, Any]:
    """Return the operands of the same call on a table whose rows lie at places of a large one."""
    operands = dict(small.operands)
    indices = operands["indices"]
    numbers = np.array([*places, size, *(place - size for place in places)])
    # Negative values count from the end of `numbers`, as they do in the table.
    moved, rows = indices.copy(), slice(1 if row.tuples else None)
    moved[..., rows] = numbers[indices[..., rows]]
    return operands | {"data": _spread(operands["data"], size, places), "indices": moved}


def _spread(rows: Array, size: int, places: tuple[int, ...]) -> VirtualArray:
    shape = (size, *rows.shape[1:])
    return VirtualArray(shape, rows.dtype, dict(zip(places, rows, strict=True)))


def write(cases: Iterator[Case], folder: str) -> int:
    """Write an index that describes the cases; no other file."""
    rows = []
    for case in cases:
        operands = {name: _plain(array) for name, array in case.operands.items()}
        more = {} if case.expected is None else {"expected": _plain(case.expected)}
        rows.append(case_record(case, virtual=True, operands=operands, **more))
    write_json(folder, INDEX, rows)
    return len(rows)


def _values(array: Array) -> Any:
    """Return numbers that JSON can write: a complex one as its two parts."""
    return (np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array).tolist()


def _plain(array: Any) -> dict[str, Any]:
    if isinstance(array, VirtualArray):
        return array.described()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": _values(array)}
