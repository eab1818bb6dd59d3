"""`reduce` checks its arguments and evaluates one or several functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Never

from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._arguments.xarray_labels import has_labels, renumbered
from gatherum._model.call_types import typed_as
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName

from . import decimal_reductions, errors, options, overloads
from .decimal_numbers import DecimalNumbers, decimals_in
from .evaluation import run_function, without_dropped_gradients
from .function_names import ReduceName, ReduceNames
from .functions import FUNCTIONS
from .grouping import Grouping
from .operands import converted, values_and_grouping
from .options import ALIASES
from .order_statistics import METHODS, QuantileMethod
from .rows import FunctionRow

REDUCE = "groups.reduce"


@typed_as(overloads.reduce)
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
        DataArray, and otherwise the name ``"group"``.
    groups : array_like of int
        The group numbers, counted from 0. An array of shape ``(values.shape[axis],)`` has one
        number for each position along `axis`; an array of the shape of `values` has one number for
        each value. Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    size : int, optional
        The number of groups. The default is the largest entry plus one. It must be given if that is
        over a million and over 16 times the number of entries; `factorize` renumbers such groups.
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
        The dtype to which values are converted before a ``"sum"``, ``"prod"``, ``"mean"``,
        ``"var"``, ``"std"`` or its nan form. By default, sums of small integers can wrap around.
        For an integer dtype, numbers are truncated, even those that a nan form or `mode` leaves
        out.
    ddof : int, default 0
        For ``"var"`` and ``"std"``, the divisor for a group of n values is ``n - ddof``. Other
        functions ignore it.
    q : float or list of float, optional
        The probability of ``"quantile"``, in [0, 1]. It is required for this function.
    method : {"linear", "lower", "higher", "nearest", "midpoint"}, default "linear"
        The value of ``"quantile"`` between two values of a group, as in `numpy.quantile`. Other
        functions ignore it; ``"median"`` is linear.
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
        arrays, an array of the same framework. A list `q` adds a new first dimension. The dtype is
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
        shapes do not match, `fill_value` does not convert, a number (such as NaN) is outside the
        range of an integer `dtype`, or a group is empty, `fill_value` is not given and the result
        has no NaN. The message names the first such number or group.
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
    differences do not wrap around. The quantile of a group with NaN is NaN. ``"nunique"`` counts
    distinct values, and ``"mode"`` is the smallest of the most frequent ones. NaN equals NaN here
    and is the largest value; zeros of both signs are equal.

    ``"logsumexp"`` is ``m + log(sum(exp(x - m)))``, where m is the largest value of the group, or 0
    if the largest value is infinite. It is computed in float32 for float16 and bfloat16, and in
    float64 for integers, and is rounded once. exp and log are implemented in this package (see the
    semantics), and return the same bits on every machine.

    ``"argmax"`` and ``"argmin"`` return the first position along `axis` of the largest or smallest
    value. Zeros of both signs are equal. If a group has a NaN, the result is the position of its
    first NaN, as in `numpy.argmax`. ``"first"`` and ``"last"`` copy bits, for every dtype.
    Functions that skip NaN treat a group of only NaN as empty.

    NaT of datetime64 and timedelta64 is treated like NaN. These dtypes support ``"max"``,
    ``"min"``, ``"argmax"``, ``"argmin"``, ``"first"``, ``"last"`` and ``"count"``, and these
    functions with the prefix ``nan``.

    Decimals are instances of ``decimal.Decimal`` in an array or a list, or a decimal column of
    Arrow, Polars or pandas. They have at most 38 digits. ``"sum"``, ``"mean"``, ``"max"``,
    ``"min"`` and ``"count"`` are defined for them. Results are arrays of ``decimal.Decimal``, with
    as many digits after the point as the value that has the most. Sums are exact, and do not
    overflow. Means are rounded to the last digit, half to even. `fill_value` is a decimal or an
    integer.

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
    checked_ddof = options.as_ddof(REDUCE, ddof)
    for argument, value in (("weights", weights), ("dtype", dtype)):
        options.check_taken(REDUCE, names, argument, value)
    quantiles = options.as_q(REDUCE, names, q)
    checked_method = plain_values.as_choice(REDUCE, "method", method, METHODS, {})
    if isinstance(quantiles, tuple) and has_labels(values):
        raise errors.one_quantile(REDUCE, "values with names of dimensions")
    if weights is not None and checked_ddof:
        raise errors.no_ddof(REDUCE, checked_ddof)
    arguments = ReduceOptions(
        size=size, axis=axis, mode=mode, negative=negative, weights=weights, dtype=dtype,
        ddof=checked_ddof, quantiles=quantiles, quantile_method=checked_method,
        fill_value=fill_value,
    )  # fmt: skip
    if (numbers := decimals_in(REDUCE, values)) is not None:
        results = results_of_decimals(REDUCE, names, numbers, groups, arguments)
    else:
        results = run_functions(REDUCE, names, values, groups, arguments)
    return results[names[0]] if isinstance(func, str) else results


@dataclass(frozen=True, kw_only=True)
class ReduceOptions:
    """The arguments of a reduction besides the functions, the values and the groups."""

    size: object = None
    axis: object = 0
    mode: object = "raise"
    negative: object = False
    weights: Any = None
    dtype: Any = None
    ddof: int = 0
    quantiles: float | tuple[float, ...] | None = None
    quantile_method: str = "linear"
    fill_value: object = None


def results_of_decimals(
    op: str, names: Sequence[str], numbers: DecimalNumbers, groups: Any, arguments: ReduceOptions
) -> dict[str, Any]:
    """Return the result of each function of decimals, computed with the functions for integers."""
    for argument, value in (("weights", arguments.weights), ("dtype", arguments.dtype)):
        if value is not None:
            raise errors.no_argument_of_decimals(op, argument)

    def reduce_integers(
        names: Sequence[str], integers: NDArray[Any], fill: object
    ) -> dict[str, Any]:
        return run_functions(op, names, integers, groups, replace(arguments, fill_value=fill))

    axis = plain_values.as_integer(op, "axis", arguments.axis)
    return decimal_reductions.reduce_decimals(
        op, names, numbers, reduce_integers, axis, arguments.fill_value
    )


def run_functions(
    op: str, names: Sequence[str], values: Any, groups: Any, arguments: ReduceOptions
) -> dict[str, Any]:
    """Return the result of each function, for the caller `op`."""
    array, grouping = values_and_grouping(
        op, values, groups, arguments.size, arguments.axis, arguments.mode, arguments.negative,
        arguments.weights,
    )  # fmt: skip
    array, scale = converted(names, array, grouping, values, arguments.weights, arguments.dtype)
    if scale is not None:
        array, scale = (without_dropped_gradients(operand, grouping) for operand in (array, scale))

    def result_of(name: str) -> Any:
        row = FUNCTIONS[name]
        row = row if scale is None else row.with_weights(scale)
        call = partial(_run_row, arguments, row, array, grouping)
        if not has_labels(values):
            return call()
        return renumbered(op, "groups", values, grouping.axis, groups, "group", call)

    with grouping.sharing_calls() if len(names) > 1 else nullcontext():
        return {name: result_of(name) for name in names}


def _run_row(arguments: ReduceOptions, row: FunctionRow, array: Any, grouping: Grouping) -> Any:
    """Return the result of one function."""

    def result_of(row: FunctionRow) -> Any:
        return run_function(row, array, grouping, arguments.ddof, arguments.fill_value)

    quantiles, method = arguments.quantiles, arguments.quantile_method
    if "q" not in row.takes or quantiles is None:
        return result_of(row)
    if isinstance(quantiles, tuple) and grouping.xp.in_chunks:
        results = [result_of(options.row_with_q(row, quantile, method)) for quantile in quantiles]
        return grouping.xp.stack(results, 0)
    return result_of(options.row_with_q(row, quantiles, method))
