"""The table of functions over groups: one row for each, with its composition of the operators.

A composition is a small function of the values, the grouping, the result of empty groups, and
`ddof`, which returns the result. A kernel with the same bits may replace it.

To add a function, add its loop to `gatherum.reference.groups`; its row, its composition (unless it
reuses another row's) and its name in the types to this module; and a case to
tests/test_group_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import AnyDType, accumulator_dtype, is_reducible

from . import cumulative, order_statistics, spreads
from .dates import as_dates, as_integers, is_date, not_a_date
from .grouping import Grouping

# For type checkers. A test compares them with the tables.
ReduceName: TypeAlias = Literal[
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "first", "last",
    "count", "any", "all", "logsumexp", "fsum", "fmean", "quantile", "median", "nunique", "mode",
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanargmax",
    "nanargmin", "nanfirst", "nanlast", "nancount", "nanany", "nanall", "nanlogsumexp",
    "nanfsum", "nanfmean", "nanquantile", "nanmedian", "nannunique", "nanmode",
]  # fmt: skip
ReduceNames: TypeAlias = list[ReduceName] | tuple[ReduceName, ...]
QuantileMethod: TypeAlias = Literal["linear", "lower", "higher", "nearest", "midpoint"]
FileFunction: TypeAlias = Literal[
    "sum", "prod", "mean", "max", "min", "last", "count", "fsum", "fmean"
]
TransformName: TypeAlias = Literal[
    "normalize", "centre", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "cumcount", "rank",
]  # fmt: skip
RankMethod: TypeAlias = Literal["average", "ordinal", "min", "max", "dense"]

Composition: TypeAlias = Callable[[Array, Grouping, Array, int], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """The properties of one function. No field has a default, so each row is complete."""

    name: str  # the prefix ``nan`` makes a function skip NaN
    compose: Composition  # the function, as a composition of the operators
    composes: str  # a one-line description of `compose`, for the documentation
    accepts: Callable[[AnyDType], bool]  # whether it is defined for a dtype
    result: Callable[[AnyDType], AnyDType]  # maps the dtype of the values to the result's dtype
    # The result of an empty group; None for NaN if the result's dtype has NaN, else an error.
    empty: float | None
    ties: str  # which of several equal values is selected, for the documentation; "" if irrelevant
    reduction: str | None  # if the function is one scatter of the values or of ones

    @property
    def locates(self) -> bool:
        """Whether the result contains positions, which are never negative."""
        return self.name in ("argmax", "argmin")

    @property
    def compares(self) -> bool:
        """Whether the result is the largest or the smallest value."""
        return self.name in ("max", "min")

    @property
    def sorts(self) -> bool:
        """Whether the function needs all values of a group in one call."""
        return self.name in ("quantile", "median", "nunique", "mode")

    def unlikely(self, dtype: AnyDType) -> int | None:
        """Return a result that no group has, or, for maxima and minima, that few groups have."""
        if self.locates:
            return -1
        if not self.compares or dtype.kind not in "iu":
            return None
        limits = np.iinfo(dtype)
        return int(limits.min if self.name == "max" else limits.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRow:
    """The properties of one function whose result has the shape of the values."""

    name: str
    compose: Callable[[Array, Grouping, Any], Array]  # to a dtype of the framework
    composes: str
    accepts: Callable[[AnyDType], bool]
    result: Callable[[AnyDType], AnyDType]  # maps the dtype of the values to the result's dtype

    @property
    def sorts(self) -> bool:
        """Whether the function needs all values of a group in one call."""
        return self.folds or self.name in ("cumcount", "rank")

    @property
    def folds(self) -> bool:
        """Whether the function is a cumulative fold, which needs NumPy arrays."""
        return self.name in ("cumsum", "cumprod", "cummax", "cummin")


def _orders(extreme: str) -> Callable[[AnyDType], bool]:
    return lambda dtype: is_reducible(dtype, extreme) or (is_date(dtype) and dtype.isnative)


def _reduces(*reductions: str) -> Callable[[AnyDType], bool]:
    return lambda dtype: all(is_reducible(dtype, reduction) for reduction in reductions)


def _anything(dtype: AnyDType) -> bool:
    return True


def _same(dtype: AnyDType) -> AnyDType:
    return dtype


def _always(kind: type) -> Callable[[AnyDType], AnyDType]:
    return lambda dtype: np.dtype(kind)


def working_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype that variances and transforms compute in: float32 for float16 and bfloat16,
    float64 for integers, else the dtype of the values.
    """
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return accumulator_dtype(dtype, "mean")  # type: ignore[arg-type]  # it may be an Extension


def transformed_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a transform's result: float64 for integers, else the values' dtype."""
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype


def _spread_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a variance: float64 for integers, real for complex numbers."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return transformed_dtype(dtype)


def not_a_number(dtype: AnyDType) -> complex | np.generic:
    """Return NaN as a Python number, in both parts for complex dtypes; NaT for dates."""
    if is_date(dtype):
        return not_a_date(dtype)
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan


def working(values: Array, by: Grouping) -> Array:
    """Convert values to their working dtype."""
    return by.xp.astype(values, by.xp.dtype(working_dtype(by.xp.kind(values))))


def _fold(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(values, reduction, start)


def _extreme(extreme: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    if not is_date(dtype := by.xp.kind(values)):
        return by.scatter(values, extreme, start)
    numbers, empty = (as_integers(dates, extreme) for dates in (values, start))
    return as_dates(by.scatter(numbers, extreme, empty), extreme, by.xp.dtype(dtype))


def _fold_truth(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(by.xp.nonzero(values), reduction, start)


def _last(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.scatter(values, "none", start)


def _first(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.first(values, start)


def _count(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    return by.xp.whole(by.count(start), by.shape)


def _position(extreme: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    values = as_integers(values, extreme) if is_date(by.xp.kind(values)) else values
    if isinstance(values, np.ndarray):
        return by.position(extreme, values, start)
    xp, values = by.xp, by.xp.stop_gradient(values)
    best = by.scatter(values, extreme, by.zero(values))
    attains = xp.equal(values, by.gather(best))
    if has_nan(xp.kind(values)) and xp.holds_any(xp.isnan(best)):
        attains = attains | xp.isnan(values)  # a NaN extreme equals no value
    return by.first_position(attains, start)


def _log_sum(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    numbers, xp = working(values, by), by.xp
    shift = by.scatter(xp.stop_gradient(numbers), "max", by.zero(numbers))
    shift = xp.replaced(shift, xp.isinf(shift), 0)  # infinite values stay infinite without a shift
    spread = by.gather(shift)
    total = by.scatter(xp.exp(xp.subtract(numbers, spread, spread)), "add", by.zero(numbers))
    result = xp.rounded(xp.add(shift, xp.log(total)), start.dtype)
    return xp.replaced(result, by.count() == 0, start)


def _shifted(values: Array, by: Grouping) -> Array:
    """Return the distance of each value from the largest of its group."""
    largest = by.scatter(by.xp.stop_gradient(values), "max", by.zero(values))
    distances = by.gather(largest, np.nan)
    return by.xp.subtract(values, distances, distances)


def _softmax(values: Array, by: Grouping, to: Any) -> Array:
    powers = by.xp.exp(_shifted(working(values, by), by))
    total = by.scatter(powers, "add", by.zero(powers))
    return by.xp.rounded(by.xp.divide(powers, by.gather(total, np.nan), powers), to)


def _log_softmax(values: Array, by: Grouping, to: Any) -> Array:
    shifted = _shifted(working(values, by), by)
    total = by.scatter(by.xp.exp(shifted), "add", by.zero(shifted))
    logs = by.gather(by.xp.log(total), np.nan)
    return by.xp.rounded(by.xp.subtract(shifted, logs, shifted), to)


def _fold_row(name: str, reduction: str, empty: float | None, ties: str = "") -> FunctionRow:
    """Return the row of a function that consists of one scatter of the values."""
    return FunctionRow(
        name=name,
        compose=partial(_fold, reduction),
        composes=f"scatter {reduction}",
        accepts=_reduces(reduction),
        result=_same,
        empty=empty,
        ties=ties,
        reduction=reduction,
    )


def _extreme_row(name: str, ties: str) -> FunctionRow:
    """Return the row of a fold that also orders dates."""
    row = _fold_row(name, name, None, ties)
    return replace(row, compose=partial(_extreme, name), accepts=_orders(name))


def _position_row(name: str, extreme: str) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(_position, extreme),
        composes=f"scatter {extreme} with the position of each",
        accepts=_orders(extreme),
        result=_always(np.int64),
        empty=None,
        ties="the first index; NaN wins",
        reduction=None,
    )


def _spread_row(name: str, root: bool, composes: str) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(spreads.variance, root),
        composes=composes,
        accepts=_reduces("mean"),
        result=_spread_dtype,
        empty=None,
        ties="",
        reduction=None,
    )


def _truth_row(name: str, extreme: str, empty: int) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(_fold_truth, extreme),
        composes=f"scatter {extreme} of what is not 0",
        accepts=_reduces("add"),
        result=_always(np.bool_),
        empty=empty,
        ties="",
        reduction=None,
    )


_median = partial(order_statistics.quantile, 0.5, "linear")

_SQUARES = "scatter fmean, gather, scatter add of the squares, division by count - ddof"

_ROWS = (
    _fold_row("sum", "add", 0),
    _fold_row("prod", "mul", 1),
    _fold_row("mean", "mean", None),
    _spread_row("var", False, _SQUARES),
    _spread_row("std", True, "the square root of var before it is rounded"),
    _extreme_row("max", "NaN wins; +0 is above -0"),
    _extreme_row("min", "NaN wins; -0 is below +0"),
    _position_row("argmax", "max"),
    _position_row("argmin", "min"),
    FunctionRow(
        name="first",
        compose=_first,
        composes="scatter in the opposite order",
        accepts=_anything,
        result=_same,
        empty=None,
        ties="the first index",
        reduction=None,
    ),
    FunctionRow(
        name="last",
        compose=_last,
        composes="scatter",
        accepts=_anything,
        result=_same,
        empty=None,
        ties="the last index",
        reduction="none",
    ),
    FunctionRow(
        name="count",
        compose=_count,
        composes="scatter add of ones",
        accepts=_anything,
        result=_always(np.int64),
        empty=0,
        ties="",
        reduction="add",
    ),
    _truth_row("any", "max", 0),
    _truth_row("all", "min", 1),
    FunctionRow(
        name="logsumexp",
        compose=_log_sum,
        composes="scatter max, gather, exp of the differences, scatter add, log",
        accepts=_reduces("mean", "max"),
        result=transformed_dtype,
        empty=-np.inf,
        ties="",
        reduction=None,
    ),
    _fold_row("fsum", "fsum", 0),
    _fold_row("fmean", "fmean", None),
    FunctionRow(
        name="quantile",
        compose=_median,
        composes="sort, gather of the two neighbours, interpolation",
        accepts=_reduces("mean", "max"),
        result=transformed_dtype,
        empty=None,
        ties="NaN wins",
        reduction=None,
    ),
    FunctionRow(
        name="median",
        compose=_median,
        composes='`quantile` with `q=0.5` and `method="linear"`',
        accepts=_reduces("mean", "max"),
        result=transformed_dtype,
        empty=None,
        ties="NaN wins",
        reduction=None,
    ),
    FunctionRow(
        name="nunique",
        compose=order_statistics.nunique,
        composes="sort, scatter add of the first of equal values",
        accepts=_orders("max"),
        result=_always(np.int64),
        empty=0,
        ties="NaN are equal; zeros are equal",
        reduction=None,
    ),
    FunctionRow(
        name="mode",
        compose=order_statistics.mode,
        composes="sort, scatter add of ones to runs, scatter max of their lengths, gather",
        accepts=_orders("max"),
        result=_same,
        empty=None,
        ties="the smallest value; NaN is the largest",
        reduction=None,
    ),
)

FUNCTIONS = {row.name: row for row in _ROWS}
IN_FILES = tuple(row.name for row in _ROWS if row.reduction is not None)
REDUCES = (*FUNCTIONS, *(f"nan{name}" for name in FUNCTIONS))


def _cumulative_row(name: str, reduction: str, accepts: Callable[[AnyDType], bool]) -> TransformRow:
    return TransformRow(
        name=name,
        compose=partial(cumulative.fold, reduction),
        composes=f"left folds of {reduction}, sorted by group",
        accepts=accepts,
        result=_same,
    )


TRANSFORMS = {
    row.name: row
    for row in (
        TransformRow(
            name="normalize",
            compose=spreads.normalized,
            composes="centre over the std of the group before both are rounded",
            accepts=_reduces("mean", "max"),
            result=transformed_dtype,
        ),
        TransformRow(
            name="centre",
            compose=spreads.centred,
            composes="scatter fmean, gather, difference",
            accepts=_reduces("mean"),
            result=transformed_dtype,
        ),
        TransformRow(
            name="softmax",
            compose=_softmax,
            composes="scatter max, gather, exp of the differences, scatter add, gather, quotient",
            accepts=_reduces("mean", "max"),
            result=transformed_dtype,
        ),
        TransformRow(
            name="log_softmax",
            compose=_log_softmax,
            composes="scatter max, gather, exp, scatter add, log, gather, difference",
            accepts=_reduces("mean", "max"),
            result=transformed_dtype,
        ),
        _cumulative_row("cumsum", "add", _reduces("add")),
        _cumulative_row("cumprod", "mul", lambda of: is_reducible(of, "mul") and of.kind != "c"),
        _cumulative_row("cummax", "max", _orders("max")),
        _cumulative_row("cummin", "min", _orders("min")),
        TransformRow(
            name="cumcount",
            compose=cumulative.count,
            composes="sort by group",
            accepts=_anything,
            result=_always(np.int64),
        ),
        TransformRow(
            name="rank",
            compose=partial(cumulative.rank, "average"),
            composes="sort by group and value",
            accepts=_orders("max"),
            result=_always(np.float64),
        ),
    )
}
