"""Reduce groups of decimal numbers exactly, as integers of the smallest unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import errors
from .decimal_numbers import DecimalNumbers, decimal_of

FUNCTIONS = ("sum", "mean", "max", "min", "count")

# A function that runs `reduce` on an array of integers, given a name, the integers, and
# `fill_value`.
Run: TypeAlias = Callable[[str, NDArray[Any], Any], NDArray[Any]]


def reduced(
    op: str, names: Sequence[str], numbers: DecimalNumbers, run: Run, axis: int, fill_value: object
) -> dict[str, NDArray[Any]]:
    """Return the result of each function as an array of `Decimal`.

    `axis` is the axis of the groups, for messages.
    """
    for name in names:
        if name not in FUNCTIONS:
            raise errors.not_for_decimals(op, name, FUNCTIONS)
    fill = None if fill_value is None else _as_fill(op, fill_value)
    counts = run("count", numbers.high, 0)
    is_empty = counts == 0
    results = {}
    for name in names:
        if name == "count":
            whole_fill = None if fill is None or fill % 1 else int(fill)
            results[name] = run(
                name, numbers.high, fill_value if whole_fill is None else whole_fill
            )
            continue
        if fill is None and name != "sum" and is_empty.any():
            where = tuple(int(i) for i in np.argwhere(is_empty)[0])
            coordinates = where if counts.ndim > 1 else ()
            raise errors.empty_group(op, name, "Decimal", where[axis], coordinates)
        totals = _extremes(name, numbers, run) if name in ("max", "min") else _sums(numbers, run)
        if name == "mean":
            totals = _NEAREST(totals, np.maximum(counts, 1).astype(object))
        result = _DECIMALS(totals, numbers.scale)
        if fill is not None:
            result[is_empty] = fill
        results[name] = result
    return results


def _as_fill(op: str, value: object) -> Decimal:
    if isinstance(value, Decimal) or type(value) is int:
        return Decimal(value)
    raise errors.not_a_decimal_fill(op, value)


def _sums(numbers: DecimalNumbers, run: Run) -> NDArray[Any]:
    """Return the exact sums as Python integers, with 0 for an empty group."""
    integers, size = numbers.integers(), numbers.high.size
    if integers is not None and size and _largest(integers) * size < 2**63:
        return run("sum", integers, 0).astype(object)
    # Sums of words with few bits do not wrap around. The highest word is signed.
    bits = 32 if size < 2**31 else 16
    total: Any = 0
    for first_bit, word in ((0, numbers.low), (64, numbers.high)):
        for shift in range(0, 64, bits):
            bits_of_word = word >> shift
            bits_of_word = (
                bits_of_word if first_bit + shift + bits == 128 else bits_of_word & (2**bits - 1)
            )
            sums = run("sum", bits_of_word.astype(np.int64), 0).astype(object)
            total = total + sums * 2 ** (first_bit + shift)
    return np.asarray(total, object)


def _largest(integers: NDArray[np.int64]) -> int:
    return max(abs(int(integers.max())), abs(int(integers.min())))


def _extremes(name: str, numbers: DecimalNumbers, run: Run) -> NDArray[Any]:
    """Return the largest or smallest numbers as Python integers, or any for an empty group."""
    integers = numbers.integers()
    if integers is not None:
        return run(name, integers, 0).astype(object)
    order = np.lexsort((numbers.low.ravel(), numbers.high.ravel()))
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    best = run(name, ranks.reshape(numbers.high.shape), 0)
    extremes: NDArray[Any] = numbers.python_integers().ravel()[order[best]]
    return extremes


def _nearest(total: int, count: int) -> int:
    """Return the integer nearest to ``total / count``, or the even one if two are equally near."""
    quotient, remainder = divmod(total, count)
    return quotient + (2 * remainder + (quotient & 1) > count)


_NEAREST = np.frompyfunc(_nearest, 2, 1)
_DECIMALS = np.frompyfunc(decimal_of, 2, 1)
