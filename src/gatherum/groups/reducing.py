"""`reduce` and `transform` check their arguments and run a row of the table of functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Never, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import plain_values
from gatherum._arguments.casting import has_nan
from gatherum._arguments.xarray_labels import check_numbers, has_labels, plain_array, renumbered
from gatherum._derivatives.array_ops import Array
from gatherum._frameworks import registry
from gatherum._model import shape_limits
from gatherum._model.call_types import Foreign
from gatherum._model.dtypes import AnyDType, is_index
from gatherum._model.errors import not_an_integer, renamed, unknown_argument
from gatherum._model.modes import MODES, ModeName
from gatherum._model.shape_limits import MAX_BYTES

from . import errors, namespace, options, weighted
from .cumulative import RANKS
from .functions import (
    FUNCTIONS,
    REDUCES,
    TRANSFORMS,
    FunctionRow,
    QuantileMethod,
    RankMethod,
    ReduceName,
    ReduceNames,
    TransformName,
    TransformRow,
    not_a_number,
)
from .grouping import Grouping
from .order_statistics import METHODS

REDUCE = "groups.reduce"
TRANSFORM = "groups.transform"
# The functions' names in other libraries, for messages.
ALIASES = {
    "add": "sum", "mul": "prod", "multiply": "prod", "product": "prod", "amax": "max",
    "maximum": "max", "amin": "min", "minimum": "min", "len": "count", "average": "mean",
    "idxmax": "argmax", "idxmin": "argmin", "center": "centre", "percentile": "quantile",
}  # fmt: skip
# For unsupported wide dtypes, the widest supported dtype.
WIDEST = {"g": np.dtype(np.float64), "G": np.dtype(np.complex128)}
ALIASES |= {f"nan{alias}": f"nan{name}" for alias, name in ALIASES.items()}


@overload
def reduce(
    values: NDArray[Any],
    groups: ArrayLike,
    size: int | None = None,
    func: ReduceName = "sum",
    axis: int = 0,
    *,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
) -> NDArray[Any]: ...


@overload
def reduce(
    values: Foreign,
    groups: Any,
    size: int | None = None,
    func: ReduceName = "sum",
    axis: int = 0,
    *,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
) -> Foreign: ...


@overload
def reduce(
    values: NDArray[Any],
    groups: ArrayLike,
    size: int | None = None,
    *,
    func: ReduceNames,
    axis: int = 0,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
) -> dict[str, NDArray[Any]]: ...


@overload
def reduce(
    values: Foreign,
    groups: Any,
    size: int | None = None,
    *,
    func: ReduceNames,
    axis: int = 0,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
) -> dict[str, Foreign]: ...


@overload
def reduce(
    values: ArrayLike,
    groups: ArrayLike,
    size: int | None = None,
    func: ReduceName = "sum",
    axis: int = 0,
    *,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
) -> NDArray[Any]: ...
def reduce(
    values: Any,
    groups: Any,
    size: int | None = None,
    func: ReduceName | ReduceNames = "sum",
    axis: int = 0,
    *,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    mode: ModeName = "raise",
    negative: bool = False,
    **unknown: Never,
) -> Any:
    """Reduce the values of each group to a sum, mean, maximum, argmax or other statistic.

    Group ``g`` contains the values whose entry in `groups` is ``g``, in row-major order.

    Parameters
    ----------
    values : array_like
        The values: an array_like, a tensor or a JAX array of at least one dimension. If `values` is
        an ``xarray.DataArray``, the result is a DataArray with the names and coordinates of the
        other dimensions. The new dimension has the name of `groups` if `groups` is a named
        DataArray, else the name ``"group"``.
    groups : array_like of int
        The group numbers, counted from 0. An array of shape ``(values.shape[axis],)`` has one
        number for each position along `axis`; an array of the shape of `values` has one number for
        each value. Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    size : int, optional
        The number of groups. The default is the largest entry plus one. It must be given if that
        is over a million, and 16 times the number of entries; `factorize` renumbers such groups.
    func : str or list of str, default "sum"
        ``"sum"``, ``"prod"``, ``"mean"``, ``"var"``, ``"std"``, ``"max"``, ``"min"``,
        ``"argmax"``, ``"argmin"``, ``"first"``, ``"last"``, ``"count"``, ``"any"``, ``"all"``,
        ``"logsumexp"``, ``"fsum"``, ``"fmean"``, ``"quantile"``, ``"median"``, ``"nunique"`` or
        ``"mode"``. The prefix ``nan`` makes a function skip NaN.
        For a list of names, the result is a dict of arrays.
    axis : int, default 0
        The axis of `values` along which groups are formed, in ``[-values.ndim, values.ndim)``.
    weights : array_like of float or int, optional
        The weight of each position along `axis`, or of each value, for ``"sum"``, ``"mean"``,
        ``"var"``, ``"std"`` and their nan forms. Weights are real numbers. Values and weights are
        converted to their common dtype by NumPy's rules, where bfloat16 is promoted like float16;
        a list adopts the dtype of floating values.
    dtype : dtype, optional
        The dtype that values are converted to before a ``"sum"``, ``"prod"``, ``"mean"``,
        ``"var"``, ``"std"`` or its nan form. By default, sums of small integers can wrap around.
    ddof : int, default 0
        For ``"var"`` and ``"std"``, the divisor for a group of n values is ``n - ddof``. Other
        functions ignore it.
    q : float or list of float, optional
        The probability of ``"quantile"``, in [0, 1]. It is required for this function.
    method : {"linear", "lower", "higher", "nearest", "midpoint"}, default "linear"
        The value of ``"quantile"`` between two values of a group, as in `numpy.quantile`.
    fill_value : object, optional
        The result of an empty group, converted to the dtype of the result like the `fill_value` of
        an operator. The default is 0 for sums and counts, 1 for products, False for ``"any"``, True
        for ``"all"``, -inf for ``"logsumexp"``, and NaN or NaT for the other functions, if the
        result's dtype has it.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds entries: raise IndexError, clip to the nearest group, wrap around
        (floor modulo), or drop the value. ``"fill"`` is the same as ``"drop"``.
    negative : bool, default False
        If True, entries from -size to -1 count from the end. If False, they are out of bounds.

    Returns
    -------
    numpy.ndarray or dict of numpy.ndarray
        A new C-contiguous array of the shape of `values`, with `size` instead of
        ``values.shape[axis]``, or a dict of such arrays if `func` is a list. For tensors and JAX
        arrays, an array of the same framework. A list `q` is a new first dimension. The dtype is
        int64 for counts and positions, bool for ``"any"`` and ``"all"``, float64 for ``"var"``,
        ``"std"``, ``"logsumexp"``, ``"median"``, interpolated quantiles and weighted means of
        integers, the real dtype for ``"var"`` and ``"std"`` of complex numbers, and otherwise the
        dtype of `values`.

    Raises
    ------
    TypeError
        If `size`, `axis` or `ddof` is not an integer, `negative` is not a boolean, `groups` has a
        non-integer dtype, the function is not defined for the dtype of `values`, or an operand is
        not an array, is masked or belongs to another framework.
    ValueError
        If `func`, `mode`, `method`, `q` or `axis` has an invalid value, a function does not take
        `weights`, `dtype` or `q`, `ddof` is not 0 with `weights`, `size` or `ddof` is negative, the
        shapes do not match, `fill_value` does not convert, or a group is empty, `fill_value` is not
        given and the result has no NaN. The message names the first such group.
    IndexError
        If an entry is out of bounds in mode ``"raise"``, or cannot be clipped or wrapped because
        `size` is 0. The message names the first such entry in row-major order.

    See Also
    --------
    transform : Functions whose result has the shape of the values.
    aggregate : The same reductions with the arguments and results of numpy_groupies.
    gatherum.scatter_slices : Reduce into an array with existing values.

    Notes
    -----
    The bits are the same for any number of threads. Sums, products, means, maxima and minima follow
    the rules of `gatherum.scatter_slices` without existing values: they are left folds in row-major
    order, float16 and bfloat16 accumulate in float32 and round once, integers wrap around, and sums
    of bools are logical or. The mean of integers divides a 64-bit sum, which wraps around, and
    rounds toward minus infinity.

    A variance is the left fold of ``d * d``, divided by ``n - ddof``, in float64. d is the distance
    of a value from the exact mean of the group (``"fmean"``). For complex numbers the square is
    ``abs(d)**2``. For integers, d is the exact distance from the mean rounded down, and the fold is
    corrected by the mean of d. The result is rounded once to its dtype. A standard deviation is the
    square root of the float64 variance, rounded once. Groups of `ddof` or fewer values are NaN.

    With weights, a sum is the left fold of ``w * x``, and a mean is this sum divided by the left
    fold of ``w``, in float64 for integers, and in float32 for float16 and bfloat16. A variance is
    the weighted mean of ``d * d`` in float64, where d is the distance from the weighted mean.
    Groups whose weights sum to 0 are NaN. Functions with the prefix ``nan`` also skip the weights
    of NaN values; a NaN weight is not skipped.

    ``"quantile"`` is `numpy.quantile` of the values of a group for a Python float `q`, and
    ``"median"`` is the quantile 0.5: the position of the quantile is computed in float64, and the
    interpolation step by step in the dtype of the values, or in float64 for integers, whose
    differences do not wrap around. A group with NaN is NaN. ``"nunique"`` counts distinct values,
    and ``"mode"`` is the smallest of the most frequent ones. NaN equals NaN here and is the largest
    value; zeros of both signs are equal.

    ``"logsumexp"`` is ``m + log(sum(exp(x - m)))``, where m is the largest value of the group, or 0
    if the largest value is infinite. It is computed in float32 for float16 and bfloat16, and in
    float64 for integers, and is rounded once. exp and log are implemented in this package (see the
    semantics), with the same bits on every machine.

    ``"argmax"`` and ``"argmin"`` return the first position along `axis` of the largest or smallest
    value. Zeros of both signs are equal. If a group has a NaN, the result is the position of its
    first NaN, as in `numpy.argmax`. ``"first"`` and ``"last"`` copy bits, for every dtype.
    Functions that skip NaN treat a group of only NaN as empty.

    NaT of datetime64 and timedelta64 is treated like NaN. These dtypes support ``"max"``,
    ``"min"``, ``"argmax"``, ``"argmin"``, ``"first"``, ``"last"`` and ``"count"``, and these
    functions with the prefix ``nan``.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> gatherum.groups.reduce([1.0, 2.0, 4.0], [1, 1, 0], func="mean")
    array([4. , 1.5])
    >>> gatherum.groups.reduce([1.0, 2.0, 4.0], [1, 1, 0], 3, "max")
    array([ 4.,  2., nan])
    >>> gatherum.groups.reduce([[3, 9], [7, 5], [7, 0]], [0, 1, 1], func="argmax")
    array([[0, 0],
           [1, 1]])
    >>> gatherum.groups.reduce([[3, 9], [7, 5]], [[0, 1], [0, 0]], func="sum", axis=1)
    array([[ 3,  9],
           [12,  0]])
    >>> gatherum.groups.reduce([10, 20, 30], [0, 0, 1], func="mean", weights=[1, 3, 2])
    array([17.5, 30. ])
    >>> gatherum.groups.reduce([1, 5, 2, 7], [0, 0, 0, 1], func="quantile", q=0.75)
    array([3.5, 7. ])
    >>> gatherum.groups.reduce([1, 2, 4], [1, 1, 0], func=["max", "count"])
    {'max': array([4, 2]), 'count': array([1, 2])}
    """
    if unknown:
        raise unknown_argument("groups.reduce", unknown)
    names = options.names_of(REDUCE, func, ALIASES)
    less = as_ddof(REDUCE, ddof)
    for argument, value in (("weights", weights), ("dtype", dtype)):
        options.check_taken(REDUCE, names, argument, value)
    share = options.as_q(REDUCE, names, q)
    how = plain_values.as_choice(REDUCE, "method", method, METHODS, {})
    if isinstance(share, tuple) and has_labels(values):
        raise errors.one_quantile(REDUCE)
    if weights is not None and less:
        raise errors.no_ddof(REDUCE, less)
    array, by = _grouped(REDUCE, values, groups, size, axis, mode, negative, weights)
    array, scale = _converted(names, array, by, values, weights, dtype)

    def run(name: str) -> Any:
        row = FUNCTIONS[options.plain(name)]
        row = row if scale is None else weighted.row_with(row, scale)
        if row.name == "quantile" and share is not None:
            if isinstance(share, tuple) and hasattr(by.xp, "in_blocks"):
                rows = (options.row_with_q(row, one, how) for one in share)
                each = [reduced(name, array, by, less, fill_value, one) for one in rows]
                return by.xp.stack(each, 0)
            row = options.row_with_q(row, share, how)
        call = partial(reduced, name, array, by, less, fill_value, row)
        if not has_labels(values):
            return call()
        return renumbered(REDUCE, "groups", values, by.axis, groups, "group", call)

    return run(names[0]) if isinstance(func, str) else {name: run(name) for name in names}


def _converted(
    names: Sequence[str], array: Array, by: Grouping, values: object, weights: object, dtype: object
) -> tuple[Array, Array | None]:
    """Convert values and weights to `dtype`, or else to their common dtype."""
    xp, scale = by.xp, None
    kind = xp.kind(array) if dtype is None else xp.as_dtype(by.op, "dtype", dtype)
    if weights is not None:
        if has_labels(values):
            check_numbers(by.op, "weights", values, by.axis, weights)
        plain = plain_array(weights)
        scale = options.as_weights(by.op, xp, plain, array, by.axis, kind)
        kind = kind if dtype is not None else options.common_dtype(kind, xp.kind(scale))
    if kind == xp.kind(array) and scale is None:
        return array, None
    for name in names:
        check_defined(by.op, FUNCTIONS[options.plain(name)], name, kind)
    with np.errstate(all="ignore"), by.float_mode():
        array = xp.astype(array, xp.dtype(kind))
        real = np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind
        return array, None if scale is None else xp.astype(scale, xp.dtype(real))


def as_ddof(op: str, value: object) -> int:
    """Convert `ddof` to an int of at most 64 bits, as no group has more values."""
    return min(plain_values.as_size(op, "ddof", value), MAX_BYTES)


def reduced(
    name: str,
    values: Array,
    by: Grouping,
    ddof: int,
    fill_value: object,
    row: FunctionRow | None = None,
) -> Array:
    """Run `reduce` on an array and its grouping, by the function's row or one with arguments."""
    xp, skips = by.xp, name not in FUNCTIONS
    row = row or FUNCTIONS[options.plain(name)]
    kind = xp.kind(values)
    check_defined(by.op, row, name, kind)
    dtype = row.result(kind)
    _check_result(by, dtype)
    start = start_of(row, dtype, by, values, fill_value)
    if row.sorts and (in_blocks := getattr(xp, "in_blocks", None)) is not None:
        if start is None:
            raise errors.unknown_groups(by.op)
        call = partial(reduced, name, ddof=ddof, fill_value=fill_value, row=row)
        return in_blocks(name, call, values, by, dtype)
    with np.errstate(all="ignore"), by.float_mode():  # signaling NaN also warns
        if skips and has_nan(kind) and xp.holds_any(left_out := xp.isnan(values)):
            by = by.without(left_out)
        if start is not None:
            return row.compose(values, by, start, ddof)
        # Empty groups get a number that no group of values can have, and are found by it. If the
        # number is only unlikely, its absence proves that no group is empty.
        number = row.unlikely(dtype)
        start = xp.full((), number or 0, xp.dtype(dtype), values)
        result = None if number is None else row.compose(values, by, start, ddof)
        place = by.first_empty(by.filled() if result is None else result != start)
        if place is not None and result is not None and not row.locates:
            place = by.first_empty(by.filled())
        if place is not None:
            where = place if by.elements else ()
            raise errors.empty_group(by.op, name, dtype, place[by.axis], where)
        return row.compose(values, by, start, ddof) if result is None else result


def _check_result(by: Grouping, dtype: AnyDType) -> None:
    if all(type(n) is int for n in by.shape):  # otherwise they are symbols of a graph
        shape_limits.check_result(by.op, by.shape, dtype)


def check_defined(op: str, row: FunctionRow | TransformRow, name: str, dtype: AnyDType) -> None:
    """Raise TypeError for a dtype that a function is not defined for."""
    if row.accepts(dtype):
        return
    needs = None
    if isinstance(dtype, np.dtype):
        nearest = WIDEST.get(dtype.char, dtype.newbyteorder("="))
        known = nearest if dtype.char in WIDEST else "native byte order"
        needs = known if row.accepts(nearest) else None
    raise errors.not_defined(op, name, dtype, needs)


def start_of(
    row: FunctionRow, dtype: AnyDType, by: Grouping, values: Array, fill_value: object
) -> Array | None:
    """Return the result of an empty group as an item, None if empty groups are an error."""
    if fill_value is None:
        if row.empty is None and not has_nan(dtype):
            return None
        fill_value = not_a_number(dtype) if row.empty is None else row.empty
        fill_value = bool(fill_value) if dtype.kind == "b" else fill_value
    try:
        return by.xp.item(by.op, dtype, fill_value, values)
    except (TypeError, ValueError) as error:
        raise errors.fill_of_result(error) from None


@overload
def transform(
    values: NDArray[Any],
    groups: ArrayLike,
    func: TransformName,
    axis: int = 0,
    *,
    size: int | None = None,
    method: RankMethod = "average",
    mode: ModeName = "raise",
    negative: bool = False,
) -> NDArray[Any]: ...


@overload
def transform(
    values: Foreign,
    groups: Any,
    func: TransformName,
    axis: int = 0,
    *,
    size: int | None = None,
    method: RankMethod = "average",
    mode: ModeName = "raise",
    negative: bool = False,
) -> Foreign: ...


@overload
def transform(
    values: ArrayLike,
    groups: ArrayLike,
    func: TransformName,
    axis: int = 0,
    *,
    size: int | None = None,
    method: RankMethod = "average",
    mode: ModeName = "raise",
    negative: bool = False,
) -> NDArray[Any]: ...
def transform(
    values: Any,
    groups: Any,
    func: TransformName,
    axis: int = 0,
    *,
    size: int | None = None,
    method: RankMethod = "average",
    mode: ModeName = "raise",
    negative: bool = False,
    **unknown: Never,
) -> Any:
    """Normalize, centre, softmax, accumulate or rank the values of each group.

    Parameters
    ----------
    values : array_like
        The values, as in `reduce`.
    groups : array_like of int
        The groups, as in `reduce`.
    func : str
        ``"centre"`` subtracts the mean of the group. ``"normalize"`` also divides by the standard
        deviation of the group. ``"softmax"`` is ``exp(x - m) / sum(exp(x - m))``, where m is the
        largest value of the group. ``"log_softmax"`` is ``x - m - log(sum(exp(x - m)))``.
        ``"cumsum"``, ``"cumprod"``, ``"cummax"`` and ``"cummin"`` fold the values of the group up
        to and including each value. ``"cumcount"`` is the number of earlier values of the group,
        and ``"rank"`` the rank of each value in its group, from 1.
    axis : int, default 0
        The axis of `values` along which groups are formed, in ``[-values.ndim, values.ndim)``.
    size : int, optional
        The number of groups. The default is the largest entry plus one.
    method : {"average", "ordinal", "min", "max", "dense"}, default "average"
        The rank of equal values: the mean of their ranks, their ranks in row-major order, the
        smallest or the largest of their ranks, or the rank among the distinct values.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds entries, as in `reduce`. Dropped values become NaN or NaT, in
        dtypes without it 0, and -1 for ``"cumcount"``.
    negative : bool, default False
        If True, entries from -size to -1 count from the end. If False, they are out of bounds.

    Returns
    -------
    numpy.ndarray
        A new C-contiguous array of the shape and dtype of `values`; the dtype is float64 for
        average ranks, int64 for counts and other ranks, and float64 if `values` has integers and
        the function is not a cumulative fold. For tensors and JAX arrays, an array of the same
        framework.

    Raises
    ------
    TypeError
        If `size` or `axis` is not an integer, `negative` is not a boolean, `groups` has a
        non-integer dtype, the function is not defined for the dtype of `values` (all functions
        support integers and floats; ``"centre"`` and ``"cumsum"`` also support complex numbers,
        cumulative functions and ranks bools, maxima, minima and ranks dates), or an operand is
        not an array, is masked or belongs to another framework.
    ValueError
        If `func`, `method`, `mode` or `axis` has an invalid value, `size` is negative, or the
        shapes do not match.
    NotImplementedError
        If cumulative folds are called on tensors or JAX arrays, or cumulative functions or ranks on
        Dask arrays with several chunks along `axis`.
    IndexError
        If an entry is out of bounds, as in `reduce`.

    See Also
    --------
    reduce : Return one result for each group.

    Notes
    -----
    ``"centre"`` and ``"normalize"`` are computed in float64 from the exact mean and rounded once.
    The softmax functions are computed in float32 for float16 and bfloat16, in float64 for integers,
    and otherwise in the dtype of the values; the results are rounded once. Sums are left folds. exp
    and log are implemented in this package, with the same bits on every machine. Every NaN in a
    result is the canonical quiet NaN. ``"normalize"`` returns NaN if all values of a group are
    equal. The softmax functions return NaN if ``x - m`` is NaN, because the largest value of the
    group is infinite.

    Cumulative folds are left folds in row-major order, with the rules of `reduce`: float16 and
    bfloat16 accumulate in float32, each result is rounded once, and integers wrap around. In ranks,
    NaN is the largest value, and zeros of both signs are equal.

    Examples
    --------
    >>> import gatherum
    >>> gatherum.groups.transform([1.0, 5.0, 7.0, 9.0], [0, 0, 1, 1], "normalize")
    array([-1.,  1., -1.,  1.])
    >>> gatherum.groups.transform([1, 3, 5], [0, 0, 1], "centre")
    array([-1.,  1.,  0.])
    >>> gatherum.groups.transform([3, 4, 5, 6], [0, 1, 0, 1], "cumsum")
    array([ 3,  4,  8, 10])
    >>> gatherum.groups.transform([7.0, 5.0, 7.0, 9.0], [0, 0, 0, 1], "rank")
    array([2.5, 1. , 2.5, 1. ])
    """
    if unknown:
        raise unknown_argument("groups.transform", unknown)
    name = plain_values.as_choice(TRANSFORM, "func", func, tuple(TRANSFORMS), ALIASES)
    ties = plain_values.as_choice(TRANSFORM, "method", method, RANKS, {})
    array, by = _grouped(TRANSFORM, values, groups, size, axis, mode, negative)
    row = TRANSFORMS[name]
    row = options.row_with_rank(row, ties) if name == "rank" else row
    result: NDArray[Any] = transformed(name, array, by, row)
    return values.copy(deep=False, data=result) if has_labels(values) else result


def transformed(name: str, values: Array, by: Grouping, row: TransformRow | None = None) -> Array:
    """Run `transform` on an array and its grouping, by the function's row or one with arguments."""
    row, xp = row or TRANSFORMS[name], by.xp
    kind = xp.kind(values)
    check_defined(by.op, row, name, kind)
    dtype = row.result(kind)
    _check_result(by, dtype)
    if row.sorts and (in_blocks := getattr(xp, "in_blocks", None)) is not None:
        return in_blocks(name, partial(transformed, name, row=row), values, by, dtype, True)
    with np.errstate(all="ignore"), by.float_mode():
        to = xp.dtype(dtype)
        if (result := by.fused(name, values)) is not None:
            return result if result.dtype == to else xp.rounded(result, to)
        return row.compose(values, by, to)


def _grouped(
    op: str,
    values: object,
    groups: object,
    size: object,
    axis: object,
    mode: object,
    negative: object,
    weights: object = None,
) -> tuple[Array, Grouping]:
    """Check the arguments. Return the values as an array, and their grouping."""
    along = plain_values.as_integer(op, "axis", axis)
    mode_name = plain_values.as_choice(op, "mode", mode, MODES)
    from_end = plain_values.as_boolean(op, "negative", negative)
    if isinstance(size, str) and (word := ALIASES.get(size, size)) in REDUCES:
        raise not_an_integer(op, "size", size, f"func={word!r}")
    labelled = values if has_labels(values) else None
    of = groups
    if labelled is not None:
        values, groups = plain_array(values), plain_array(groups)
    operands = {"values": values, "groups": groups, "weights": plain_array(weights)}
    xp = registry.namespace(op, operands) or namespace
    number = None if size is None else xp.as_size(op, "size", size)
    array = xp.as_values(op, "values", values)
    entries = xp.as_groups(op, "groups", groups, array)
    if not is_index(xp.kind(entries)):
        raise errors.not_groups(op, xp.kind(entries))
    whole = tuple(array.shape)
    try:
        along = shape_limits.resolve_axis(op, whole, along)
    except ValueError as error:
        raise renamed(error, op, {"data": "values"}) from None
    if tuple(entries.shape) not in (whole, whole[along : along + 1]):
        raise errors.other_groups(op, whole[along], whole, tuple(entries.shape))
    if labelled is not None:
        check_numbers(op, "groups", labelled, along, of)
    if number is None:
        number = xp.size_of(op, "groups", entries)
        options.check_dense(op, number, tuple(entries.shape))
    shape = (*whole[:along], number, *whole[along + 1 :])
    return array, Grouping.of(op, "groups", entries, shape, along, mode_name, from_end, xp)
