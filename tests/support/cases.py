"""Small named calls with answers checked by hand, shared by tests, docs and benchmarks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CASES", "Case", "cases_of"]

Array = NDArray[Any]

NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Case:
    """One call of one operator, and its answer."""

    name: str
    op: str
    data: Array
    indices: Array
    updates: Array | None
    attributes: Mapping[str, Any]
    expected: Array
    note: str = field(default="")

    def __str__(self) -> str:
        return f"{self.op}: {self.name}"

    def run(self, operators: Any, **more: Any) -> Array:
        """Call the operator of this name in `operators`, a module with the six functions."""
        operands = [self.data, self.indices]
        if self.updates is not None:
            operands.append(self.updates)
        result: Array = getattr(operators, self.op)(*operands, **self.attributes, **more)
        return result


def cases_of(op: str) -> list[Case]:
    """Return the cases of one operator, in the order of this file."""
    return [case for case in CASES if case.op == op]


def _fixed(values: Any, dtype: Any) -> Array:
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False  # all tests share one list
    return array


def _gather(
    op: str,
    name: str,
    data: Any,
    indices: Any,
    expected: Any,
    *,
    dtype: Any = "float32",
    index_dtype: Any = "int64",
    note: str = "",
    **attributes: Any,
) -> Case:
    arrays = _fixed(data, dtype), _fixed(indices, index_dtype), _fixed(expected, dtype)
    return Case(name, op, arrays[0], arrays[1], None, attributes, arrays[2], note)


def _scatter(
    op: str,
    name: str,
    data: Any,
    indices: Any,
    updates: Any,
    expected: Any,
    *,
    dtype: Any = "float32",
    index_dtype: Any = "int64",
    note: str = "",
    **attributes: Any,
) -> Case:
    operands = _fixed(data, dtype), _fixed(indices, index_dtype), _fixed(updates, dtype)
    return Case(name, op, *operands, attributes, _fixed(expected, dtype), note)


TABLE = [[1, 2], [3, 4], [5, 6]]
SQUARE = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
CUBE = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
DIRECTML = "an example of DirectML's documentation, in functional form"

GATHER = [
    _gather("gather", "rows of a table", TABLE, [2, 0, 2], [[5, 6], [1, 2], [5, 6]]),
    _gather("gather", "columns of a table", TABLE, [1, 0], [[2, 1], [4, 3], [6, 5]], axis=1),
    _gather("gather", "last axis by its negative number", TABLE, [1], [[2], [4], [6]], axis=-1),
    _gather("gather", "one row", TABLE, 1, [3, 4], note="a 0-d index takes its axis away"),
    _gather("gather", "one element of a vector", [7, 8, 9], 2, 9, note="the result is 0-d"),
    _gather(
        "gather",
        "a grid of words",
        [10, 20, 30],
        [[0, 1], [2, 2]],
        [[10, 20], [30, 30]],
        dtype="int16",
        index_dtype="uint8",
        note="the shape of `indices` takes the place of the axis",
    ),
    _gather(
        "gather",
        "middle axis by a grid",
        CUBE,
        [[1, 0], [1, 1]],
        [
            [[[2, 3], [0, 1]], [[2, 3], [2, 3]]],
            [[[6, 7], [4, 5]], [[6, 7], [6, 7]]],
        ],
        axis=1,
    ),
    _gather("gather", "from the end", [1, 2, 3], [-1, -3], [3, 1], index_dtype="int8"),
    _gather("gather", "clip", [1, 2, 3], [5, -1, -9, 1], [3, 3, 1, 2], mode="clip"),
    _gather(
        "gather",
        "clip without negatives",
        [1, 2, 3],
        [5, -1, -9, 1],
        [3, 1, 1, 2],
        mode="clip",
        negative=False,
        note="-1 is below 0, no longer the last",
    ),
    _gather("gather", "wrap", [1, 2, 3], [3, -1, -4, 7], [1, 3, 3, 2], mode="wrap"),
    _gather(
        "gather",
        "wrap past 2^63",
        [1, 2, 3],
        [2**63, 2**64 - 1],
        [3, 1],
        index_dtype="uint64",
        mode="wrap",
        note="2^63 = 3 q + 2 and 2^64 - 1 = 3 q: the exact integer is wrapped",
    ),
    _gather(
        "gather",
        "fill",
        TABLE,
        [0, 3],
        [[1, 2], [NAN, NAN]],
        mode="fill",
        fill_value=NAN,
    ),
    _gather("gather", "drop is fill", [1, 2, 3], [-4, -3], [0, 1], mode="drop"),
    _gather("gather", "no indices", np.ones((3, 2)), [], np.ones((0, 2))),
    _gather(
        "gather",
        "nothing between the axes",
        np.ones((2, 0, 3)),
        [1, 1, 0],
        np.ones((2, 0, 3)),
        axis=2,
    ),
    _gather(
        "gather",
        "empty axis filled",
        np.ones((0, 2)),
        [4],
        [[0, 0]],
        mode="fill",
        note="there is nothing to clip or wrap into, but there is a fill value",
    ),
    _gather("gather", "dates", ["2001-01-01", "NaT"], [1, 0], ["NaT", "2001-01-01"], dtype="M8[D]"),
    _gather(
        "gather",
        "DirectML Gather 1",
        [11, 12, 13, 14],
        [3, 1, 3, 0, 2],
        [14, 12, 14, 11, 13],
        index_dtype="uint32",
        note=DIRECTML,
    ),
    _gather(
        "gather",
        "DirectML Gather 2",
        TABLE,
        [0, 1, 1, 2],
        [[1, 2], [3, 4], [3, 4], [5, 6]],
        index_dtype="uint32",
        note=DIRECTML,
    ),
    _gather(
        "gather",
        "DirectML Gather 3",
        TABLE,
        [1, 0],
        [[2, 1], [4, 3], [6, 5]],
        index_dtype="uint32",
        axis=1,
        note=DIRECTML,
    ),
    _gather(
        "gather",
        "DirectML Gather 4",
        SQUARE,
        [[0, 2]],
        [[[1, 3]], [[4, 6]], [[7, 9]]],
        index_dtype="uint32",
        axis=1,
        note=DIRECTML,
    ),
    _gather(
        "gather",
        "DirectML Gather 5",
        TABLE,
        [[0, 1], [1, 2]],
        [[[1, 2], [3, 4]], [[3, 4], [5, 6]]],
        index_dtype="uint32",
        note=DIRECTML,
    ),
]

GATHER_ELEMENTS = [
    _gather(
        "gather_elements",
        "one of each row",
        [[1, 2], [3, 4]],
        [[0, 0], [1, 0]],
        [[1, 1], [4, 3]],
        axis=1,
    ),
    _gather(
        "gather_elements",
        "one of each column",
        SQUARE,
        [[1, 2, 0], [2, 0, 0]],
        [[4, 8, 3], [7, 2, 3]],
        index_dtype="int32",
    ),
    _gather("gather_elements", "from the end", SQUARE, [[-1, -2, -3]], [[7, 5, 3]]),
    _gather("gather_elements", "a vector", [5, 6, 7], [2, 2, 0, 1], [7, 7, 5, 6], dtype="uint8"),
    _gather(
        "gather_elements",
        "sorted rows",
        [[3, 1, 2], [9, 8, 7]],
        [[1, 2, 0], [2, 1, 0]],
        [[1, 2, 3], [7, 8, 9]],
        axis=-1,
        note="what take_along_axis does with the result of argsort",
    ),
    _gather(
        "gather_elements",
        "leading part",
        SQUARE,
        [[2], [0]],
        [[3], [4]],
        axis=1,
        note="`indices` may be smaller than `data` off the axis: this is no broadcasting",
    ),
    _gather(
        "gather_elements",
        "longer than the axis",
        CUBE,
        [[[1], [0]], [[0], [0]], [[1], [1]]],
        [[[4], [2]], [[0], [2]], [[4], [6]]],
    ),
    _gather("gather_elements", "clip", SQUARE, [[9, -9, 1]], [[7, 2, 6]], mode="clip"),
    _gather("gather_elements", "wrap", SQUARE, [[3, 4, -4]], [[1, 5, 9]], mode="wrap"),
    _gather(
        "gather_elements",
        "fill",
        SQUARE,
        [[3, 0, -4], [-1, 1, 2]],
        [[-1, 2, -1], [7, 5, 9]],
        mode="fill",
        fill_value=-1,
    ),
    _gather("gather_elements", "no indices", SQUARE, np.ones((0, 3)), np.ones((0, 3))),
    _gather(
        "gather_elements",
        "nothing beside the axis",
        np.ones((2, 0)),
        np.ones((5, 0)),
        np.ones((5, 0)),
    ),
    _gather(
        "gather_elements",
        "truths",
        [[True, False]],
        [[1, 0]],
        [[False, True]],
        dtype="bool",
        axis=1,
    ),
]

GATHER_ND = [
    _gather(
        "gather_nd", "points of a matrix", [[0, 1], [2, 3]], [[0, 0], [1, 1]], [0, 3], dtype="int32"
    ),
    _gather("gather_nd", "rows of a table", TABLE, [[2], [0]], [[5, 6], [1, 2]]),
    _gather("gather_nd", "one point", CUBE, [1, 0, 1], 5, note="the result is 0-d"),
    _gather(
        "gather_nd",
        "rows of a cube",
        CUBE,
        [[[0, 1]], [[1, 0]]],
        [[[2, 3]], [[4, 5]]],
        note="GatherND's own example",
    ),
    _gather(
        "gather_nd",
        "one row of each batch",
        CUBE,
        [[1], [0]],
        [[2, 3], [4, 5]],
        batch_dims=1,
    ),
    _gather(
        "gather_nd",
        "several points of each batch",
        CUBE,
        [[[0, 1], [1, 1]], [[1, 0], [0, 0]]],
        [[1, 3], [6, 4]],
        batch_dims=1,
    ),
    _gather(
        "gather_nd",
        "every dimension but the last is a batch",
        [[1, 2], [3, 4]],
        [[[1], [0]]] * 2,
        [[2, 1], [4, 3]],
        batch_dims=1,
        index_dtype="uint16",
    ),
    _gather("gather_nd", "from the end", TABLE, [[-1, -1], [-3, 1]], [6, 2]),
    _gather("gather_nd", "clip", TABLE, [[9, -9], [-1, 5]], [5, 6], mode="clip"),
    _gather("gather_nd", "wrap", TABLE, [[3, -3], [4, 3]], [2, 4], mode="wrap"),
    _gather(
        "gather_nd",
        "fill",
        TABLE,
        [[3], [1]],
        [[8, 8], [3, 4]],
        mode="fill",
        fill_value=8,
    ),
    _gather(
        "gather_nd",
        "one bad component is enough",
        TABLE,
        [[0, 2], [-4, 0], [0, 1]],
        [0, 0, 2],
        mode="fill",
        note="element 2 of the flat table exists, but not in a row of two",
    ),
    _gather(
        "gather_nd",
        "empty tuples",
        [1, 2],
        np.ones((3, 0)),
        [[1, 2], [1, 2], [1, 2]],
        note="k = 0 addresses the whole array",
    ),
    _gather("gather_nd", "no tuples", TABLE, np.ones((0, 2)), np.ones(0)),
    _gather("gather_nd", "empty slices", np.ones((2, 0)), [[1], [0], [1]], np.ones((3, 0))),
]

SCATTER_ELEMENTS = [
    _scatter(
        "scatter_elements",
        "columns of a matrix",
        [[0, 0, 0]] * 3,
        [[1, 0, 2], [0, 2, 1]],
        [[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]],
        [[2.0, 1.1, 0.0], [1.0, 0.0, 2.2], [0.0, 2.1, 1.2]],
    ),
    _scatter(
        "scatter_elements",
        "one row",
        [[1, 2, 3, 4, 5]],
        [[1, 3]],
        [[1.1, 2.1]],
        [[1, 1.1, 3, 2.1, 5]],
        axis=1,
    ),
    _scatter(
        "scatter_elements", "from the end", [[1, 2, 3]], [[-1, -3]], [[8, 9]], [[9, 2, 8]], axis=-1
    ),
    _scatter(
        "scatter_elements",
        "last duplicate wins",
        [0, 0],
        [1, 1, 0, 1],
        [5, 6, 7, 8],
        [7, 8],
        dtype="int8",
    ),
    _scatter(
        "scatter_elements",
        "leading part",
        SQUARE,
        [[2], [0]],
        [[0], [-1]],
        [[1, 2, 0], [-1, 5, 6], [7, 8, 9]],
        axis=1,
        note="rows and columns beyond the shape of `indices` stay as they are",
    ),
    _scatter(
        "scatter_elements", "updates that broadcast", TABLE, [[0, 2]], 0, [[0, 2], [3, 4], [5, 0]]
    ),
    _scatter(
        "scatter_elements",
        "add",
        [1, 2, 3],
        [2, 0, 2],
        [10, 20, 30],
        [21, 2, 43],
        reduction="add",
    ),
    _scatter(
        "scatter_elements",
        "add wraps",
        [100, -128],
        [0, 1, 0],
        [27, -1, 1],
        [-128, 127],
        dtype="int8",
        reduction="add",
    ),
    _scatter(
        "scatter_elements",
        "mul",
        [[1, 2], [3, 4]],
        [[1, 1]],
        [[5, 5]],
        [[1, 50], [3, 4]],
        axis=1,
        reduction="mul",
    ),
    _scatter("scatter_elements", "max", [3, 3], [0, 1], [2, 4], [3, 4], reduction="max"),
    _scatter("scatter_elements", "min", [3, 3], [0, 1], [2, 4], [2, 3], reduction="min"),
    _scatter(
        "scatter_elements",
        "zeros have an order",
        [0.0, -0.0],
        [0, 1],
        [-0.0, 0.0],
        [0.0, 0.0],
        reduction="max",
    ),
    _scatter(
        "scatter_elements",
        "mean",
        [1, 5, 9],
        [0, 0, 2],
        [2, 3, 0],
        [2, 5, 4.5],
        reduction="mean",
        note="(1 + 2 + 3) / 3 and (9 + 0) / 2",
    ),
    _scatter(
        "scatter_elements",
        "fsum",
        [1e16, 1.0],
        [0, 0, 0],
        [1.0, -1e16, 1e-16],
        [1.0, 1.0],
        reduction="fsum",
        note="1 + 1e-16, rounded once; additions in order give 1e-16",
    ),
    _scatter(
        "scatter_elements",
        "fmean",
        [1e16, 1.0],
        [0, 0],
        [2.0, -1e16],
        [2 / 3, 1.0],
        reduction="fmean",
    ),
    _scatter(
        "scatter_elements",
        "mean of integers",
        [-1, 7],
        [0, 1],
        [-2, 8],
        [-2, 7],
        dtype="int32",
        reduction="mean",
        note="-3 / 2 and 15 / 2, rounded down",
    ),
    _scatter(
        "scatter_elements",
        "add without the old value",
        [100, 200],
        [0, 0],
        [1, 2],
        [3, 200],
        reduction="add",
        include_self=False,
        note="what no update touches keeps its value",
    ),
    _scatter(
        "scatter_elements",
        "mean without the old value",
        [100, 200],
        [0, 0],
        [1, 2],
        [1.5, 200],
        reduction="mean",
        include_self=False,
    ),
    _scatter("scatter_elements", "clip", [0, 0, 0], [7, -7], [1, 2], [2, 0, 1], mode="clip"),
    _scatter("scatter_elements", "wrap", [0, 0, 0], [4, -4], [1, 2], [0, 1, 2], mode="wrap"),
    _scatter("scatter_elements", "drop", [0, 0, 0], [3, 1, -4], [1, 2, 3], [0, 2, 0], mode="drop"),
    _scatter("scatter_elements", "nothing to write", [1, 2], [], [], [1, 2]),
    _scatter(
        "scatter_elements",
        "truths",
        [True, False, False],
        [0, 1, 2, 2],
        [False, True, False, False],
        [True, True, False],
        dtype="bool",
        reduction="add",
        note="add is or",
    ),
    _scatter(
        "scatter_elements",
        "DirectML Scatter 1",
        [0, 1, 2, 3, 4],
        [3, 1, 3, 0],
        [5, 6, 7, 8],
        [8, 6, 2, 7, 4],
        index_dtype="uint32",
        note=DIRECTML,
    ),
    _scatter(
        "scatter_elements",
        "DirectML Scatter 2",
        [[0, 0, 0]] * 3,
        [[1, 0, 2], [0, 2, 1]],
        [[10, 11, 12], [20, 21, 22]],
        [[20, 11, 0], [10, 0, 22], [0, 21, 12]],
        index_dtype="uint32",
        note=DIRECTML,
    ),
]

SCATTER_ND = [
    _scatter(
        "scatter_nd",
        "rows of a table",
        TABLE,
        [[2], [0]],
        [[7, 8], [9, 0]],
        [[9, 0], [3, 4], [7, 8]],
    ),
    _scatter(
        "scatter_nd", "points of a table", TABLE, [[2, 1], [0, 0]], [8, 9], [[9, 2], [3, 4], [5, 8]]
    ),
    _scatter("scatter_nd", "one point", TABLE, [1, 0], 0, [[1, 2], [0, 4], [5, 6]]),
    _scatter(
        "scatter_nd",
        "from the end",
        [1, 2, 3],
        [[-1], [-3]],
        [8, 9],
        [9, 2, 8],
        index_dtype="int16",
    ),
    _scatter(
        "scatter_nd",
        "last duplicate wins",
        TABLE,
        [[1], [1]],
        [[7, 7], [8, 8]],
        [[1, 2], [8, 8], [5, 6]],
    ),
    _scatter(
        "scatter_nd", "updates that broadcast", TABLE, [[0], [2]], [8, 9], [[8, 9], [3, 4], [8, 9]]
    ),
    _scatter(
        "scatter_nd",
        "one row of each batch",
        CUBE,
        [[1], [0]],
        [[8, 9], [6, 7]],
        [[[0, 1], [8, 9]], [[6, 7], [6, 7]]],
        batch_dims=1,
    ),
    _scatter(
        "scatter_nd",
        "add",
        [1, 2, 3],
        [[0], [2], [0]],
        [10, 20, 30],
        [41, 2, 23],
        dtype="float64",
        reduction="add",
    ),
    _scatter(
        "scatter_nd",
        "mul",
        [[2, 3]],
        [[0], [0]],
        [[5, 0], [7, 4]],
        [[70, 0]],
        dtype="uint16",
        reduction="mul",
    ),
    _scatter(
        "scatter_nd",
        "product of complex numbers",
        [1 + 2j, 0],
        [[0]],
        [3 - 1j],
        [5 + 5j, 0],
        dtype="complex64",
        reduction="mul",
        note="(1 + 2i)(3 - i) = 3 - i + 6i + 2",
    ),
    _scatter(
        "scatter_nd", "max", [1, 9], [[0], [1]], [5, 5], [5, 9], dtype="float16", reduction="max"
    ),
    _scatter(
        "scatter_nd", "min", [1, 9], [[0], [1]], [5, 5], [1, 5], dtype="float16", reduction="min"
    ),
    _scatter("scatter_nd", "NaN wins", [1, NAN], [[0], [1]], [NAN, 5], [NAN, NAN], reduction="max"),
    _scatter("scatter_nd", "mean", [3, 9], [[0], [0]], [4, 8], [5, 9], reduction="mean"),
    _scatter(
        "scatter_nd",
        "max without the old value",
        [9, 9],
        [[1], [1]],
        [4, 5],
        [9, 5],
        reduction="max",
        include_self=False,
    ),
    _scatter(
        "scatter_nd",
        "a sum that half precision would lose",
        [2048, 0],
        [[0], [0]],
        [1, 1],
        [2050, 0],
        dtype="float16",
        reduction="add",
        note="2048 + 1 rounds back to 2048 in float16; the sum is kept in float32",
    ),
    _scatter("scatter_nd", "clip", TABLE, [[9, -9]], [0], [[1, 2], [3, 4], [0, 6]], mode="clip"),
    _scatter("scatter_nd", "wrap", TABLE, [[4, 3]], [0], [[1, 2], [3, 0], [5, 6]], mode="wrap"),
    _scatter(
        "scatter_nd",
        "drop",
        TABLE,
        [[0, 2], [-4, 0], [0, 1]],
        [7, 8, 9],
        [[1, 9], [3, 4], [5, 6]],
        mode="drop",
    ),
    _scatter(
        "scatter_nd",
        "empty tuples",
        [1, 2],
        np.ones((2, 0)),
        [[3, 4], [5, 6]],
        [9, 12],
        reduction="add",
        note="k = 0 addresses the whole array, once for each tuple",
    ),
    _scatter(
        "scatter_nd", "a scalar", 5, np.ones((2, 0)), [6, 7], 7, note="rank 0 takes empty tuples"
    ),
    _scatter("scatter_nd", "no tuples", TABLE, np.ones((0, 1)), np.ones((0, 2)), TABLE),
    _scatter(
        "scatter_nd",
        "DirectML ScatterND",
        [1, 2, 3, 4, 5, 6, 7, 8],
        [[4], [3], [1], [7]],
        [9, 10, 11, 12],
        [1, 11, 3, 10, 9, 6, 7, 12],
        index_dtype="uint32",
        note=DIRECTML,
    ),
]

SCATTER_SLICES = [
    _scatter(
        "scatter_slices",
        "rows of a table",
        TABLE,
        [2, 0],
        [[7, 8], [9, 0]],
        [[9, 0], [3, 4], [7, 8]],
    ),
    _scatter(
        "scatter_slices",
        "columns of a table",
        TABLE,
        [1],
        [[7], [8], [9]],
        [[1, 7], [3, 8], [5, 9]],
        axis=1,
    ),
    _scatter(
        "scatter_slices",
        "last axis by its negative number",
        TABLE,
        [1, 0],
        [[7, 8], [9, 0], [1, 2]],
        [[8, 7], [0, 9], [2, 1]],
        axis=-1,
    ),
    _scatter(
        "scatter_slices",
        "one row",
        TABLE,
        1,
        [7, 8],
        [[1, 2], [7, 8], [5, 6]],
        note="a 0-d index takes its axis away from `updates`",
    ),
    _scatter("scatter_slices", "one element of a vector", [7, 8, 9], 2, 5, [7, 8, 5]),
    _scatter(
        "scatter_slices",
        "middle axis by a grid",
        CUBE,
        [[1, 0], [1, 1]],
        [
            [[[10, 11], [12, 13]], [[14, 15], [16, 17]]],
            [[[20, 21], [22, 23]], [[24, 25], [26, 27]]],
        ],
        [[[12, 13], [16, 17]], [[22, 23], [26, 27]]],
        axis=1,
        note="the shape of `indices` takes the place of the axis; of three rows the last stays",
    ),
    _scatter(
        "scatter_slices", "from the end", [1, 2, 3], [-1, -3], [8, 9], [9, 2, 8], index_dtype="int8"
    ),
    _scatter(
        "scatter_slices",
        "last duplicate wins",
        TABLE,
        [1, 1],
        [[7, 7], [8, 8]],
        [[1, 2], [8, 8], [5, 6]],
        dtype="int16",
        index_dtype="uint8",
    ),
    _scatter(
        "scatter_slices",
        "updates that broadcast",
        TABLE,
        [0, 2],
        [8, 9],
        [[8, 9], [3, 4], [8, 9]],
    ),
    _scatter(
        "scatter_slices",
        "one value in many columns",
        TABLE,
        [1],
        0,
        [[1, 0], [3, 0], [5, 0]],
        axis=1,
    ),
    _scatter(
        "scatter_slices",
        "add",
        TABLE,
        [2, 0, 2],
        [[10, 20], [30, 40], [50, 60]],
        [[31, 42], [3, 4], [65, 86]],
        reduction="add",
    ),
    _scatter(
        "scatter_slices",
        "add columns",
        [[1, 2, 3], [4, 5, 6]],
        [0, 2, 0],
        [[10, 20, 30], [40, 50, 60]],
        [[41, 2, 23], [104, 5, 56]],
        dtype="int32",
        axis=1,
        reduction="add",
    ),
    _scatter(
        "scatter_slices",
        "a grid of words that are counted",
        [0, 0, 0],
        [[2, 0], [2, 2]],
        1,
        [1, 0, 3],
        dtype="uint8",
        reduction="add",
    ),
    _scatter(
        "scatter_slices",
        "mul",
        [[2, 3]],
        [0, 0],
        [[5, 0], [7, 4]],
        [[70, 0]],
        dtype="uint16",
        reduction="mul",
    ),
    _scatter(
        "scatter_slices",
        "max and NaN",
        [[1, NAN], [9, 3]],
        [0, 1],
        [[NAN, 5], [5, 5]],
        [[NAN, NAN], [9, 5]],
        reduction="max",
    ),
    _scatter(
        "scatter_slices", "min", TABLE, [0, 0], [[4, 0], [0, 4]], [[0, 0], [3, 4], [5, 6]],
        reduction="min",
    ),
    _scatter(
        "scatter_slices",
        "mean without the old value",
        [[100, 1], [200, 2]],
        [0, 0],
        [[1, 3], [2, 5]],
        [[1.5, 4], [200, 2]],
        reduction="mean",
        include_self=False,
        note="what no update touches keeps its value",
    ),
    _scatter(
        "scatter_slices",
        "mean of columns",
        [[3, 9], [1, 9]],
        [0, 0],
        [[4, 8], [1, 4]],
        [[5, 9], [2, 9]],
        axis=1,
        reduction="mean",
        note="(3 + 4 + 8) / 3 and (1 + 1 + 4) / 3",
    ),
    _scatter(
        "scatter_slices",
        "a sum that half precision would lose",
        [[2048, 0]],
        [0, 0],
        [[1, 1], [1, 1]],
        [[2050, 2]],
        dtype="float16",
        reduction="add",
        note="2048 + 1 rounds back to 2048 in float16; the sum is kept in float32",
    ),
    _scatter("scatter_slices", "clip", [0, 0, 0], [7, -7], [1, 2], [2, 0, 1], mode="clip"),
    _scatter(
        "scatter_slices",
        "clip without negatives",
        TABLE,
        [-1, 9],
        [[7, 7], [8, 8]],
        [[7, 7], [3, 4], [8, 8]],
        mode="clip",
        negative=False,
    ),
    _scatter("scatter_slices", "wrap", [0, 0, 0], [4, -4], [1, 2], [0, 1, 2], mode="wrap"),
    _scatter(
        "scatter_slices",
        "drop",
        TABLE,
        [3, 1, -4],
        [[7, 7], [8, 8], [9, 9]],
        [[1, 2], [8, 8], [5, 6]],
        mode="drop",
    ),
    _scatter("scatter_slices", "fill is drop", TABLE, 5, 0, TABLE, mode="fill"),
    _scatter("scatter_slices", "nothing to write", TABLE, [], np.ones((0, 2)), TABLE),
    _scatter(
        "scatter_slices",
        "nothing between the axes",
        np.ones((2, 0, 3)),
        [1, 1, 0],
        np.ones((2, 0, 3)),
        np.ones((2, 0, 3)),
        axis=2,
    ),
    _scatter(
        "scatter_slices", "dates", ["2001-01-01", "NaT"], [1], ["2002-02-02"],
        ["2001-01-01", "2002-02-02"], dtype="M8[D]",
    ),
]  # fmt: skip

CASES = [*GATHER, *GATHER_ELEMENTS, *GATHER_ND, *SCATTER_SLICES, *SCATTER_ELEMENTS, *SCATTER_ND]
