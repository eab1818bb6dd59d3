"""Convert Python values to the dtype of an array: weak scalars and fill values."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .items import Array, DType, as_bytes, typed

BOOL, INTEGER, FLOAT, COMPLEX = range(4)  # the kinds of numbers; None is not a number


def as_weak(
    op: str, value: Any, shape: Sequence[int], dtype: DType, name: str = "updates"
) -> Array:
    """Convert a Python value, or nested lists of values, to the dtype of `data`."""
    if dtype.kind == "V" and kind_of(dtype) is None:
        try:
            return np.asarray(value, dtype=dtype)  # tuples are records here, not dimensions
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {value!r}") from None
    leaves = np.asarray(value, dtype=object)
    result = typed(np.zeros(shape, f"V{dtype.itemsize}"), dtype)
    with np.errstate(all="ignore"):
        for position in np.ndindex(*shape):
            result[position] = _weak_leaf(op, name, leaves[position], dtype)
            if not _stays_finite(leaves[position], result[position], dtype):
                leaf = leaves[position]
                raise ValueError(f"{op}: `{name}` must stay finite in {dtype}, got {leaf!r}")
    return result


def _stays_finite(leaf: Any, item: Any, dtype: DType) -> bool:
    if kind_of(dtype) not in (FLOAT, COMPLEX):
        return True
    before, after = complex(leaf), complex(item)
    return all(
        math.isfinite(after_cast)
        if math.isfinite(before_cast)
        else math.isnan(before_cast) or math.isinf(after_cast)
        for before_cast, after_cast in ((before.real, after.real), (before.imag, after.imag))
    )


def _weak_leaf(op: str, name: str, leaf: Any, dtype: DType) -> Any:
    target, kind = kind_of(dtype), kind_of_leaf(leaf)
    if target is None and kind is None:
        natural = np.asarray(leaf).dtype
        if "S" in (natural.kind, dtype.kind) or "U" in (natural.kind, dtype.kind):
            if natural.kind != dtype.kind:
                raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {leaf!r}")
            if natural.itemsize > max(dtype.itemsize, 4 if natural.kind == "U" else 1):
                raise ValueError(f"{op}: `{name}` must fit {dtype}, got {leaf!r}")
        return leaf
    if target is None or kind is None:
        raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {leaf!r}")
    if kind > target:
        raise ValueError(f"{op}: `{name}` must be of the kind of {dtype}, got {leaf!r}")
    if target == INTEGER:
        low, high = _integer_range(dtype)
        if not low <= int(leaf) <= high:
            raise ValueError(f"{op}: `{name}` must fit {dtype}, got {leaf!r}")
    if target >= FLOAT and kind == INTEGER:
        try:
            leaf = float(leaf)
        except OverflowError:
            raise ValueError(f"{op}: `{name}` must stay finite in {dtype}, got {leaf!r}") from None
    return _to_odd(leaf) if target == FLOAT and dtype.isbuiltin == 2 else leaf


def _to_odd(leaf: Any) -> Any:
    """Round to odd in float32: an inexact number becomes the neighbour whose last bit is 1.

    ml_dtypes rounds to float32 first. After rounding to odd, the second rounding in ml_dtypes is
    correct.
    """
    near = np.float32(leaf)
    if float(near) == leaf or not math.isfinite(near) or near.view(np.int32) % 2:
        return near
    return np.nextafter(near, np.float32(math.copysign(math.inf, leaf - float(near))))


def kind_of(dtype: DType) -> int | None:
    """Return the kind of the numbers of a dtype."""
    if dtype.kind in "biufc":
        return {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOAT, "c": COMPLEX}[dtype.kind]
    # ml_dtypes reports the kind of most of its types as void, but their names begin with the kind.
    if dtype.name.startswith(("int", "uint")):
        return INTEGER
    if dtype.name.startswith(("float", "bfloat")):
        return FLOAT
    return COMPLEX if dtype.name.startswith(("complex", "bcomplex")) else None


def kind_of_leaf(leaf: Any) -> int | None:
    """Return which kind of number a value is."""
    if type(leaf) is int:
        return INTEGER  # also for more than 64 bits, which no NumPy dtype has
    array = np.asarray(leaf)
    return kind_of(array.dtype) if array.ndim == 0 else None


def _integer_range(dtype: DType) -> tuple[int, int]:
    bits = int(dtype.name.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def fill_item(op: str, fill_value: Any, dtype: DType, mode: str) -> Array:
    """Return the bytes that an invalid index reads; zeros in modes that ignore the fill value."""
    blank = np.zeros((), f"V{dtype.itemsize}")
    if isinstance(fill_value, np.ndarray) and fill_value.ndim == 0:
        fill_value = fill_value[()]
    whole = isinstance(fill_value, bool | int | np.bool_ | np.integer)
    if whole and not isinstance(fill_value, np.timedelta64) and fill_value == 0:
        return blank
    if mode not in ("fill", "drop"):
        return blank
    if isinstance(fill_value, np.generic) and fill_value.dtype == dtype:
        return as_bytes(np.asarray(fill_value))
    item = typed(blank, dtype)
    value, target, kind = fill_value, kind_of(dtype), kind_of_leaf(fill_value)
    if target is not None and type(value) in (bool, int, float, complex):
        item[()] = as_weak(op, value, (), dtype, "fill_value")[()]
        return blank
    if kind == COMPLEX and target in (BOOL, INTEGER, FLOAT) and value.imag == 0:
        value = value.real
    try:
        if target == FLOAT and kind == INTEGER and dtype.kind == "V":
            value = float(value)  # ml_dtypes rejects integers above 2^63
        with np.errstate(all="ignore"):
            item[()] = value
    except (TypeError, ValueError, OverflowError, RuntimeError):  # a date in a string too short
        exact = False
    else:
        record = isinstance(fill_value, tuple) and dtype.names is not None
        exact = (record or np.ndim(fill_value) == 0) and _same_value(item, fill_value)
    if not exact:
        raise ValueError(f"{op}: `fill_value` must convert exactly to {dtype}, got {fill_value!r}")
    return blank


def _same_value(item: Array, value: Any) -> bool:
    target, kind = kind_of(item.dtype), kind_of_leaf(value)
    if target is not None and kind is not None:
        pairs = zip(_parts(item[()], target), _parts(value, kind), strict=True)
        return all(_same_number(actual, expected) for actual, expected in pairs)
    if target is not None or kind is not None:
        return False
    actual = item.item() if item.dtype.kind == "V" else item[()]
    dates = isinstance(value, np.datetime64 | np.timedelta64) and item.dtype.kind in "mM"
    return bool(actual == value or (dates and np.isnat(actual) and np.isnat(value)))


def _parts(value: Any, kind: int) -> tuple[Any, Any]:
    """Return the real and imaginary parts as numbers that can be compared without rounding."""
    if kind == COMPLEX:
        return _parts(value.real, FLOAT)[0], _parts(value.imag, FLOAT)[0]
    if kind < FLOAT:
        return int(value), 0
    return (value if isinstance(value, np.longdouble) else float(value)), 0


def _same_number(actual: Any, expected: Any) -> bool:
    if all(isinstance(item, int) or np.isfinite(item) for item in (actual, expected)):
        return bool(actual.as_integer_ratio() == expected.as_integer_ratio())
    return bool(actual == expected) or (_is_nan(actual) and _is_nan(expected))


def _is_nan(item: Any) -> bool:
    return not isinstance(item, int) and bool(np.isnan(item))
