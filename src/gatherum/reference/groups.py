"""The functions over groups, as plain loops that list the values of each group and reduce them.

`reduce` and `transform` have the same arguments as the functions in `gatherum.groups`, and raise
the same types of exceptions. This module is the published definition of the rules of these
functions.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arguments import check_boolean, check_choice
from .elementary import exp, log
from .group_cumulative import CUMULATIVE, RANKS, cumulated
from .group_decimals import decimals_in, reduce_decimals
from .group_members import Members, listed
from .group_numbers import (
    NUMBERS,
    as_dtype,
    fold_of,
    is_nan,
    nan_item,
    number_of,
    real_dtype,
    rounded,
    wide_dtype,
)
from .group_orders import INTERPOLATED, METHODS, nunique, quantile
from .group_orders import mode as most_frequent
from .group_spreads import centred, spread, variance
from .group_weights import CONVERTED, WEIGHTED, weighted, with_weights
from .items import Array, DType, Items, blank, typed
from .reductions import COMPLEXES, HALVES, INTEGERS, folded
from .scalars import fill_item

__all__ = ["factorize", "reduce", "transform"]

# The dtypes of ordered values. The names of dates have no unit here.
ORDERED = NUMBERS - COMPLEXES | {"bool", "datetime64", "timedelta64"}
# The dtypes that each function without the prefix nan is defined for, or None for all dtypes.
REDUCES: dict[str, frozenset[str] | None] = {
    "sum": NUMBERS | {"bool"},
    "prod": NUMBERS | {"bool"},
    "mean": NUMBERS,
    "var": NUMBERS,
    "std": NUMBERS,
    "max": ORDERED,
    "min": ORDERED,
    "argmax": ORDERED,
    "argmin": ORDERED,
    "first": None,
    "last": None,
    "count": None,
    "any": NUMBERS | {"bool"},
    "all": NUMBERS | {"bool"},
    "logsumexp": NUMBERS - COMPLEXES,
    "fsum": NUMBERS - INTEGERS,
    "fmean": NUMBERS - INTEGERS,
    "quantile": NUMBERS - COMPLEXES,
    "median": NUMBERS - COMPLEXES,
    "nunique": ORDERED,
    "mode": ORDERED,
}
TRANSFORMS = {
    "normalize": NUMBERS - COMPLEXES,
    "centre": NUMBERS,
    "softmax": NUMBERS - COMPLEXES,
    "log_softmax": NUMBERS - COMPLEXES,
    "cumsum": NUMBERS | {"bool"},
    "cumprod": (NUMBERS | {"bool"}) - COMPLEXES,
    "cummax": ORDERED,
    "cummin": ORDERED,
    "cumcount": None,
    "rank": ORDERED,
}
FOLDS = {"sum": "add", "prod": "mul", "mean": "mean", "max": "max", "min": "min"}
FOLDS |= {"fsum": "fsum", "fmean": "fmean"}
EMPTY = {"sum": 0, "prod": 1, "count": 0, "any": 0, "all": 1, "logsumexp": -np.inf, "fsum": 0}
EMPTY["nunique"] = 0


def reduce(
    values: ArrayLike,
    groups: ArrayLike,
    size: int | None = None,
    func: str | list[str] = "sum",
    axis: int = 0,
    *,
    weights: Any = None,
    dtype: Any = None,
    ddof: int = 0,
    q: Any = None,
    method: str = "linear",
    fill_value: Any = None,
    mode: str = "raise",
    negative: bool = False,
) -> Any:
    """Reduce the values of each group. For a list of functions, return a dict of their results.

    Examples
    --------
    >>> reduce([1.0, 2.0, 4.0], [1, 1, 0], func="mean")
    array([4. , 1.5])
    """
    op = "groups.reduce"
    if isinstance(func, list):
        more = {"weights": weights, "dtype": dtype, "ddof": ddof, "fill_value": fill_value}
        more |= {"method": method, "mode": mode, "negative": negative}
        shares = {name: q if name.endswith("quantile") else None for name in func}
        return {
            name: reduce(values, groups, size, name, axis, q=shares[name], **more) for name in func
        }
    check_choice(op, "func", func, [*REDUCES, *(f"nan{name}" for name in REDUCES)])
    name = func.removeprefix("nan")
    q, method = _quantile_arguments(op, name, q, method)
    if name == "quantile" and np.ndim(q):
        more = {"method": method, "fill_value": fill_value, "mode": mode, "negative": negative}
        return np.stack([reduce(values, groups, size, func, axis, q=one_q, **more) for one_q in q])
    if (decimals := decimals_in(values)) is not None:
        has_other_arguments = weights is not None or dtype is not None
        place = groups, size, axis, mode, negative
        return _of_decimals(op, func, decimals, place, fill_value, has_other_arguments)
    values, scales = _converted(op, name, values, axis, weights, dtype, ddof)
    values, axis, members = listed(op, values, groups, size, axis, mode, negative, REDUCES[name])
    means = weights is not None and name == "mean" and values.dtype.name in INTEGERS
    result = np.dtype(np.float64) if means else _result_dtype(name, values.dtype, method)
    fill = _of_empty_groups(op, name, result, fill_value)

    out = blank(op, members.shape, result)
    for group in np.ndindex(members.shape):
        members_of_group: Members = members.item(group)
        folded_members = [
            member
            for member in members_of_group
            if func == name or not is_nan(member[1], values.dtype)
        ]
        if folded_members:
            item = _result(name, folded_members, scales, values.dtype, axis, ddof, q, method)
        elif fill is None:
            raise ValueError(f"{op}: group {group[axis]} is empty: `fill_value` must be given")
        else:
            item = fill
        out[group] = np.void(item)
    return typed(out, result)


def _of_empty_groups(op: str, name: str, dtype: DType, fill_value: Any) -> bytes | None:
    """Return the result for groups without values, or None if the caller must pass it."""
    if fill_value is not None:
        return fill_item(op, fill_value, dtype, "fill").tobytes()
    if name in EMPTY:
        return np.asarray(EMPTY[name]).astype(dtype).tobytes()
    nan = nan_item(dtype)
    return None if nan is None else nan.tobytes()


def _of_decimals(
    op: str, func: str, values: Array, place: tuple[Any, Any, Any, str, bool], fill_value: Any,
    has_other_arguments: bool,
) -> Array:  # fmt: skip
    """Reduce decimals. `has_other_arguments`: the call has an argument that is not for them."""
    if has_other_arguments:
        raise TypeError(f"{op}: `weights` and `dtype` must not be given for decimals")
    groups, size, axis, mode, negative = place
    items = np.zeros(values.shape, bool)
    if func == "count":
        more = {"fill_value": fill_value, "mode": mode, "negative": negative}
        counts: Array = reduce(items, groups, size, func, axis, **more)
        return counts
    _, axis, members = listed(op, items, *place, None)
    for group in np.ndindex(members.shape):
        members[group] = [position for position, _ in members[group]]
    return reduce_decimals(op, func, values, members, fill_value, axis)


def factorize(*keys: Any, sort: bool = True) -> tuple[Array, Any]:
    """Return the number of each key, or -1 for a missing one, and the distinct keys.

    Examples
    --------
    >>> factorize([7, 3, 7])
    (array([1, 0, 1]), array([3, 7]))
    """
    check_boolean("groups.factorize", "sort", sort)
    arrays = [np.asarray(key) for key in keys]
    if not arrays:
        raise TypeError("groups.factorize: keys must be given")
    if any(array.shape != arrays[0].shape for array in arrays):
        raise ValueError("groups.factorize: the keys have other shapes")
    tuples = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
    first_positions: dict[Any, int] = {}
    for i, key in enumerate(tuples):
        if all(item is not None and item == item for item in key):  # noqa: PLR0124  # NaN
            first_positions.setdefault(key, i)
    distinct = sorted(first_positions) if sort else list(first_positions)
    group_numbers = [distinct.index(key) if key in first_positions else -1 for key in tuples]
    labels = tuple(array.ravel()[[first_positions[key] for key in distinct]] for array in arrays)
    shaped = np.array(group_numbers, np.int64).reshape(arrays[0].shape)
    return shaped, labels if len(labels) > 1 else labels[0]


def _quantile_arguments(op: str, name: str, q: Any, method: str) -> tuple[Any, str]:
    check_choice(op, "method", method, METHODS)
    if name == "median":
        if q is not None:
            raise ValueError(f"{op}: got `q` for 'median'")
        return 0.5, "linear"
    if (name == "quantile") != (q is not None) or (q is not None and not np.min(q) >= 0):
        raise ValueError(f"{op}: got `q` {q!r} for {name!r}")
    return q, method


def _converted(
    op: str, name: str, values: Any, axis: int, weights: Any, dtype: Any, ddof: int
) -> tuple[Any, Any]:
    """Convert values to `dtype`, and values and weights to their common dtype."""
    if operator.index(ddof) < 0:
        raise ValueError(f"{op}: `ddof` must be at least 0, got {ddof}")
    if (dtype is not None and name not in CONVERTED) or (weights is not None and ddof):
        raise ValueError(f"{op}: got `dtype` {dtype} and `weights` for {name!r}, `ddof` {ddof}")
    target = None if dtype is None else np.dtype(dtype)
    if weights is None:
        return (values if target is None else as_dtype("values", np.asarray(values), target)), None
    if name not in WEIGHTED:
        raise ValueError(f"{op}: got `weights` for {name!r}")
    return with_weights(np.asarray(values), weights, axis, target)


def transform(
    values: ArrayLike,
    groups: ArrayLike,
    func: str,
    axis: int = 0,
    *,
    size: int | None = None,
    method: str = "average",
    mode: str = "raise",
    negative: bool = False,
) -> Array:
    """Normalize, centre, accumulate or rank the values of each group, or return their softmax.

    Values without a group become NaN, or 0 for dtypes without NaN, or -1 for counts.

    Examples
    --------
    >>> transform([1.0, 3.0, 5.0], [0, 0, 1], "centre")
    array([-1.,  1.,  0.])
    """
    op = "groups.transform"
    check_choice(op, "func", func, list(TRANSFORMS))
    check_choice(op, "method", method, list(RANKS))
    values, _, members = listed(op, values, groups, size, axis, mode, negative, TRANSFORMS[func])
    if func in CUMULATIVE:
        return cumulated(func, values, members, method)
    wide = wide_dtype(values.dtype)
    result = wide if values.dtype.name in INTEGERS else values.dtype
    out = np.full(values.shape, nan_item(result), result)
    for group in np.ndindex(members.shape):
        items = [item for _, item in members[group]]
        with np.errstate(all="ignore"):
            results = _transformed(func, items, values.dtype) if items else []
            for (position, _), value in zip(members[group], results, strict=True):
                out[position] = rounded(value, result)
    return out


def _transformed(func: str, items: Items, dtype: DType) -> list[Any]:
    """Transform the values of one group."""
    if func == "centre":
        return centred(items, dtype)
    if func == "normalize":
        deviation = np.sqrt(variance(items, dtype, 0))
        return [distance / deviation for distance in centred(items, dtype)]
    wide = wide_dtype(dtype)
    values = [number_of(item, dtype, wide) for item in items]
    largest = fold_of(values, wide, "max")
    shifted = [value - largest for value in values]
    powers = [exp(value) for value in shifted]
    total = fold_of(powers, wide, "add")
    if func == "softmax":
        return [power / total for power in powers]
    return [value - log(total) for value in shifted]


def _log_sum(items: Items, dtype: DType) -> bytes:
    wide = wide_dtype(dtype)
    values = [number_of(item, dtype, wide) for item in items]
    with np.errstate(all="ignore"):
        shift = fold_of(values, wide, "max")
        shift = wide.type(0) if np.isinf(shift) else shift
        total = fold_of([exp(value - shift) for value in values], wide, "add")
        return rounded(shift + log(total), _result_dtype("logsumexp", dtype)).tobytes()


def _result_dtype(name: str, dtype: DType, method: str = "linear") -> DType:
    if name in ("count", "argmax", "argmin", "nunique"):
        return np.dtype(np.int64)
    if name in ("any", "all"):
        return np.dtype(bool)
    interpolated = name in ("quantile", "median") and method in INTERPOLATED
    if (name == "logsumexp" or interpolated) and dtype.name in INTEGERS:
        return np.dtype(np.float64)
    if name in ("var", "std") and dtype.name not in HALVES:
        return real_dtype(wide_dtype(dtype))
    return dtype


def _result(
    name: str, members: Members, scales: Any, dtype: DType, axis: int, ddof: int, q: Any,
    method: str,
) -> bytes:  # fmt: skip
    """Return the result of one group with at least one value."""
    items = [item for _, item in members]
    if scales is not None:
        return weighted(name, items, [scales[position] for position, _ in members], dtype)
    if name in ("quantile", "median"):
        return quantile(items, dtype, q, method)
    if name == "nunique":
        return np.int64(nunique(items, dtype)).tobytes()
    if name == "mode":
        return most_frequent(items, dtype)
    if name in ("var", "std"):
        return spread(items, dtype, _result_dtype(name, dtype), ddof, name == "std")
    return _reduced(name, members, dtype, axis)


def _reduced(name: str, members: Members, dtype: DType, axis: int) -> bytes:
    items = [item for _, item in members]
    if name in ("argmax", "argmin") or (name in ("max", "min") and dtype.kind in "mM"):
        position = _position(items, dtype, max if name.endswith("max") else min)
        return items[position] if name in FOLDS else np.int64(members[position][0][axis]).tobytes()
    if name in FOLDS:
        return folded(items, dtype, FOLDS[name])
    if name in ("first", "last"):
        return items[0 if name == "first" else -1]
    if name == "count":
        return np.int64(len(items)).tobytes()
    if name in ("any", "all"):
        return bytes([(any if name == "any" else all)(_is_true(item, dtype) for item in items)])
    if name == "logsumexp":
        return _log_sum(items, dtype)
    raise KeyError(f"no definition of {name}")


def _is_true(item: bytes, dtype: DType) -> bool:
    with np.errstate(all="ignore"):
        return item != b"\0" if dtype.name == "bool" else bool(np.frombuffer(item, dtype)[0] != 0)


def _position(items: Items, dtype: DType, extreme: Callable[[list[Any]], Any]) -> int:
    """Return the position of the first NaN, or otherwise of the first largest or smallest value."""
    if dtype.name == "bool":
        values: list[Any] = [item != b"\0" for item in items]
    elif dtype.kind in "mM":  # NaT is handled below
        values = [np.frombuffer(item, np.int64)[0] for item in items]
    else:
        values = [np.frombuffer(item, dtype)[0] for item in items]
    for position, item in enumerate(items):
        if is_nan(item, dtype):
            return position
    return values.index(extreme(values))
