"""The functions over groups as plain loops, which list the values of each group and reduce them.

`reduce` and `transform` have the arguments of the functions of `gatherum.groups`, and raise the
same types of exceptions. This module is the published definition of their rules.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .arguments import as_array, as_axis, check_boolean, check_choice
from .elementary import exp, log
from .items import Array, DType, Items, Position, as_bytes, blank, typed
from .positions import MODES, resolve_all
from .reductions import COMPLEXES, FLOATS, HALVES, INTEGERS, folded, nearest
from .scalars import fill_item

__all__ = ["reduce", "transform"]

NUMBERS = INTEGERS | HALVES | FLOATS | COMPLEXES
# The dtypes of ordered values. The names of dates have no unit here.
ORDERED = NUMBERS - COMPLEXES | {"bool", "datetime64", "timedelta64"}
# The dtypes that each function without the prefix nan is defined for, None for all.
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
}
TRANSFORMS = {
    "normalize": NUMBERS - COMPLEXES,
    "centre": NUMBERS,
    "softmax": NUMBERS - COMPLEXES,
    "log_softmax": NUMBERS - COMPLEXES,
}
FOLDS = {"sum": "add", "prod": "mul", "mean": "mean", "max": "max", "min": "min"}
FOLDS |= {"fsum": "fsum", "fmean": "fmean"}
EMPTY = {"sum": 0, "prod": 1, "count": 0, "any": 0, "all": 1, "logsumexp": -np.inf, "fsum": 0}

Members: TypeAlias = list[tuple[Position, bytes]]
"""The position and the bytes of each value of a group, in row-major order."""


def reduce(
    values: ArrayLike,
    groups: ArrayLike,
    size: int | None = None,
    func: str = "sum",
    axis: int = 0,
    *,
    ddof: int = 0,
    fill_value: Any = None,
    mode: str = "raise",
    negative: bool = False,
) -> Array:
    """Reduce the values of each group.

    Examples
    --------
    >>> reduce([1.0, 2.0, 4.0], [1, 1, 0], func="mean")
    array([4. , 1.5])
    """
    op = "groups.reduce"
    check_choice(op, "func", func, [*REDUCES, *(f"nan{name}" for name in REDUCES)])
    if operator.index(ddof) < 0:
        raise ValueError(f"{op}: `ddof` must be at least 0, got {ddof}")
    name = func.removeprefix("nan")
    values, axis, members = _listed(op, values, groups, size, axis, mode, negative, REDUCES[name])
    result = _result_dtype(name, values.dtype)
    fill = None
    if fill_value is not None:
        fill = fill_item(op, fill_value, result, "fill").tobytes()
    elif name in EMPTY:
        fill = np.asarray(EMPTY[name]).astype(result).tobytes()
    elif (nan := _nan_item(result)) is not None:
        fill = nan.tobytes()

    out = blank(op, members.shape, result)
    for place in np.ndindex(members.shape):
        every: Members = members.item(place)
        kept = [one for one in every if func == name or not _is_nan(one[1], values.dtype)]
        if kept:
            item = _reduced(name, kept, values.dtype, axis, ddof)
        elif fill is None:
            raise ValueError(f"{op}: group {place[axis]} is empty: `fill_value` must be given")
        else:
            item = fill
        out[place] = np.void(item)
    return typed(out, result)


def transform(
    values: ArrayLike,
    groups: ArrayLike,
    func: str,
    axis: int = 0,
    *,
    size: int | None = None,
    mode: str = "raise",
    negative: bool = False,
) -> Array:
    """Normalize, centre or softmax each value within its group; values without a group become NaN.

    Examples
    --------
    >>> transform([1.0, 3.0, 5.0], [0, 0, 1], "centre")
    array([-1.,  1.,  0.])
    """
    op = "groups.transform"
    check_choice(op, "func", func, list(TRANSFORMS))
    values, _, members = _listed(op, values, groups, size, axis, mode, negative, TRANSFORMS[func])
    wide = _wide(values.dtype)
    result = wide if values.dtype.name in INTEGERS else values.dtype
    out = np.full(values.shape, _nan_item(result), result)
    for place in np.ndindex(members.shape):
        items = [item for _, item in members[place]]
        with np.errstate(all="ignore"):
            results = _transformed(func, items, values.dtype) if items else []
            for (position, _), number in zip(members[place], results, strict=True):
                out[position] = _rounded(number, result)
    return out


def _transformed(func: str, items: Items, dtype: DType) -> list[Any]:
    """Transform the values of one group."""
    if func == "centre":
        return _centred(items, dtype)
    if func == "normalize":
        deviation = np.sqrt(_variance(items, dtype, 0))
        return [distance / deviation for distance in _centred(items, dtype)]
    wide = _wide(dtype)
    numbers = [_number(item, dtype, wide) for item in items]
    largest = _folded(numbers, wide, "max")
    shifted = [number - largest for number in numbers]
    powers = [exp(number) for number in shifted]
    total = _folded(powers, wide, "add")
    if func == "softmax":
        return [power / total for power in powers]
    return [number - log(total) for number in shifted]


def _log_sum(items: Items, dtype: DType) -> bytes:
    wide = _wide(dtype)
    numbers = [_number(item, dtype, wide) for item in items]
    with np.errstate(all="ignore"):
        shift = _folded(numbers, wide, "max")
        shift = wide.type(0) if np.isinf(shift) else shift
        total = _folded([exp(number - shift) for number in numbers], wide, "add")
        return _rounded(shift + log(total), _result_dtype("logsumexp", dtype)).tobytes()


def _listed(
    op: str,
    values: Any,
    groups: Any,
    size: Any,
    axis: Any,
    mode: str,
    negative: bool,
    names: frozenset[str] | None,
) -> tuple[Array, int, Array]:
    """Check the arguments. Return the values, the axis, and the members of each group."""
    axis = operator.index(axis)
    check_choice(op, "mode", mode, MODES)
    check_boolean(op, "negative", negative)
    if size is not None and operator.index(size) < 0:
        raise ValueError(f"{op}: `size` must be at least 0, got {size}")
    values, groups = as_array(op, "values", values), as_array(op, "groups", groups)
    if groups.size == 0 and groups.dtype.kind == "f":
        groups = groups.astype(np.int64)
    if values.dtype.hasobject or groups.dtype.kind not in "iu":
        raise TypeError(f"{op}: got values of {values.dtype} and groups of {groups.dtype}")
    if values.ndim == 0:
        raise ValueError(f"{op}: `values` must have at least 1 dimension")
    axis = as_axis(op, axis, values.ndim)
    along = (values.shape[axis],)
    if groups.shape not in (along, values.shape):
        raise ValueError(f"{op}: `groups` must have shape {along}, got {groups.shape}")
    name = values.dtype.name.partition("[")[0]
    if names is not None and (name not in names or not values.dtype.isnative):
        raise TypeError(f"{op}: `func` is not defined for dtype {values.dtype}")
    if size is None:
        size = max([int(group) + 1 for group in groups.flat] + [0])
    shape = values.shape[:axis] + (operator.index(size),) + values.shape[axis + 1 :]
    members = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        members[place] = []
    counted = np.empty(shape[axis], "V0")
    numbers = resolve_all(op, counted, groups, lambda _: 0, mode=mode, negative=negative)
    items = as_bytes(values)
    for position in np.ndindex(values.shape):
        number = numbers[position if groups.ndim > 1 else position[axis]]
        if number is not None:
            members[(*position[:axis], number, *position[axis + 1 :])].append(
                (position, items[position].tobytes())
            )
    return values, axis, members


def _result_dtype(name: str, dtype: DType) -> DType:
    if name in ("count", "argmax", "argmin"):
        return np.dtype(np.int64)
    if name in ("any", "all"):
        return np.dtype(bool)
    if name == "logsumexp" and dtype.name in INTEGERS:
        return np.dtype(np.float64)
    if name in ("var", "std") and dtype.name not in HALVES:
        return _real(_wide(dtype))
    return dtype


def _nan_item(dtype: DType) -> Array | None:
    """Return NaN, in both parts of a complex number, or NaT; None if the dtype has neither."""
    if dtype.kind in "mM":
        least = np.array(np.iinfo(np.int64).min)  # in NumPy 2.5, "NaT" without a unit warns
        return least.view(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind not in "fc" and not dtype.name.startswith(("float", "bfloat")):
        return None
    item = np.zeros((), dtype)
    item[()] = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return item if _is_nan(item.tobytes(), dtype) else None


def _wide(dtype: DType) -> DType:
    """Return the dtype of sums other than the operators' reductions."""
    if dtype.name in INTEGERS:
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype.name in HALVES else dtype


def _real(dtype: DType) -> DType:
    return np.dtype({"complex64": "f4", "complex128": "f8"}.get(dtype.name, dtype))


def _number(item: bytes, dtype: DType, wide: DType) -> Any:
    return np.frombuffer(item, dtype)[0].astype(wide)


def _is_nan(item: bytes, dtype: DType) -> bool:
    if dtype.kind in "mM":
        return bool(np.isnat(np.frombuffer(item, dtype)[0]))
    if dtype.kind not in "fc" and not dtype.name.startswith(("float", "bfloat")):
        return False
    (value,) = np.frombuffer(item, dtype)
    with np.errstate(all="ignore"):  # a signaling NaN
        return bool(value != value)  # noqa: PLR0124  # also for complex numbers


def _reduced(name: str, members: Members, dtype: DType, axis: int, ddof: int) -> bytes:
    items = [item for _, item in members]
    if name in ("argmax", "argmin") or (name in ("max", "min") and dtype.kind in "mM"):
        place = _position(items, dtype, max if name.endswith("max") else min)
        return items[place] if name in FOLDS else np.int64(members[place][0][axis]).tobytes()
    if name in FOLDS:
        return folded(items, dtype, FOLDS[name])
    if name in ("first", "last"):
        return items[0 if name == "first" else -1]
    if name == "count":
        return np.int64(len(items)).tobytes()
    if name in ("any", "all"):
        return bytes([(any if name == "any" else all)(_is_true(item, dtype) for item in items)])
    spread = name in ("var", "std")
    return _spread(items, dtype, ddof, name == "std") if spread else _log_sum(items, dtype)


def _is_true(item: bytes, dtype: DType) -> bool:
    with np.errstate(all="ignore"):
        return item != b"\0" if dtype.name == "bool" else bool(np.frombuffer(item, dtype)[0] != 0)


def _position(items: Items, dtype: DType, extreme: Callable[[list[Any]], Any]) -> int:
    """Return the position of the first NaN, else of the first largest or smallest value."""
    if dtype.name == "bool":
        values: list[Any] = [item != b"\0" for item in items]
    elif dtype.kind in "mM":  # NaT is handled below
        values = [np.frombuffer(item, np.int64)[0] for item in items]
    else:
        values = [np.frombuffer(item, dtype)[0] for item in items]
    for place, item in enumerate(items):
        if _is_nan(item, dtype):
            return place
    return values.index(extreme(values))


def _folded(numbers: list[Any], wide: DType, reduction: str) -> Any:
    items = [np.asarray(number, wide).tobytes() for number in numbers]
    return np.frombuffer(folded(items, wide, reduction), wide)[0]


def _distances(items: Items, dtype: DType) -> list[Any]:
    """Return the distance of each number from the exact mean, rounded to float64. For integers, the
    mean is rounded down.
    """
    if dtype.name in INTEGERS:
        whole = [int(_number(item, dtype, dtype)) for item in items]
        least = sum(whole) // len(whole)
        return [np.float64(number - least) for number in whole]
    double = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    numbers = [_number(item, dtype, double) for item in items]
    mean = _folded(numbers, double, "fmean")
    return [number - mean for number in numbers]


def _centred(items: Items, dtype: DType) -> list[Any]:
    distances = _distances(items, dtype)
    if dtype.name not in INTEGERS:
        return distances
    mean = _folded(distances, np.dtype(np.float64), "mean")
    return [distance - mean for distance in distances]


def _variance(items: Items, dtype: DType, ddof: int) -> Any:
    """Return the left fold of squared distances, divided by the degrees of freedom, in float64."""
    double, distances = np.dtype(np.float64), _distances(items, dtype)
    squares = [one.real * one.real for one in distances]
    if dtype.kind == "c":
        squares = [
            square + one.imag * one.imag for square, one in zip(squares, distances, strict=True)
        ]
    total = _folded(squares, double, "add")
    if dtype.name in INTEGERS:
        whole = _folded(distances, double, "add")
        total = total - whole * whole / np.float64(len(items))
    return total / np.float64(len(items) - ddof)


def _spread(items: Items, dtype: DType, ddof: int, root: bool) -> bytes:
    result = _result_dtype("var", dtype)
    if len(items) <= ddof:
        return _rounded(np.nan, result).tobytes()
    with np.errstate(all="ignore"):
        spread = _variance(items, dtype, ddof)
        return _rounded(_root(spread, result) if root else spread, result).tobytes()


def _root(square: Any, dtype: DType) -> Any:
    """Return the square root of a nonnegative number, rounded once to a dtype."""
    if not math.isfinite(square):
        return square
    shift = 700  # gives the root of the least number more digits than any dtype has
    exact = Fraction(float(square)) * 4**shift
    root = math.isqrt(exact.numerator // exact.denominator)
    twice = 2 * root + (Fraction(root) ** 2 != exact)
    return nearest(Fraction(twice, 2 ** (shift + 1)), dtype)


def _rounded(number: Any, dtype: DType) -> Array:
    """Round once. Every NaN becomes the canonical quiet NaN, of sign 0 and payload 0."""
    if dtype.kind == "c":
        out = np.empty((), dtype)
        out.real, out.imag = (_rounded(part, _real(dtype)) for part in (number.real, number.imag))
        return out
    if np.isnan(number):
        return np.asarray(np.float32("nan")).astype(dtype)
    if dtype.name in HALVES and math.isfinite(number) and number != 0:
        number = nearest(Fraction(float(number)), dtype)
    return np.asarray(number).astype(dtype)
