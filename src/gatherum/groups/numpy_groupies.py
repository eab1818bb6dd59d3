"""`aggregate`: reductions of groups with the arguments and results of numpy_groupies."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gatherum._arguments import conversion, indices, plain_values
from gatherum._arguments.casting import has_nan
from gatherum._arguments.xarray_labels import refuse_labels
from gatherum._model import shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import check_movable, is_index
from gatherum._model.errors import Shape, group_out_of_bounds, out_of_range, unknown_argument
from gatherum._system import native

from . import errors
from .evaluation import run_function
from .functions import FUNCTIONS
from .grouping import Grouping
from .numpy_groupies_dtypes import (
    DEFAULT_FILL_VALUE,
    filled,
    holds_fill,
    plain_name,
    result_dtype,
    working_dtype,
)
from .options import as_ddof

AGGREGATE = "groups.aggregate"

_PLAIN = (
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "first", "last", "len",
    "any", "all", "sumofsquares",
)  # fmt: skip
NAMES = (*_PLAIN, *(f"nan{name}" for name in _PLAIN), "anynan", "allnan")
# Functions of numpy_groupies that this package does not have.
_ABSENT = (
    "cumsum", "cumprod", "cummax", "cummin", "median", "quantile", "percentile", "trapezoid",
    "skew", "kurt", "nunique",
)  # fmt: skip
ABSENT = (*_ABSENT, *(f"nan{name}" for name in _ABSENT), "sort", "array")
ALIASES = {
    "or": "any", "and": "all", "add": "sum", "plus": "sum", "count": "len", "multiply": "prod",
    "product": "prod", "times": "prod", "amax": "max", "maximum": "max", "amin": "min",
    "minimum": "min", "split": "array", "splice": "array", "sorted": "sort", "asort": "sort",
    "asorted": "sort", "rsorted": "sort", "dsort": "sort", "kurtosis": "kurt",
}  # fmt: skip
# The name of each supported Python or NumPy function.
CALLABLES: dict[Callable[..., Any], str] = {
    **dict.fromkeys((sum, np.sum, np.add), "sum"),
    **dict.fromkeys((np.prod, np.multiply), "prod"),
    **dict.fromkeys((max, np.max, np.amax, np.maximum), "max"),
    **dict.fromkeys((min, np.min, np.amin, np.minimum), "min"),
    **dict.fromkeys((any, np.any), "any"),
    **dict.fromkeys((all, np.all), "all"),
    **dict.fromkeys((sorted, np.sort), "sort"),
    **dict.fromkeys((slice, list, np.array, np.asarray), "array"),
    **{getattr(np, name): name for name in ("mean", "var", "std", "argmax", "argmin")},
    **{getattr(np, name): name for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")},
    **{getattr(np, name): name for name in NAMES if name.startswith("nan") and hasattr(np, name)},
    len: "len",
}


def aggregate(
    group_idx: ArrayLike,
    a: ArrayLike,
    func: str | Callable[..., Any] = "sum",
    size: int | tuple[int, ...] | None = None,
    fill_value: Any = DEFAULT_FILL_VALUE,
    order: Literal["C", "F"] = "C",
    dtype: DTypeLike | None = None,
    axis: int | None = None,
    ddof: int = 0,
    **unknown: Never,
) -> NDArray[Any]:
    """Reduce the values of each group, with the arguments and results of numpy_groupies.

    Parameters
    ----------
    group_idx : array_like of int
        The groups, counted from 0. A one-dimensional array has one entry for each value along
        `axis`. If `axis` is given, `group_idx` may also have a shape that broadcasts to the shape
        of `a`, with one entry for each value. If `axis` is not given, `group_idx` may also have two
        dimensions: ``group_idx[:, i]`` is then the position of value i in a result that has one
        dimension for each row of `group_idx`.
    a : array_like
        The values, one-dimensional unless `axis` is given. For ``"sum"``, ``"prod"`` and ``"len"``,
        `a` may also be a scalar.
    func : str or callable, default "sum"
        ``"sum"``, ``"prod"``, ``"mean"``, ``"var"``, ``"std"``, ``"max"``, ``"min"``, ``"argmax"``,
        ``"argmin"``, ``"first"``, ``"last"``, ``"len"``, ``"any"``, ``"all"`` or
        ``"sumofsquares"``, one of these with the prefix ``nan``, ``"anynan"`` or ``"allnan"``; an
        alias of numpy_groupies, such as ``"add"`` and ``"count"``; or a Python or NumPy function
        with one of these names.
    size : int or tuple of int, optional
        The number of groups. If `group_idx` has two dimensions, a tuple with one number for each
        row of `group_idx`. The default is the largest entry plus one.
    fill_value : object, optional
        The result of an empty group. The default, as in numpy_groupies 0.16, is 0 for ``"sum"``,
        ``"len"`` and ``"sumofsquares"``, 1 for ``"prod"``, -1 for ``"argmax"`` and ``"argmin"``,
        False for ``"any"``, ``"all"``, ``"anynan"`` and ``"allnan"``, and NaN for ``"mean"``,
        ``"var"`` and ``"std"``. For ``"max"``, ``"min"``, ``"first"`` and ``"last"`` it is NaN or
        NaT if the result's dtype has one, an item of zero bytes for text and records, and 0 for all
        other dtypes. The prefix ``nan`` does not change the default.
    order : {"C", "F"}, default "C"
        The memory order of a multi-dimensional result.
    dtype : data-type, optional
        The dtype of the result.
    axis : int, optional
        The axis of `a` along which groups are formed.
    ddof : int, default 0
        For ``"var"`` and ``"std"``, the divisor for a group of n values is ``n - ddof``.

    Returns
    -------
    numpy.ndarray
        An array of shape ``(size,)``, of shape `size` if `size` is a tuple, or of the shape of `a`
        with `size` instead of ``a.shape[axis]``.

    Raises
    ------
    NotImplementedError
        If `func` is another function of numpy_groupies (such as ``"median"``, ``"sort"``,
        ``"array"`` or ``"cumsum"``), or another callable.
    TypeError
        If `group_idx` has a non-integer dtype, the function is not defined for the dtype of `a`,
        or its result cannot have the dtype `dtype`.
    ValueError
        If an entry is out of bounds, the shapes do not match, `func`, `order` or `axis` has an
        invalid value, or `fill_value` does not convert.

    See Also
    --------
    reduce : The same reductions with this package's names and rules.
    gatherum.aggregate : A different function, which gathers rows along the edges of a graph and
        reduces them by destination.

    Notes
    -----
    Arguments and results are the same as in numpy_groupies 0.16; the section "In the place of
    numpy_groupies" of the page on groups lists the differences. As in numpy_groupies, the result of
    ``"argmax"`` and ``"argmin"`` is `fill_value` for a group with NaN, and the result of ``"var"``
    and ``"std"`` is `fill_value` for a group of `ddof` or fewer values. Sums and means of floats
    are left folds in float64, rounded once; sums of integers are exact modulo 2**64. For
    longdouble, only functions that copy or count values are supported.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> gatherum.groups.aggregate(np.array([0, 1, 3, 1]), np.array([4.0, 1.0, 5.0, 2.0]), "mean")
    array([4. , 1.5, nan, 5. ])
    >>> gatherum.groups.aggregate([3, 1, 1], [7, 8, 9], np.max, fill_value=-1)
    array([-1,  9, -1,  7])
    >>> gatherum.groups.aggregate([[0, 0, 1], [0, 1, 1]], 1)
    array([[1, 1],
           [0, 1]])
    """
    if unknown:
        raise unknown_argument("groups.aggregate", unknown)
    name = _as_name(func)
    checked_ddof = as_ddof(AGGREGATE, ddof)
    layout: Any = plain_values.as_choice(AGGREGATE, "order", order, ("C", "F"))
    try:
        values, grouping, shape = _grouped(group_idx, a, name, size, layout, axis)
        with native.FloatMode():
            result = _reduced(name, values, grouping, fill_value, dtype, checked_ddof)
    except IndexError as error:  # numpy_groupies raises ValueError
        raise ValueError(str(error)) from None
    if len(shape) != result.ndim:
        return np.reshape(result, shape, order=layout)
    return result if layout == "C" else np.asarray(result, order="F")


def _as_name(func: object) -> str:
    """Return this module's name for a function, or raise if the function is not supported."""
    try:
        name = ALIASES.get(func, func) if isinstance(func, str) else CALLABLES.get(func)  # type: ignore[call-overload]  # any key
    except TypeError:  # not hashable
        name = None
    if isinstance(name, str) and name in NAMES:
        return name
    refusal = errors.unknown_function(AGGREGATE, func, NAMES, ALIASES)
    if callable(func) or name in ABSENT:
        raise NotImplementedError(str(refusal))
    raise refusal


def _grouped(
    group_idx: object, a: object, name: str, size: object, order: Any, axis: object
) -> tuple[NumpyArray, Grouping, Shape]:
    """Return the values, their grouping, and the shape of the result."""
    refuse_labels(AGGREGATE, "gatherum.groups.reduce keeps names", group_idx=group_idx, a=a)
    values = conversion.as_array(AGGREGATE, "a", a)
    entries = conversion.as_indices(AGGREGATE, group_idx, "group_idx")
    if not is_index(entries.dtype):
        raise errors.not_groups(AGGREGATE, entries.dtype, "group_idx")
    check_movable(AGGREGATE, "a", values.dtype)
    along = 0
    if axis is not None:
        along = plain_values.as_integer(AGGREGATE, "axis", axis)
        if not -values.ndim <= along < values.ndim:
            raise out_of_range(AGGREGATE, "axis", along, -values.ndim, values.ndim)
        along %= values.ndim
    elif values.ndim > 1:
        raise errors.needs_axis(AGGREGATE, values.ndim)
    elif values.ndim == 0:
        if name not in ("sum", "prod", "len"):
            raise errors.no_scalar(AGGREGATE, name)
        values = np.broadcast_to(values, entries.shape[-1:] or (1,))
    rows = entries.shape[:-1] if axis is None and entries.ndim == 2 else ()
    if axis is not None and entries.ndim == values.ndim > 1:
        return _grouped_each(entries, values, size, along)
    if entries.shape != (*rows, values.shape[along]):
        expected = *rows, values.shape[along]
        raise errors.other_length(
            AGGREGATE, expected, entries.shape, None if axis is None else along
        )
    sizes = _sizes(entries if rows else entries[np.newaxis], size, bool(rows))
    if rows:
        shape_limits.check_result(AGGREGATE, sizes, values.dtype)
        return values, _grouping(_flat(entries, sizes, order), (prod(sizes),), 0), sizes
    shape = (*values.shape[:along], *sizes, *values.shape[along + 1 :])
    return values, _grouping(entries, shape, along), shape


def _grouped_each(
    entries: NumpyArray, values: NumpyArray, size: object, axis: int
) -> tuple[NumpyArray, Grouping, Shape]:
    """Return the values, their grouping and the shape of the result, for groups that broadcast to
    the shape of the values.
    """
    if any(n not in (1, m) for n, m in zip(entries.shape, values.shape, strict=True)):
        raise errors.other_group_shape(AGGREGATE, entries.shape, values.shape)
    sizes = _sizes(entries[np.newaxis], size, False)
    shape = (*values.shape[:axis], *sizes, *values.shape[axis + 1 :])
    every_entry = np.broadcast_to(entries, values.shape)
    return values, _grouping(every_entry, shape, axis), shape


def _flat(entries: NumpyArray, sizes: Shape, order: Any) -> NumpyArray:
    """Return the flat index of each column of entries in a result of these sizes."""
    if not sizes:
        raise errors.no_rows(AGGREGATE, entries.shape)
    invalid = indices.first_invalid(entries.T, sizes, "raise", False, True)
    if invalid is not None:
        coordinates = invalid.component, *invalid.where
        size = sizes[invalid.component]
        raise group_out_of_bounds(
            AGGREGATE, invalid.value, size, coordinates, "raise", "group_idx", negative=False
        )
    strides = shape_limits.contiguous_strides(sizes if order == "C" else sizes[::-1], 1)
    flat: NumpyArray = np.array(strides if order == "C" else strides[::-1]) @ entries.astype(
        np.intp
    )
    return flat


def _grouping(groups: NumpyArray, shape: Shape, axis: int) -> Grouping:
    return Grouping.of(AGGREGATE, "group_idx", groups, shape, axis)


def _sizes(entries: NumpyArray, size: object, several: bool) -> Shape:
    """Return the number of groups for each row of entries."""
    if size is None:
        return tuple(max(int(row.max()) + 1, 0) if row.size else 0 for row in entries)
    if several != isinstance(size, (tuple, list, np.ndarray)):
        raise errors.other_sizes(AGGREGATE, len(entries) if several else None, size)
    sizes = plain_values.as_shape(AGGREGATE, "size", size) if several else (size,)  # type: ignore[arg-type]
    if len(sizes) != len(entries):
        raise errors.other_sizes(AGGREGATE, len(entries), size)
    return tuple(plain_values.as_size(AGGREGATE, "size", extent) for extent in sizes)


def _reduced(
    func: str,
    values: NumpyArray,
    grouping: Grouping,
    fill_value: Any,
    dtype: DTypeLike | None,
    ddof: int,
) -> NumpyArray:
    """Convert the values, reduce and round them, and fill empty groups."""
    name = plain_name(func)
    skips_nan = name != func
    target = result_dtype(AGGREGATE, func, values.dtype, dtype, values.shape[grouping.axis])
    target, fill = filled(AGGREGATE, name, target, fill_value)
    dtype_of_work = working_dtype(name, values.dtype, target).newbyteorder("=")
    with np.errstate(all="ignore"):
        needs_nan_mask = skips_nan or name in ("anynan", "allnan", "argmax", "argmin")
        is_nan = (
            np.isnan(values) if needs_nan_mask and has_nan(values.dtype) else np.zeros((), bool)
        )
        if skips_nan and is_nan.any():
            grouping = grouping.without_values(is_nan)
        if name in ("anynan", "allnan"):
            working_values = np.broadcast_to(is_nan, values.shape)
        else:
            working_values = values.astype(dtype_of_work, copy=False)
        if name == "sumofsquares":
            working_values = working_values * working_values
        result_holds_fill = holds_fill(name, working_values.dtype, target)
        unconverted = run_function(
            FUNCTIONS[_NAMES_HERE.get(name, name)],
            working_values,
            grouping,
            ddof,
            fill if result_holds_fill else 0,
        )
        result: NDArray[Any] = unconverted.astype(target, copy=False)
        empty_count = ddof if name in ("var", "std") else 0
        if empty_count or not result_holds_fill:
            np.copyto(result, fill, where=grouping.count() <= empty_count)
        if name in ("argmax", "argmin") and not skips_nan and is_nan.any():
            np.copyto(result, fill, where=run_function(FUNCTIONS["any"], is_nan, grouping, 0, None))
    return result


# This package's names for functions of numpy_groupies.
_NAMES_HERE = {"len": "count", "sumofsquares": "sum", "anynan": "any", "allnan": "all"}
