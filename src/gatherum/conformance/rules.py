"""The rules that the cases test: one row for each rule, with calls that demonstrate it.

To add a rule, write a generator of calls and add a row to `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.call import FoldRule
from gatherum._model.dtype_rows import ROWS
from gatherum._model.dtypes import is_reducible
from gatherum._model.modes import FILLING, MOVING
from gatherum._model.operators import Operator
from gatherum._model.reductions import REDUCTIONS

from .case import RuleCall

SHAPES, INDICES = "docs/semantics.md#shapes", "docs/semantics.md#index-values"
FOLDS = "docs/semantics.md#duplicates-and-reductions"
_SOME = 3  # rows of small tables
_INTEGERS = tuple(row.name for row in ROWS.values() if row.kind in "iu" and row.is_of_numpy)


class Rule(NamedTuple):
    """One rule.

    Attributes
    ----------
    text : str
        The rule, in one line.
    source : str
        The page and section of the documentation that publishes it.
    calls : callable
        Yields calls, given the operator's row, a dtype and a random number generator.
    """

    text: str
    source: str
    calls: Callable[[Operator, np.dtype[Any], np.random.Generator], Iterator[RuleCall]]


def items(shape: tuple[int, ...], dtype: np.dtype[Any], first: int = 0) -> NumpyArray:
    """Return small numbers, distinct if the dtype allows it."""
    return (np.arange(first, first + int(np.prod(shape))) % 100).reshape(shape).astype(dtype)


def make_call(
    op: Operator,
    data: NumpyArray,
    indices: Any,
    first: int = 50,
    updates: NumpyArray | None = None,
    **attributes: Any,
) -> RuleCall:
    """Return a call. For a scatter, the default updates count from `first`."""
    indices = indices if isinstance(indices, np.ndarray) else np.array(indices, np.int64)
    operands = {"data": data, "indices": indices}
    if op.scatters:
        if updates is None:
            axis = attributes.get(op.attribute, 0) % max(data.ndim, 1)
            updates = items(op.moved_shape(data.shape, indices.shape, axis), data.dtype, first)
        operands["updates"] = updates
    return RuleCall(op.name, attributes, operands)


def takes_slices(op: Operator) -> bool:
    """Whether each index addresses a slice along one axis."""
    return not (op.takes_tuples or op.addressing.shares_back)


def pointing(op: Operator, *values: int) -> Any:
    """Return indices with these values for the first axis of a two-dimensional table."""
    if takes_slices(op):
        return list(values)
    return (
        [[value, 0] for value in values] if op.takes_tuples else [[value] * 2 for value in values]
    )


def table(dtype: np.dtype[Any], rows: int = _SOME) -> NumpyArray:
    """Return a small table with two columns."""
    return items((rows, 2), dtype)


def _plain(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    yield make_call(op, table(dtype), pointing(op, 2, 0))
    if not op.takes_tuples:
        columns = [[1, 0], [0, 1], [1, 1]] if op.addressing.shares_front else [1, 0]
        yield make_call(op, table(dtype), columns, axis=1)
        yield make_call(op, table(dtype), columns, axis=-1)


def _axes(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    cube = items((2, 3, 2), dtype)
    for axis in () if op.takes_tuples else (1, 2, -2, -3):
        if op.addressing.shares_back:
            yield make_call(op, cube, np.indices(cube.shape)[axis][..., ::-1].copy(), axis=axis)
        else:
            front = cube.shape[: axis % 3] if op.addressing.shares_front else ()
            yield make_call(op, cube, np.full((*front, 2), [1, 0]), axis=axis)


def _repeated(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if not op.scatters:
        yield make_call(op, table(dtype), pointing(op, 1, 1, 0, 1))
        yield make_call(op, table(dtype), pointing(op, 1, -2, 2, -1))


def _negative(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    yield make_call(op, table(dtype), pointing(op, -1, -3))
    yield make_call(op, table(dtype), pointing(op, -1), negative=False)
    for mode in MOVING:
        yield make_call(op, table(dtype), pointing(op, -2, 1), negative=False, mode=mode)


def _unsigned(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    rows = table(dtype, 200)
    yield make_call(op, rows, np.array(pointing(op, 199, 128), np.uint8))
    yield make_call(op, rows, np.array(pointing(op, -1, 127), np.int8))
    yield make_call(op, rows, np.array(pointing(op, 2**64 - 1), np.uint64))
    for index_dtype in (np.int32, np.uint32, np.int16, np.uint16):
        yield make_call(op, rows, np.array(pointing(op, 150, 3), index_dtype))
    for index_dtype in (np.int32, np.int16):
        yield make_call(op, rows, np.array(pointing(op, -2, 3), index_dtype))


def _outside(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    for value in (3, -4, 2**31, 2**63 - 1, -(2**63)):
        yield make_call(op, table(dtype), pointing(op, 0, value))


def _modes(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    for mode in (*MOVING, *FILLING):
        more: dict[str, Any] = {"fill_value": 7} if mode == "fill" and not op.scatters else {}
        yield make_call(op, table(dtype), pointing(op, 3, -4, 1, 7, -9), mode=mode, **more)


def _components(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.takes_tuples:  # in bounds of the flat table, out of bounds of one dimension
        yield make_call(op, table(dtype), [[0, 2]])
        yield make_call(op, table(dtype), [[1, -3]])
        yield make_call(op, table(dtype), [[0, 2], [1, 1]], mode="clip")


def _last(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        yield make_call(op, table(dtype), pointing(op, 1, 1, 2, 1))
        yield make_call(op, table(dtype), pointing(op, 1, -2))


def _reductions(dtype: np.dtype[Any]) -> list[str]:
    return [name for name in REDUCTIONS[1:] if is_reducible(dtype, name)]


def _folds(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    for reduction in _reductions(dtype) if op.scatters else ():
        for fold in (FoldRule(reduction), FoldRule.afresh(reduction)):
            yield make_call(op, table(dtype), pointing(op, 1, 1, 2, 1), 3, **fold._asdict())


def _order(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters and dtype.kind == "f":
        large = 1 / float(np.finfo(dtype).eps) ** 2 if dtype.itemsize > 2 else 2048.0
        for terms in ((large, 1, -large, 1), (1, large, 1, -large), (large, 1, 1, 1)):
            yield _folded(op, 0, np.array(terms, dtype), FoldRule("add"))


def _folded(op: Operator, initial: int, values: NumpyArray, fold: FoldRule) -> RuleCall:
    """Fold values into one row, or one element, of a table filled with `initial`."""
    table = np.full((_SOME, 2), initial, values.dtype)
    indices = np.array(pointing(op, *[1] * len(values)), np.int64)
    shape = op.moved_shape(table.shape, indices.shape, 0)
    wide = values.reshape(-1, *(1,) * (len(shape) - 1))
    updates = np.ascontiguousarray(np.broadcast_to(wide, shape))
    return make_call(op, table, indices, updates=updates, **fold._asdict())


def _rounding(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        for terms in ((2048, 1, 1), (1, 2**-11, 2**-11), (60000, 60000, -60000)):
            yield _folded(op, 0, np.array(terms, np.float16), FoldRule("add"))
        yield _folded(op, 1, np.full(5, 1.0009765625, np.float16), FoldRule("mul"))


def _bits(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    """Yield calls on NaN with payloads, -0, an infinity and the smallest subnormal number."""
    words = [0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0xFF800000, 0x7FA00000]
    terms = np.array(words, np.uint32).view(np.float32).reshape(_SOME, 2)
    indices = np.array(pointing(op, 2, 0, 1), np.int64)
    updates = np.resize(terms, op.moved_shape(terms.shape, indices.shape, 0))
    yield make_call(op, terms, indices, updates=updates)


def _types(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    """Yield calls on values that no narrower dtype and no dtype of another kind can represent."""
    for name in ("bool", *_INTEGERS):
        least, most = (0, 1) if name == "bool" else _range(name)
        middle = least // 2 + most // 2
        integers = [least, most, middle, least + 1, most - 1, middle + 1]
        yield _moved(op, np.array(integers, object).astype(name))
    for name in ("float16", "float64", "complex64", "complex128"):
        real = np.finfo(name)
        floats = np.array([real.max, real.tiny, -real.max, 1 + real.eps, -real.eps, 1 / 3], name)
        yield _moved(op, floats + 1j * floats[::-1] if floats.dtype.kind == "c" else floats)


def _range(name: str) -> tuple[int, int]:
    limits = np.iinfo(name)
    return int(limits.min), int(limits.max)


def _moved(op: Operator, values: NumpyArray) -> RuleCall:
    """Gather six values from a table, or scatter them to other rows of it."""
    data = values.reshape(_SOME, 2)
    indices = np.array(pointing(op, 2, 0, 1), np.int64)
    shape = op.moved_shape(data.shape, indices.shape, 0)
    return make_call(op, data, indices, updates=np.resize(values, shape))


def _extremes(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        nan = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
        for reduction in REDUCTIONS[1:]:
            for terms in ((0.0, -0.0), (-0.0, 0.0), (1.0, nan, 2.0), (np.inf, -np.inf)):
                values = np.array(terms, np.float32)
                yield _folded(op, 0, values, FoldRule.afresh(reduction))


def _wraps(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        for item_dtype in (np.int8, np.uint8, np.int64):
            most = np.iinfo(item_dtype).max
            for reduction in _reductions(np.dtype(item_dtype)):
                yield _folded(op, 1, np.array([most, most, 2], item_dtype), FoldRule(reduction))


def _truths(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        for reduction in _reductions(np.dtype(bool)):
            for terms in ((True, True), (False, True), (False, False)):
                yield _folded(op, 0, np.array(terms), FoldRule.afresh(reduction))


def _empty(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    yield make_call(op, table(dtype), np.zeros(0 if takes_slices(op) else (0, 2), np.int64))
    if takes_slices(op):
        yield make_call(op, np.zeros((_SOME, 0), dtype), [0, 2])
        yield make_call(
            op, np.zeros((_SOME, 0), dtype), [3]
        )  # an error, although the result is empty
    yield make_call(op, np.zeros((0, 2), dtype), pointing(op, 0), mode="clip")
    if not takes_slices(op):
        yield make_call(op, np.zeros((0, 2), dtype), np.zeros((0, 2), np.int64))
        indices = [[0], [2]] if op.takes_tuples else np.zeros((2, 0), np.int64)
        yield make_call(op, np.zeros((_SOME, 0), dtype), indices)
    if op.takes_tuples:
        yield make_call(op, np.zeros((0, 3, 2), dtype), np.zeros((0, 1, 1), np.int64), batch_dims=1)
        yield make_call(op, np.zeros((2, 3, 2), dtype), np.zeros((2, 0, 1), np.int64), batch_dims=1)


def _ranks(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    deep = items((2, 1, 2, 1, 2, 1, 1, 2), dtype)
    if takes_slices(op):
        front = deep.shape[:4] if op.addressing.shares_front else ()
        yield make_call(op, table(dtype), np.array(1))
        yield make_call(op, table(dtype), [[0, 2], [1, 1]])
        yield make_call(op, deep, np.full((*front, 2), [1, 0]), axis=4)
        yield make_call(op, items((4,), dtype), np.array(-1))
        yield make_call(op, items((4,), dtype), [[[3], [0]]])
    elif op.addressing.shares_back:
        yield make_call(op, deep, np.ones(deep.shape, np.int64), axis=4)
        yield make_call(op, items((4,), dtype), [3, 0, 1])
        yield make_call(op, deep, 1 - np.indices(deep.shape)[4], axis=4)
    else:
        yield make_call(op, items((4,), dtype), [2])
        yield make_call(op, deep, [[1, 0, 1, 0, 1, 0, 0, 1]])
        yield make_call(op, table(dtype), [2, 1])
        yield make_call(op, table(dtype), [[[[2, 1]], [[0, 0]]]])


def _prefixes(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.addressing.shares_back:
        yield make_call(op, table(dtype), [[2]])
        yield make_call(op, table(dtype), [[0, 1]], axis=0)
        yield make_call(op, table(dtype), [[1, 0, 1]], axis=1)
    elif op.takes_tuples:
        yield make_call(op, items((2, 3, 2), dtype), [[1], [0]])
        yield make_call(op, items((2, 3, 2), dtype), [[[1, 2]], [[0, 0]]])
        yield make_call(op, table(dtype), np.zeros((1, 0), np.int64))


def _batches(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.takes_tuples:
        cube = items((2, 3, 2), dtype)
        yield make_call(op, cube, [[[2]], [[0]]], batch_dims=1)
        yield make_call(op, cube, [[[2, 1], [0, 0]], [[1, 0], [-1, -1]]], batch_dims=1)
        yield make_call(op, cube, np.ones((2, 3, 1), np.int64), batch_dims=2)


def _broadcast(op: Operator, dtype: np.dtype[Any], _: np.random.Generator) -> Iterator[RuleCall]:
    if op.scatters:
        yield make_call(op, table(dtype), pointing(op, 2, 0), updates=np.array(9).astype(dtype))


def _random(op: Operator, dtype: np.dtype[Any], rng: np.random.Generator) -> Iterator[RuleCall]:
    for _ in range(6):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        data = items(shape, dtype, int(rng.integers(20)))
        axis = int(rng.integers(len(shape)))
        n = shape[axis]
        if takes_slices(op):
            front = shape[:axis] if op.addressing.shares_front else ()
            indices = rng.integers(-n, n, (*front, *rng.integers(1, 4, rng.integers(0, 3))))
            yield make_call(op, data, np.array(indices), axis=axis)
        elif op.addressing.shares_back:
            yield make_call(op, data, rng.integers(-n, n, shape), axis=axis)
        else:
            k = int(rng.integers(1, len(shape) + 1))
            columns = [rng.integers(-size, size, 3) for size in shape[:k]]
            yield make_call(op, data, np.stack(columns, -1))


RULES = {
    "plain": Rule("Indices count from 0 along the axis that is named.", SHAPES, _plain),
    "axes": Rule("Axes count from the front, negative ones from the back.", SHAPES, _axes),
    "repeated": Rule("A gather takes an element any number of times.", SHAPES, _repeated),
    "negative": Rule("Values from -n to -1 count from the end, if they may.", INDICES, _negative),
    "index_types": Rule("Unsigned values never count from the end.", INDICES, _unsigned),
    "outside": Rule("An index outside of the table is an error.", INDICES, _outside),
    "modes": Rule("Indices outside are moved, or address nothing, as asked.", INDICES, _modes),
    "components": Rule("Each component of a tuple is checked by itself.", INDICES, _components),
    "last_duplicate": Rule("The last of several updates stays.", FOLDS, _last),
    "reductions": Rule("Updates that meet are combined.", FOLDS, _folds),
    "order_of_sums": Rule("A sum is a left fold in row-major order.", FOLDS, _order),
    "halves": Rule("Halves are folded in float32 and rounded once.", FOLDS, _rounding),
    "moved_bits": Rule("What moves keeps its bits.", FOLDS, _bits),
    "dtypes": Rule("Elements of every dtype move.", FOLDS, _types),
    "extremes": Rule("NaN wins, and -0 is below +0.", FOLDS, _extremes),
    "integers": Rule("Integers wrap around; a mean is rounded down.", FOLDS, _wraps),
    "truths": Rule("Sums of bools are or, products are and.", FOLDS, _truths),
    "empty": Rule("Indices are checked although nothing moves.", SHAPES, _empty),
    "ranks": Rule("Indices have any rank that the shapes allow.", SHAPES, _ranks),
    "prefixes": Rule("Tuples may be short, and indices smaller than the data.", SHAPES, _prefixes),
    "batches": Rule("Leading dimensions may be shared.", SHAPES, _batches),
    "broadcast": Rule("Updates broadcast.", SHAPES, _broadcast),
    "random": Rule("All of these together, by a seed.", SHAPES, _random),
}
