"""Decode packed numbers by xarray's rules: mask, multiply, and add.

The attributes follow netCDF's CF conventions: ``_FillValue`` and ``missing_value`` become NaN,
``scale_factor`` multiplies, ``add_offset`` is added, and ``_Unsigned`` reinterprets integers.
Dtypes, the order of the steps and the types of the numbers follow ``mask_and_scale=True`` of
``xarray.open_dataset``, so that the values are bit-for-bit equal. Times are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.errors.audience import option
from gatherum._system import native

FILLS = ("missing_value", "_FillValue")
LINEAR = ("scale_factor", "add_offset")
UNSIGNED = "_Unsigned"
ATTRIBUTES = (*LINEAR, *FILLS, UNSIGNED)
MOST_FILLS = 100

# Returns those attributes of an array whose names are in ATTRIBUTES. Called only for decoding.
Attributes = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Packing:
    """The steps from stored numbers to decoded numbers, and the attributes that require them."""

    dtype: np.dtype[Any]  # of decoded numbers
    stored: np.dtype[Any]  # of stored numbers, after applying `_Unsigned`
    fills: tuple[Any, ...]  # stored numbers that become NaN
    scale: Any
    offset: Any
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.attributes.items())

    @property
    def why_not_changed(self) -> str:
        """The reason why a decoded array cannot be changed."""
        return (
            f"it is packed ({self}), and decoded values are not packed again; "
            f"{option('decode=False')} takes the stored numbers"
        )

    def decode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Decode stored numbers into a new array."""
        with np.errstate(all="ignore"), native.FloatMode():
            decoded = values.astype(self.stored, copy=False).astype(self.dtype)
            masked: Any = False
            for fill in self.fills:
                masked |= decoded == fill
            if self.fills:
                np.copyto(decoded, np.nan, where=masked)
            if self.scale is not None:
                decoded *= self.scale
            if self.offset is not None:
                decoded += self.offset
        return decoded


def packing_of(name: object, attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> Packing | None:
    """Return the packing of an array, or None if the stored numbers are the values.

    `name` is the name of the array in errors. Raise ValueError for an attribute of the wrong type.
    """
    if dtype.kind not in "iuf" or dtype.isbuiltin == 2 or not attributes:
        return None
    scale, offset = (_number_attribute(name, attributes, key) for key in LINEAR)
    stored = _as_signed(attributes.get(UNSIGNED), dtype)
    fills, marked = _fills(name, attributes, dtype, stored)
    if scale is None and offset is None:
        if not fills and stored == dtype:
            return None
        result = _with_nan(stored) if fills else stored
    elif fills or not marked:
        result = _decoded_dtype(stored, scale, offset)
        if fills and result.kind in "iu":  # integers have no NaN
            result = np.dtype(np.float64)
    else:
        result = stored
    packing = Packing(result.newbyteorder("="), stored, fills, scale, offset, attributes)
    try:
        packing.decode(np.empty(0, dtype))
    except (OverflowError, TypeError) as error:  # a number that the dtype cannot represent
        raise ValueError(f"{name}: cannot be decoded ({packing}): {error}{_instead()}") from None
    return packing


def _instead() -> str:
    return f"; {option('decode=False')} takes the stored numbers"


def _number_attribute(name: object, attributes: Mapping[str, Any], key: str) -> Any:
    """Return the number in an attribute, with its type, or None if the attribute is absent."""
    value = attributes.get(key)
    if value is None:
        return None
    if isinstance(value, (list, np.ndarray)) and np.size(value) == 1:
        value = np.asarray(value).item()
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return value
    raise ValueError(f"{name}: `{key}` must be a number, got {value!r:.60}{_instead()}")


def _as_signed(unsigned: object, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of stored integers after applying `_Unsigned`."""
    if (dtype.kind, unsigned) in (("i", "true"), ("u", "false")):
        return np.dtype(f"{'u' if dtype.kind == 'i' else 'i'}{dtype.itemsize}")
    return dtype


def _fills(
    name: object, attributes: Mapping[str, Any], dtype: np.dtype[Any], stored: np.dtype[Any]
) -> tuple[tuple[Any, ...], bool]:
    """Return the numbers that become NaN, and whether an attribute marks any number or NaN."""
    fills, marked = dict[Any, Any](), False
    for key in FILLS:
        if (value := attributes.get(key)) is None:
            continue
        marks = np.ravel(value)
        if marks.dtype.kind not in "iuf" or marks.size > MOST_FILLS:
            raise ValueError(
                f"{name}: `{key}` must be a number, or at most {MOST_FILLS}, got "
                f"{value!r:.60}{_instead()}"
            )
        marks = marks[~np.isnan(marks)]
        marked |= marks.size > 0 or dtype.kind == "f"
        if key == "_FillValue" and stored != dtype:
            fills.pop(next(iter(marks), None), None)
            marks = marks.astype(dtype).view(stored)
        fills |= dict.fromkeys(marks)
    return tuple(fills), marked


def _with_nan(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of numbers, some of which become NaN."""
    if dtype.kind == "f":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


def _decoded_dtype(dtype: np.dtype[Any], scale: Any, offset: Any) -> np.dtype[Any]:
    """Return the dtype of numbers after the scale and the offset are applied."""
    if offset is None:
        return np.dtype(type(scale))
    scale_dtype = None if scale is None else np.dtype(type(scale))
    exact = dtype.itemsize != 4 or dtype.kind == "f"  # integers of 32 bits need float64
    if scale_dtype in (np.float32, np.float64) and scale_dtype == np.dtype(type(offset)) and exact:
        return scale_dtype
    return np.dtype(np.float64)
