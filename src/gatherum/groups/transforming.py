"""`transform` checks its arguments and evaluates one function."""

from __future__ import annotations

from typing import Any, Never

from gatherum._arguments import plain_values
from gatherum._arguments.xarray_labels import has_labels
from gatherum._model.call_types import typed_as
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName

from . import options, overloads
from .cumulative import RANKS, RankMethod
from .evaluation import run_transform
from .function_names import TransformName
from .functions import TRANSFORMS
from .operands import values_and_grouping
from .options import ALIASES

TRANSFORM = "groups.transform"


@typed_as(overloads.transform)
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
    """Normalize, centre, accumulate or rank the values of each group, or return their softmax.

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
        smallest or the largest of their ranks, or the rank among the distinct values. Functions
        other than ``"rank"`` ignore it.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds entries, as in `reduce`. Dropped values become NaN or NaT, or 0
        in dtypes without either, and -1 for ``"cumcount"``.
    negative : bool, default False
        If True, entries from -size to -1 count from the end. If False, they are out of bounds.

    Returns
    -------
    numpy.ndarray
        A new C-contiguous array of the shape and dtype of `values`; the dtype is float64 for
        average ranks, int64 for counts and other ranks, and float64 if `values` contains integers
        and the function is not a cumulative fold. For tensors and JAX arrays, an array of the same
        framework.

    Raises
    ------
    TypeError
        If `size` or `axis` is not an integer, `negative` is not a boolean, `groups` has a
        non-integer dtype, the function is not defined for the dtype of `values` (all functions
        support integers and floats; ``"centre"`` and ``"cumsum"`` also support complex numbers;
        cumulative functions and ranks also support bools; maxima, minima and ranks also support
        dates), or an operand is not an array, is masked or belongs to another framework.
    ValueError
        If `func`, `method`, `mode` or `axis` has an invalid value, `size` is negative, or the
        shapes do not match.
    NotImplementedError
        If a cumulative fold is called on tensors or JAX arrays on a device other than the CPU, or
        if a cumulative function or a rank is called on Dask arrays with several chunks along
        `axis`.
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
    and log are implemented in this package, and return the same bits on every machine. Every NaN in
    a result is the canonical quiet NaN. ``"normalize"`` returns NaN if all values of a group are
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
    array, grouping = values_and_grouping(TRANSFORM, values, groups, size, axis, mode, negative)
    row = TRANSFORMS[name]
    row = options.row_with_rank(row, ties) if name == "rank" else row
    result = run_transform(name, array, grouping, row)
    return values.copy(deep=False, data=result) if has_labels(values) else result
