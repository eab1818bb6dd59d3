"""The tables of functions over groups: one row for each function.

CONTRIBUTING.md lists the steps that add a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from gatherum._model.dtypes import AnyDType, is_reducible

from . import compositions, cumulative, dtypes, nan_skipping, order_statistics, spreads, weighted
from .rows import Argument, FunctionRow, Method, TransformRow, WeightedForm


def _fold_row(
    name: str,
    reduction: str,
    empty: float | None,
    takes: tuple[Argument, ...] = (),
    weighted_form: WeightedForm | None = None,
) -> FunctionRow:
    """Return the row of a function that consists of one scatter of the values."""
    return FunctionRow(
        name=name,
        compose=partial(compositions.fold, reduction),
        composes=f"scatter {reduction}",
        accepts=dtypes.reduces(reduction),
        result=dtypes.same,
        empty=empty,
        ties="",
        reduction=reduction,
        method=Method.FOLD,
        takes=takes,
        weighted=weighted_form,
        skip_nan=partial(nan_skipping.fold, reduction),
        copies=dtypes.nothing,
    )


def _extreme_row(name: str, ties: str) -> FunctionRow:
    """Return the row of a fold that also orders dates."""
    return replace(
        _fold_row(name, name, None),
        compose=partial(compositions.fold_extreme, name),
        accepts=dtypes.orders(name),
        ties=ties,
        method=Method.EXTREME,
    )


def _position_row(name: str, extreme: str) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(compositions.position_of_extreme, extreme),
        composes=f"scatter {extreme}, with the position of each group's {extreme}imum",
        accepts=dtypes.orders(extreme),
        result=dtypes.always(np.int64),
        empty=None,
        ties="the first index; NaN wins",
        reduction=None,
        method=Method.POSITION,
        takes=(),
        weighted=None,
        skip_nan=partial(nan_skipping.position, extreme),
        copies=dtypes.nothing,
    )


def _spread_row(name: str, root: bool, composes: str) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(spreads.variance, root),
        composes=composes,
        accepts=dtypes.reduces("mean"),
        result=dtypes.spread_dtype,
        empty=None,
        ties="",
        reduction=None,
        method=Method.COMPOSITION,
        takes=("dtype",),
        weighted=WeightedForm(
            compose=partial(weighted.weighted_variance, root), result=dtypes.spread_dtype
        ),
        skip_nan=partial(spreads.variance_skipping_nan, root),
        copies=lambda dtype: dtype.kind != "f",
    )


def _truth_row(name: str, extreme: str, empty: int) -> FunctionRow:
    return FunctionRow(
        name=name,
        compose=partial(compositions.fold_truth, extreme),
        composes=f"scatter {extreme} of `values != 0`",
        accepts=dtypes.reduces("add"),
        result=dtypes.always(np.bool_),
        empty=empty,
        ties="",
        reduction=extreme,
        method=Method.TRUTH,
        takes=(),
        weighted=None,
        skip_nan=partial(nan_skipping.truth, extreme),
        copies=dtypes.nothing,
    )


def _quantile_row(name: str, composes: str, takes: tuple[Argument, ...] = ()) -> FunctionRow:
    """Return the row of the median. If it takes `q`, `options.row_with_q` sets the quantile."""
    return FunctionRow(
        name=name,
        compose=partial(order_statistics.quantile, 0.5, "linear"),
        composes=composes,
        accepts=dtypes.reduces("mean", "max"),
        result=dtypes.transformed_dtype,
        empty=None,
        ties="NaN wins",
        reduction=None,
        method=Method.SORT,
        takes=takes,
        weighted=None,
        skip_nan=None,
        copies=dtypes.nothing,
    )


_SQUARES = "scatter fmean, gather, scatter add of the squares, division by count - ddof"

_ROWS = (
    _fold_row(
        "sum",
        "add",
        0,
        ("dtype",),
        WeightedForm(compose=weighted.weighted_sum, result=dtypes.same),
    ),
    _fold_row("prod", "mul", 1, ("dtype",)),
    _fold_row(
        "mean",
        "mean",
        None,
        ("dtype",),
        WeightedForm(compose=weighted.weighted_mean, result=dtypes.transformed_dtype),
    ),
    _spread_row("var", False, _SQUARES),
    _spread_row("std", True, "the square root of var before it is rounded"),
    _extreme_row("max", "NaN wins; +0 is above -0"),
    _extreme_row("min", "NaN wins; -0 is below +0"),
    _position_row("argmax", "max"),
    _position_row("argmin", "min"),
    FunctionRow(
        name="first",
        compose=compositions.first,
        composes="scatter in the opposite order",
        accepts=dtypes.anything,
        result=dtypes.same,
        empty=None,
        ties="the first index",
        reduction=None,
        method=Method.SELECTION,
        takes=(),
        weighted=None,
        skip_nan=partial(nan_skipping.select, reverses=True),
        copies=dtypes.nothing,
    ),
    FunctionRow(
        name="last",
        compose=compositions.last,
        composes="scatter",
        accepts=dtypes.anything,
        result=dtypes.same,
        empty=None,
        ties="the last index",
        reduction="none",
        method=Method.SELECTION,
        takes=(),
        weighted=None,
        skip_nan=partial(nan_skipping.select, reverses=False),
        copies=dtypes.nothing,
    ),
    FunctionRow(
        name="count",
        compose=compositions.count,
        composes="scatter add of ones",
        accepts=dtypes.anything,
        result=dtypes.always(np.int64),
        empty=0,
        ties="",
        reduction="add",
        method=Method.COUNT,
        takes=(),
        weighted=None,
        skip_nan=nan_skipping.count,
        copies=dtypes.nothing,
    ),
    _truth_row("any", "max", 0),
    _truth_row("all", "min", 1),
    FunctionRow(
        name="logsumexp",
        compose=compositions.log_sum,
        composes="scatter max, gather, exp of the differences, scatter add, log",
        accepts=dtypes.reduces("mean", "max"),
        result=dtypes.transformed_dtype,
        empty=-np.inf,
        ties="",
        reduction=None,
        method=Method.COMPOSITION,
        takes=(),
        weighted=None,
        skip_nan=nan_skipping.log_sum,
        copies=dtypes.anything,
    ),
    _fold_row("fsum", "fsum", 0),
    _fold_row("fmean", "fmean", None),
    _quantile_row("quantile", "sort, gather of the two neighbours, interpolation", ("q",)),
    _quantile_row("median", '`quantile` with `q=0.5` and `method="linear"`'),
    FunctionRow(
        name="nunique",
        compose=order_statistics.nunique,
        composes="sort, scatter add of 1 for the first of each run of equal values",
        accepts=dtypes.orders("max"),
        result=dtypes.always(np.int64),
        empty=0,
        ties="NaN are equal; zeros are equal",
        reduction=None,
        method=Method.SORT,
        takes=(),
        weighted=None,
        skip_nan=None,
        copies=dtypes.nothing,
    ),
    FunctionRow(
        name="mode",
        compose=order_statistics.mode,
        composes="sort, scatter add of ones to runs, scatter max of their lengths, gather",
        accepts=dtypes.orders("max"),
        result=dtypes.same,
        empty=None,
        ties="the smallest value; NaN is the largest",
        reduction=None,
        method=Method.SORT,
        takes=(),
        weighted=None,
        skip_nan=None,
        copies=dtypes.nothing,
    ),
)

# A function and its nan form share a row but for the field `skips_nan`.
_NAN_FORMS = tuple(replace(row, skips_nan=True) for row in _ROWS)
FUNCTIONS = {row.full_name: row for row in (*_ROWS, *_NAN_FORMS)}
REDUCES = tuple(FUNCTIONS)
# The functions that take an argument, without the nan forms.
TAKERS = {
    argument: tuple(row.name for row in _ROWS if argument in row.takes)
    for argument in get_args(Argument)
} | {"weights": tuple(row.name for row in _ROWS if row.weighted is not None)}


def _cumulative_row(name: str, reduction: str, accepts: Callable[[AnyDType], bool]) -> TransformRow:
    return TransformRow(
        name=name,
        compose=partial(cumulative.fold, reduction),
        composes=f"left folds of {reduction}",
        accepts=accepts,
        result=dtypes.same,
        method=Method.FOLD,
    )


TRANSFORMS = {
    row.name: row
    for row in (
        TransformRow(
            name="normalize",
            compose=spreads.normalized,
            composes="`centre` divided by the group's `std`, both before rounding",
            accepts=dtypes.reduces("mean", "max"),
            result=dtypes.transformed_dtype,
            method=Method.COMPOSITION,
        ),
        TransformRow(
            name="centre",
            compose=spreads.centred,
            composes="scatter fmean, gather, difference",
            accepts=dtypes.reduces("mean"),
            result=dtypes.transformed_dtype,
            method=Method.COMPOSITION,
        ),
        TransformRow(
            name="softmax",
            compose=compositions.softmax,
            composes="scatter max, gather, exp of the differences, scatter add, gather, quotient",
            accepts=dtypes.reduces("mean", "max"),
            result=dtypes.transformed_dtype,
            method=Method.COMPOSITION,
        ),
        TransformRow(
            name="log_softmax",
            compose=compositions.log_softmax,
            composes="scatter max, gather, exp, scatter add, log, gather, difference",
            accepts=dtypes.reduces("mean", "max"),
            result=dtypes.transformed_dtype,
            method=Method.COMPOSITION,
        ),
        _cumulative_row("cumsum", "add", dtypes.reduces("add")),
        _cumulative_row(
            "cumprod", "mul", lambda dtype: is_reducible(dtype, "mul") and dtype.kind != "c"
        ),
        _cumulative_row("cummax", "max", dtypes.orders("max")),
        _cumulative_row("cummin", "min", dtypes.orders("min")),
        TransformRow(
            name="cumcount",
            compose=cumulative.count,
            composes="sort by group",
            accepts=dtypes.anything,
            result=dtypes.always(np.int64),
            method=Method.SORT,
        ),
        TransformRow(
            name="rank",
            compose=partial(cumulative.rank, "average"),
            composes="sort by group and value",
            accepts=dtypes.orders("max"),
            result=dtypes.always(np.float64),
            method=Method.SORT,
        ),
    )
}
