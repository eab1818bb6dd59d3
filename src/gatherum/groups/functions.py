"""The table of functions over groups: one row for each, and its composition of the operators.

A composition is a small function: values, grouping, what empty groups take, and `ddof` in; the
result out. It may be replaced by a kernel with the same bits.

To add a function: its loop in `gatherum.reference.groups`; here its row, its composition unless it
has that of another row, and its name in the types; a case in tests/test_group_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum import elementary
from gatherum.call import Array
from gatherum.casting import kind_rank
from gatherum.dtypes import DType, accumulator_dtype, is_reducible

from .grouping import Grouping

# For type checkers; a test compares them with the tables.
ReduceName: TypeAlias = Literal[
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "first", "last",
    "count", "any", "all", "logsumexp",
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanargmax",
    "nanargmin", "nanfirst", "nanlast", "nancount", "nanany", "nanall", "nanlogsumexp",
]  # fmt: skip
TransformName: TypeAlias = Literal["normalize", "centre", "softmax", "log_softmax"]

Composition: TypeAlias = Callable[[Array, Grouping, Array, int], Array]

ZERO_COUNT = np.zeros((), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """What there is to know of one function. No field has a default: each row says all.

    Attributes
    ----------
    name : str
        Its name. With ``nan`` before it, it skips NaN.
    compose : callable
        What it does, by the operators.
    composes : str
        The same in a line, for the documentation.
    accepts : callable
        Whether it is defined for a dtype.
    result : callable
        The dtype of the values in; the dtype of the result out.
    empty : float or None
        The default value of an empty group. None: NaN where the result's dtype has
        one, else an error.
    ties : str
        Which of several equal values counts, for the documentation; "" where none does.
    """

    name: str
    compose: Composition
    composes: str
    accepts: Callable[[DType], bool]
    result: Callable[[DType], DType]
    empty: float | None
    ties: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRow:
    """What there is to know of one function whose result has the shape of the values."""

    name: str
    compose: Callable[[Array, Grouping], Array]
    composes: str
    accepts: Callable[[DType], bool]


def _reduces(*reductions: str) -> Callable[[DType], bool]:
    return lambda dtype: all(is_reducible(dtype, reduction) for reduction in reductions)


def _anything(dtype: DType) -> bool:
    return True


def _same(dtype: DType) -> DType:
    return dtype


def _always(kind: type) -> Callable[[DType], DType]:
    return lambda dtype: np.dtype(kind)


def working_dtype(dtype: DType) -> DType:
    """Return the dtype that spreads and transforms compute in: float32 for halves, float64 for
    integers, else the values' own.
    """
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return accumulator_dtype(dtype, "mean")


def transformed_dtype(dtype: DType) -> DType:
    """Return the dtype of what a transform gives: float64 for integers, else the values' own."""
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype


def _spread_dtype(dtype: DType) -> DType:
    """Return the dtype of a variance: float64 for integers, real for complex numbers."""
    found = transformed_dtype(dtype)
    return np.zeros((), found).real.dtype if found.kind == "c" else found


def is_nan(values: Array) -> NDArray[np.bool_]:
    """Whether each value is NaN, of any dtype of numbers that has one."""
    nan: NDArray[np.bool_] = np.not_equal(values, values)
    return nan


def has_nan(dtype: DType) -> bool:
    """Whether values of the dtype may be NaN."""
    return (kind_rank(dtype) or 0) >= 2


def canonical(values: Array) -> Array:
    """Make each NaN the quiet one without sign and payload, in place."""
    for part in (values.real, values.imag) if values.dtype.kind == "c" else (values,):
        np.copyto(part, part.dtype.type(np.nan), where=is_nan(part))
    return values


def _truth(values: Array) -> NDArray[np.bool_]:
    """Return which values are true: NaN is, and any byte but 0 of bools."""
    truth: NDArray[np.bool_] = np.not_equal(values, 0)
    return truth


def _fold(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(values, reduction, start)


def _fold_truth(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(_truth(values), reduction, start)


def _last(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(values, "none", start)


def _first(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.backward().scatter(np.flip(values, by.axis), "none", start)


def _count(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    counts = by.count(start)
    return counts if counts.shape == by.shape else np.broadcast_to(counts, by.shape).copy()


def _position(extreme: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    best = by.scatter(values, extreme, np.zeros((), values.dtype))
    attains = np.asarray(values == by.gather(best))
    if has_nan(values.dtype) and is_nan(best).any():
        attains |= is_nan(values)  # in a group with NaN nothing equals the extreme
    return by.first_position(attains, start)


def _variance(root: bool, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    found = values.astype(working_dtype(values.dtype), copy=False)
    mean = by.scatter(found, "mean", np.zeros((), found.dtype))
    squares = _squares(found, by.gather(mean))
    total = by.scatter(squares, "add", np.zeros((), squares.dtype))
    counts = by.count(ZERO_COUNT)
    freedom = counts - ddof
    spread = total / freedom.astype(total.dtype)
    if root:
        spread = np.sqrt(spread)
    np.copyto(spread, np.nan, where=freedom <= 0)
    result = canonical(spread).astype(start.dtype)
    np.copyto(result, start, where=counts == 0)
    return result


def _squares(values: Array, means: Array) -> Array:
    """Return the squares of the distances from the means, whose memory it takes."""
    np.subtract(values, means, out=means)
    if means.dtype.kind != "c":
        return np.multiply(means, means, out=means)
    squares: Array = means.real * means.real
    squares += means.imag * means.imag
    return squares


def _log_sum(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    found = values.astype(working_dtype(values.dtype), copy=False)
    shift = by.scatter(found, "max", np.zeros((), found.dtype))
    np.copyto(shift, 0, where=np.isinf(shift))  # what is infinite stays so by itself
    shifted = elementary.exp(found - by.gather(shift))
    total = elementary.log(by.scatter(shifted, "add", np.zeros((), found.dtype)))
    result = canonical(shift + total).astype(start.dtype)
    np.copyto(result, start, where=by.count(ZERO_COUNT) == 0)
    return result


def _shifted(values: Array, by: Grouping) -> Array:
    """Return the distance of each value from the largest of its group."""
    largest = by.scatter(values, "max", np.zeros((), values.dtype))
    distances = by.gather(largest, nan_item(values.dtype))
    return np.subtract(values, distances, out=distances)


def _softmax(values: Array, by: Grouping) -> Array:
    powers = elementary.exp(_shifted(values, by))
    total = by.scatter(powers, "add", np.zeros((), powers.dtype))
    return np.divide(powers, by.gather(total, nan_item(powers.dtype)), out=powers)


def _log_softmax(values: Array, by: Grouping) -> Array:
    shifted = _shifted(values, by)
    total = by.scatter(elementary.exp(shifted), "add", np.zeros((), shifted.dtype))
    logs = by.gather(elementary.log(total), nan_item(total.dtype))
    return np.subtract(shifted, logs, out=shifted)


def _centred(values: Array, by: Grouping) -> Array:
    mean = by.scatter(values, "mean", np.zeros((), values.dtype))
    centres = by.gather(mean, nan_item(values.dtype))
    return np.subtract(values, centres, out=centres)


def _normalized(values: Array, by: Grouping) -> Array:
    total = by.scatter(values, "add", np.zeros((), values.dtype))
    totals = by.gather(total, nan_item(values.dtype))
    return np.divide(values, totals, out=totals)


_FIRST_INDEX = "the first index; NaN wins"

_ROWS = (
    FunctionRow(
        name="sum",
        compose=partial(_fold, "add"),
        composes="scatter add",
        accepts=_reduces("add"),
        result=_same,
        empty=0,
        ties="",
    ),
    FunctionRow(
        name="prod",
        compose=partial(_fold, "mul"),
        composes="scatter mul",
        accepts=_reduces("mul"),
        result=_same,
        empty=1,
        ties="",
    ),
    FunctionRow(
        name="mean",
        compose=partial(_fold, "mean"),
        composes="scatter mean",
        accepts=_reduces("mean"),
        result=_same,
        empty=None,
        ties="",
    ),
    FunctionRow(
        name="var",
        compose=partial(_variance, False),
        composes="scatter mean, gather, scatter add of the squares, division by count - ddof",
        accepts=_reduces("mean"),
        result=_spread_dtype,
        empty=None,
        ties="",
    ),
    FunctionRow(
        name="std",
        compose=partial(_variance, True),
        composes="the square root of var before it is rounded",
        accepts=_reduces("mean"),
        result=_spread_dtype,
        empty=None,
        ties="",
    ),
    FunctionRow(
        name="max",
        compose=partial(_fold, "max"),
        composes="scatter max",
        accepts=_reduces("max"),
        result=_same,
        empty=None,
        ties="NaN wins; +0 is above -0",
    ),
    FunctionRow(
        name="min",
        compose=partial(_fold, "min"),
        composes="scatter min",
        accepts=_reduces("min"),
        result=_same,
        empty=None,
        ties="NaN wins; -0 is below +0",
    ),
    FunctionRow(
        name="argmax",
        compose=partial(_position, "max"),
        composes="scatter max, gather, scatter min of the positions that attain it",
        accepts=_reduces("max"),
        result=_always(np.int64),
        empty=None,
        ties=_FIRST_INDEX,
    ),
    FunctionRow(
        name="argmin",
        compose=partial(_position, "min"),
        composes="scatter min, gather, scatter min of the positions that attain it",
        accepts=_reduces("min"),
        result=_always(np.int64),
        empty=None,
        ties=_FIRST_INDEX,
    ),
    FunctionRow(
        name="first",
        compose=_first,
        composes="scatter in the opposite order",
        accepts=_anything,
        result=_same,
        empty=None,
        ties="the first index",
    ),
    FunctionRow(
        name="last",
        compose=_last,
        composes="scatter",
        accepts=_anything,
        result=_same,
        empty=None,
        ties="the last index",
    ),
    FunctionRow(
        name="count",
        compose=_count,
        composes="scatter add of ones",
        accepts=_anything,
        result=_always(np.int64),
        empty=0,
        ties="",
    ),
    FunctionRow(
        name="any",
        compose=partial(_fold_truth, "max"),
        composes="scatter max of what is not 0",
        accepts=_reduces("add"),
        result=_always(np.bool_),
        empty=0,
        ties="",
    ),
    FunctionRow(
        name="all",
        compose=partial(_fold_truth, "min"),
        composes="scatter min of what is not 0",
        accepts=_reduces("add"),
        result=_always(np.bool_),
        empty=1,
        ties="",
    ),
    FunctionRow(
        name="logsumexp",
        compose=_log_sum,
        composes="scatter max, gather, exp of the differences, scatter add, log",
        accepts=_reduces("mean", "max"),
        result=transformed_dtype,
        empty=-np.inf,
        ties="",
    ),
)

FUNCTIONS = {row.name: row for row in _ROWS}
REDUCES = (*FUNCTIONS, *(f"nan{name}" for name in FUNCTIONS))

TRANSFORMS = {
    row.name: row
    for row in (
        TransformRow(
            name="normalize",
            compose=_normalized,
            composes="scatter add, gather, quotient",
            accepts=_reduces("mean", "max"),
        ),
        TransformRow(
            name="centre",
            compose=_centred,
            composes="scatter mean, gather, difference",
            accepts=_reduces("mean"),
        ),
        TransformRow(
            name="softmax",
            compose=_softmax,
            composes="scatter max, gather, exp of the differences, scatter add, gather, quotient",
            accepts=_reduces("mean", "max"),
        ),
        TransformRow(
            name="log_softmax",
            compose=_log_softmax,
            composes="scatter max, gather, exp, scatter add, log, gather, difference",
            accepts=_reduces("mean", "max"),
        ),
    )
}


def nan_item(dtype: DType) -> Array | None:
    """Return NaN as an item, in both parts of a complex one; None where the dtype has none."""
    if not has_nan(dtype):
        return None
    item: Array = np.zeros((), dtype)
    item[()] = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return item if is_nan(item) else None
