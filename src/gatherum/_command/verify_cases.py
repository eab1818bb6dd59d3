"""The calls of `gatherum verify`, with operands that are the same on every machine.

Operands are generated from counters, in exact integers. Small calls cover every mode, index dtype
and axis, with values that are hard to move or to add: NaN payloads, signed zeros, infinities,
subnormal numbers. Large calls are split among threads, by each of the algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._core import Reduction, has_meaning
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import FoldRule
from gatherum._model.dtype_rows import ROWS, has_arithmetic
from gatherum._model.dtypes import DType
from gatherum._model.modes import MODES
from gatherum._model.narrow_floats import FORMATS
from gatherum._model.operators import OPERATORS
from gatherum._model.reductions import FOLDS

Shape = tuple[int, ...]

DTYPES = tuple(filter(has_arithmetic, ROWS))
_INDEX_DTYPES = ("<i8", "<i4", "<u8", "i1", "<u2", ">i4", "<i2", "u1", ">u8", "<u4")


@dataclass(frozen=True, slots=True)
class VerifyCase:
    """One call to an operator."""

    op: str
    operands: tuple[NumpyArray, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


def dtype_named(name: str) -> DType | None:
    """Return the dtype with this name. Return None for bfloat16 if ml_dtypes is not installed."""
    if ROWS[name].is_of_numpy:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        return None
    extension: DType = np.dtype(getattr(ml_dtypes, name))
    return extension


def case_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the operator, the dtype name and the reduction of every row of the cases."""
    for op, operator in OPERATORS.items():
        for name in DTYPES:
            yield op, name, "none"
            if operator.scatters:
                for reduction in FOLDS:
                    if has_meaning(ROWS[name].value, Reduction[reduction]):
                        yield op, name, reduction


def random_bits(seed: int, size: int) -> NDArray[np.uint64]:
    """Return pseudo-random 64-bit numbers: SplitMix64 of a counter.

    Parameters
    ----------
    seed : int
        The number of the sequence; below 2^32.
    size : int
        The number of values.

    Returns
    -------
    numpy.ndarray
        uint64, of shape ``(size,)``.

    Notes
    -----
    Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014.
    """
    z = np.arange(1, size + 1, dtype=np.uint64) + np.uint64(seed << 32)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@lru_cache(maxsize=96)  # the reductions of a dtype share operands
def values(dtype: DType, seed: int, shape: Shape, *, wild: bool) -> NumpyArray:
    """Return values of a dtype. Floating-point values are near 1, except a few special ones.

    `wild`: the special values include NaN with payloads, infinities and the largest number. They
    would soon dominate a long sum. Otherwise they are zeros of either sign and subnormal numbers.
    """
    size = prod(shape)
    if dtype.kind == "b":
        return (random_bits(seed, size) % np.uint64(3)).astype("u1").view("?").reshape(shape)
    if dtype.kind in "iu":
        return random_bits(seed, size).astype(f"u{dtype.itemsize}").view(dtype).reshape(shape)
    part_count = 2 if dtype.kind == "c" else 1
    width = dtype.itemsize // part_count
    exponent = _exponent_bits(dtype)
    bits = _floats(random_bits(seed, size * part_count), 8 * width - 1 - exponent, exponent, wild)
    return bits.astype(f"u{width}").view(dtype).reshape(shape)


def _exponent_bits(dtype: DType) -> int:
    if narrow_format := FORMATS.get(dtype.name):
        return 8 * dtype.itemsize - 1 - narrow_format.fraction_bits
    return int(np.finfo(dtype).nexp)


def _floats(z: NDArray[np.uint64], mantissa: int, exponent: int, wild: bool) -> NDArray[np.uint64]:
    one_bit = np.uint64(1)
    sign = (z & one_bit) << np.uint64(mantissa + exponent)
    near = np.uint64(2 ** (exponent - 1) - 4) + (z >> one_bit) % np.uint64(6)
    fraction = (z >> np.uint64(8)) & np.uint64(2**mantissa - 1)
    infinity = (2**exponent - 1) << mantissa
    special = [0, 1, 2 ** (mantissa - 1) + 1, 0]
    if wild:
        special += [infinity, infinity + 2 ** (mantissa - 1) + 5, infinity - 1, infinity + 3]
    special_bits = np.array(special, np.uint64)[(z >> np.uint64(40)) % np.uint64(len(special))]
    rare = (z >> np.uint64(59)) == 0
    magnitude: NDArray[np.uint64] = np.where(
        rare, special_bits, near << np.uint64(mantissa) | fraction
    )
    return magnitude | sign


@lru_cache(maxsize=96)
def indices(dtype: str, seed: int, shape: Shape, size: int, *, invalid: bool) -> NumpyArray:
    """Return indices into `size`: half of them negative if signed, and an eighth `invalid`."""
    index_dtype = np.dtype(dtype)
    limits = np.iinfo(index_dtype)
    z = random_bits(seed, prod(shape))
    remainders = (z >> np.uint64(8)) % np.uint64(size)
    signed = remainders.astype("i8")
    if index_dtype.kind == "i":
        signed -= np.where(z & np.uint64(1), size, 0)
    result = signed.astype(index_dtype)
    if invalid:
        ends = [size, -size - 1, limits.min, limits.max]
        wrong = [end for end in ends if limits.min <= end <= limits.max and not -size <= end < size]
        invalid_values = np.array(wrong, index_dtype)[(z >> np.uint64(48)) % np.uint64(len(wrong))]
        result = np.where((z >> np.uint64(61)) == 0, invalid_values, result).astype(index_dtype)
    return result.reshape(shape)


def small_calls(op: str, dtype: DType, reduction: str) -> Iterator[VerifyCase]:
    """Yield small calls for a row: all axes or numbers of components, modes and index dtypes."""
    seeds = count(1)
    data = values(dtype, next(seeds), (4, 5, 3), wild=True)
    for turn, index in enumerate(_INDEX_DTYPES * 2):
        mode = MODES[turn % len(MODES)]
        attributes: dict[str, Any] = {"mode": mode, "negative": turn % 3 != 2}
        picked = {"negative": attributes["negative"], "invalid": mode != "raise"}
        index_array, named = _indices_and_attributes(op, turn, index, next(seeds), picked)
        operands: tuple[NumpyArray, ...] = (data, index_array)
        operator = OPERATORS[op]
        if operator.scatters:
            shape = operator.moved_shape(data.shape, index_array.shape, named[operator.attribute])
            operands = (data, index_array, values(dtype, next(seeds), shape, wild=True))
            named |= FoldRule(reduction, turn % 4 < 2)._asdict()
        yield VerifyCase(op, operands, attributes | named)


def _indices_and_attributes(
    op: str, turn: int, index: str, seed: int, picked: dict[str, bool]
) -> tuple[NumpyArray, dict[str, Any]]:
    """Return indices into data of shape (4, 5, 3), and the attributes that they require."""
    sizes = (4, 5, 3)

    def pick(shape: Shape, size: int, salt: int = 0) -> NumpyArray:
        signed_indices = indices(index, 8 * seed + salt, shape, size, invalid=picked["invalid"])
        if picked["invalid"] or picked["negative"]:
            return signed_indices
        return np.where(signed_indices < 0, signed_indices + size, signed_indices).astype(
            signed_indices.dtype
        )

    addressing = OPERATORS[op].addressing
    if addressing.takes_tuples:
        batch = turn % 2
        components = (1, 2, 3 - batch, 1)[turn % 4]
        lead = (4, 3) if batch else (7,)
        columns = [pick(lead, sizes[batch + c], c) for c in range(components)]
        return np.stack(columns, axis=-1), {addressing.attribute: batch}
    axis = turn % 3
    front = sizes[:axis] if addressing.shares_front else ()
    entries = (9, *sizes[axis + 1 :]) if addressing.shares_back else (2, 6)
    return pick((*front, *entries), sizes[axis]), {addressing.attribute: axis}


def large_calls(op: str, dtype: DType, reduction: str) -> Iterator[VerifyCase]:
    """Yield calls of a row that are long enough for several threads, at least one per algorithm."""
    item = dtype.itemsize
    operator, named = OPERATORS[op], {"reduction": reduction}
    if not operator.scatters:
        yield from _large_gathers(op, dtype, item)
        return
    if not operator.takes_tuples:
        yield from _large_lone(op, dtype, named)
        return
    far = (8 << 20) // item + 1000
    for seed, (size, updates, row) in enumerate(
        [(3000, 280_000, ()), (far, max(1 << 18, far // 8 + 1), ()), (700, 9000, (24,))]
    ):
        yield _scatter(op, dtype, (size, *row), (updates, 1), 21 + seed, named)
        if reduction != "none" and size != far:
            apart = {**named, **FoldRule.afresh(reduction)._asdict()}
            yield _scatter(op, dtype, (size, *row), (updates, 1), 31 + seed, apart)


def _scatter(
    op: str, dtype: DType, shape: Shape, tuples: Shape, seed: int, named: dict[str, Any]
) -> VerifyCase:
    operator = OPERATORS[op]
    axis = named.get(operator.attribute, 0)
    index_array = indices("<i4", 100 + seed, tuples, shape[axis], invalid=False)
    updates = operator.moved_shape(shape, tuples, axis)
    data = values(dtype, 200 + seed, shape, wild=False)
    return VerifyCase(
        op, (data, index_array, values(dtype, 300 + seed, updates, wild=False)), named
    )


# Axis, and the shapes of data and indices: scalars, rows, columns, and rows inside batches.
_SLICES: tuple[tuple[int, Shape, Shape], ...] = (
    (0, (3000,), (280_000,)),
    (0, (700, 24), (150, 60)),
    (1, (200, 300), (300, 5)),
    (1, (60, 50, 16), (400,)),
)


def _large_lone(op: str, dtype: DType, named: dict[str, Any]) -> Iterator[VerifyCase]:
    """Yield scatters whose indices are not tuples: each addresses one slice or element."""
    addressing = OPERATORS[op].addressing
    if addressing.shares_back:
        for axis, shape in ((1, (96, 1024)), (0, (512, 192))):
            attributes = {**named, addressing.attribute: axis}
            yield _scatter(op, dtype, shape, shape, 11 + axis, attributes)
        return
    for case, (axis, data, entries) in enumerate(_SLICES):
        entry_shape = (*data[:axis], *entries) if addressing.shares_front else entries
        fold = FoldRule(named["reduction"], case % 2 == 0)
        attributes = {**named, addressing.attribute: axis, **fold._asdict()}
        yield _scatter(op, dtype, data, entry_shape, 41 + case, attributes)


def _large_gathers(op: str, dtype: DType, item: int) -> Iterator[VerifyCase]:
    addressing = OPERATORS[op].addressing
    if addressing.takes_tuples:
        cube = values(dtype, 4, (40, 50, 60), wild=True)
        first_two = [
            indices("<i8", 5 + c, (150_000,), n, invalid=False) for c, n in enumerate((40, 50))
        ]
        last = indices("<i8", 7, (150_000,), 60, invalid=False)
        yield VerifyCase(op, (cube, np.stack([*first_two, last], axis=-1)))
        return
    named = addressing.attribute
    if addressing.shares_back:
        for axis, shape in ((1, (160, 1024)), (0, (1024 // item + 64, 1024))):
            data = values(dtype, 8 + axis, shape, wild=True)
            index_array = indices("<i4", 10 + axis, shape, shape[axis], invalid=False)
            yield VerifyCase(op, (data, index_array), {named: axis})
        return
    table = values(dtype, 1, (3000, 40), wild=True)
    yield VerifyCase(op, (table, indices("<i8", 2, (60_000,), 3000, invalid=False)))
    columns = (3000, 60) if addressing.shares_front else (3000,)
    yield VerifyCase(op, (table, indices("<i4", 3, columns, 40, invalid=False)), {named: 1})
