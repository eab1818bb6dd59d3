"""Cases with sizes past 2^31. Their tables are described, not stored.

Each case is made from a small call, which the oracle runs. Then the rows of the table and of the
result get large row numbers that are far apart, and the indices are replaced with these numbers.
The full memory is needed only when the case is run, not when it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import Operator

from .call_facts import INDEX, case_record, write_json
from .case import Case, RuleCall, run_oracle
from .rules import SHAPES, items, make_call, pointing

NAME = "far_sizes"
_WIDE = 2  # columns
# For each table, its number of rows and the numbers of its nonzero rows. The first table has row
# numbers past 31 bits, the second has element offsets past 31 bits but smaller row numbers, and the
# third has row numbers past 32 bits.
_TABLES = (
    (2**31 + 2, (0, 1, 2**31 - 1, 2**31, 2**31 + 1)),
    (2**30 + 2, (0, 1, 2**30 - 1, 2**30, 2**30 + 1)),
    (2**32 + 2, (0, 1, 2**31, 2**32, 2**32 + 1)),
)


class VirtualArray(NamedTuple):
    """The description of an array that is zero except for a few rows.

    Attributes
    ----------
    shape : tuple of int
        The shape.
    dtype : numpy.dtype
        The dtype.
    rows : dict
        The nonzero rows, by their positions along the first dimension.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: Mapping[int, NumpyArray]

    def array(self) -> NumpyArray:
        """Return the full-size array."""
        array = np.zeros(self.shape, self.dtype)
        for row_number, row in self.rows.items():
            array[row_number] = row
        return array

    def described(self) -> dict[str, Any]:
        """Return the description as plain values."""
        rows = {str(row_number): _values(row) for row_number, row in self.rows.items()}
        return {"shape": list(self.shape), "dtype": self.dtype.name, "fill": 0, "rows": rows}


def cases(operator: Operator, dtype: np.dtype[Any]) -> Iterator[Case]:
    """Yield the cases of an operator."""
    ordinal = 0
    for size, rows_of_table in _TABLES:
        for small in _calls(operator, dtype, len(rows_of_table)):
            out, error = run_oracle(small)
            if error in ("TypeError", "ValueError"):
                continue  # the dtype has no such reduction
            far = _far(operator, small, size, rows_of_table)
            expected: Any = out
            if out is not None and operator.scatters:
                expected = _with_rows(out, size, rows_of_table)
            title = f"{operator.name}_{NAME}_{ordinal}"
            yield Case(title, small.operator, small.attributes, far, expected, error, NAME, SHAPES)
            ordinal += 1


def _calls(operator: Operator, dtype: np.dtype[Any], n: int) -> Iterator[RuleCall]:
    table = items((n, _WIDE), dtype, 1)
    yield make_call(operator, table, pointing(operator, 4, 0, 2, 3))
    yield make_call(operator, table, pointing(operator, -1, -3, 1))
    if operator.scatters:
        yield make_call(operator, table, pointing(operator, 3, 3, 4), reduction="add")
    yield make_call(operator, table, pointing(operator, 0, n))  # the first invalid index


def _far(
    operator: Operator, small: RuleCall, size: int, rows_of_table: tuple[int, ...]
) -> dict[str, Any]:
    """Return the operands of the call on a large table.

    The large table contains the rows of the small table at `rows_of_table`.
    """
    operands = dict(small.operands)
    indices = operands["indices"]
    row_numbers = np.array([*rows_of_table, size, *(row - size for row in rows_of_table)])
    # Negative values count from the end of `row_numbers`, as they do in the table.
    renumbered, rows = indices.copy(), slice(1 if operator.takes_tuples else None)
    renumbered[..., rows] = row_numbers[indices[..., rows]]
    table = _with_rows(operands["data"], size, rows_of_table)
    return operands | {"data": table, "indices": renumbered}


def _with_rows(rows: NumpyArray, size: int, rows_of_table: tuple[int, ...]) -> VirtualArray:
    shape = (size, *rows.shape[1:])
    return VirtualArray(shape, rows.dtype, dict(zip(rows_of_table, rows, strict=True)))


def write(cases: Iterator[Case], folder: str) -> int:
    """Write an index that describes the cases, and no other file."""
    rows = []
    for case in cases:
        operands = {name: _plain(array) for name, array in case.operands.items()}
        more = {} if case.expected is None else {"expected": _plain(case.expected)}
        rows.append(case_record(case, virtual=True, operands=operands, **more))
    write_json(folder, INDEX, rows)
    return len(rows)


def _values(array: NumpyArray) -> Any:
    """Return numbers that JSON can represent: complex numbers as their two parts."""
    return (np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array).tolist()


def _plain(array: Any) -> dict[str, Any]:
    if isinstance(array, VirtualArray):
        return array.described()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": _values(array)}
