"""Convert decimal numbers to integers of the smallest unit, and integers to decimal numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import array_likes
from gatherum._frameworks import refusals

from . import errors

# The number of digits of decimal128, whose integers have at most 127 bits.
DIGITS = 38
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class DecimalNumbers(NamedTuple):
    """Decimal numbers: ``(high * 2**64 + low) / 10**scale``."""

    high: NDArray[np.int64]
    low: NDArray[np.uint64]
    scale: int

    @property
    def size(self) -> int:
        """The number of numbers."""
        return self.high.size

    def integers(self) -> NDArray[np.int64] | None:
        """Return the integers, or None if some have more than 64 bits."""
        low = self.low.view(np.int64)
        return low if np.array_equal(self.high, low >> 63) else None

    def largest(self) -> int:
        """Return the largest absolute value of `integers`."""
        return largest_of(self.low.view(np.int64))

    def parts(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield parts of few bits that add up to the integers, and the first bit of each part.

        The highest part is signed.
        """
        bits = 32 if self.size < 2**31 else 16
        for first_bit in range(0, 128, bits):
            word = self.low if first_bit < 64 else self.high
            yield first_bit, part_of(word, first_bit % 64, bits, signed=first_bit + bits == 128)

    def python_integers(self) -> NDArray[Any]:
        """Return the integers as an array of Python integers."""
        whole: NDArray[Any] = self.high.astype(object) * 2**64 + self.low.astype(object)
        return whole


def largest_of(integers: NDArray[np.int64]) -> int:
    """Return the largest absolute value of integers."""
    return max(abs(int(integers.max(initial=0))), abs(int(integers.min(initial=0))))


def part_of(word: NDArray[Any], first_bit: int, bits: int, *, signed: bool) -> NDArray[np.int64]:
    """Return a number of bits of each integer. A signed part contains the highest bits."""
    part = word >> first_bit
    return (part if signed else part & (2**bits - 1)).astype(np.int64)


def decimals_in(op: str, values: Any) -> DecimalNumbers | None:
    """Return the numbers in a list or array of `Decimal`, or in a column of decimals.

    Return None for anything else.
    """
    if isinstance(values, (list, tuple)):
        values = _array_of(values)
    elif not isinstance(values, np.ndarray):
        package = type(values).__module__.partition(".")[0]
        if package not in ("pyarrow", "polars", "pandas") or package not in sys.modules:
            return None
        if (column := _arrow_column(package, values)) is not None:
            refusals.refuse_nulls(op, "values", values, integers=True)
            return _of_arrow(op, column)
        if package != "pandas" or str(getattr(values, "dtype", "")) != "object":
            return None
        values = np.asarray(values)
    if values is None or values.dtype != object or not values.size or array_likes.is_masked(values):
        return None
    return _of_objects(op, values) if Decimal in set(map(type, values.flat)) else None


def _array_of(values: Any) -> NDArray[Any] | None:
    """Return a list that contains a `Decimal` as an array. Return None for any other list."""
    if not any(Decimal in types for _, types in array_likes.levels_of(values)):
        return None
    try:
        return np.asarray(values)
    except ValueError:  # ragged: the caller raises the error
        return None


def decimal_of(number: int, scale: int) -> Decimal:
    """Return ``number / 10**scale``, with `scale` digits after the point."""
    return Decimal(f"{number}E{-scale}")


def _arrow_column(package: str, values: Any) -> Any:
    """Return a decimal column as an Arrow array, or None for any other column."""
    if package == "polars":
        values = values.to_arrow() if str(getattr(values, "dtype", "")).startswith("Dec") else None
    elif package == "pandas":
        values = values.array if hasattr(getattr(values, "dtype", None), "pyarrow_dtype") else None
        values = None if values is None else values.__arrow_array__()
    if values is None:
        return None
    import pyarrow

    is_arrow = isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray))
    return values if is_arrow and pyarrow.types.is_decimal(values.type) else None


def _of_arrow(op: str, column: Any) -> DecimalNumbers:
    import pyarrow

    scale = column.type.scale
    try:
        column = column.cast(pyarrow.decimal128(DIGITS, scale))
    except pyarrow.ArrowInvalid:  # a number has more digits
        return _of_objects(op, np.array(column.to_pylist(), object))
    chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    words_of_chunks = [
        np.frombuffer(chunk.buffers()[1], "<u8")[2 * chunk.offset :][: 2 * len(chunk)]
        for chunk in chunks
        if len(chunk)
    ]
    words = np.concatenate(words_of_chunks) if words_of_chunks else np.zeros(0, np.uint64)
    high = words[1::2].astype(np.uint64).view(np.int64)
    return DecimalNumbers(high, words[::2].astype(np.uint64), scale)


def _of_objects(op: str, values: NDArray[Any]) -> DecimalNumbers:
    numbers = list(values.flat)
    for position, number in enumerate(numbers):
        finite = isinstance(number, Decimal) and number.is_finite()
        if not finite and type(number) is not int:
            raise errors.not_a_decimal(op, number, _coordinates(position, values))
    exact = [Decimal(number) for number in numbers]
    scale = max(0, *(-int(number.as_tuple().exponent) for number in exact))
    for position, number in enumerate(exact):
        if number and number.adjusted() + scale >= DIGITS:
            where = _coordinates(position, values)
            raise errors.long_decimal(op, numbers[position], scale, where)
    integers = [int(number.scaleb(scale, _EXACT)) for number in exact]
    low = np.array([number & (2**64 - 1) for number in integers], np.uint64)
    high = np.array([number >> 64 for number in integers], np.int64)
    return DecimalNumbers(high.reshape(values.shape), low.reshape(values.shape), scale)


def _coordinates(position: int, values: NDArray[Any]) -> list[int]:
    return [int(i) for i in np.unravel_index(position, values.shape)]
