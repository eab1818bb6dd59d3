"""The dtypes of formats, including types that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum._model import named_bytes as bytes_of_numbers
from gatherum._model.dtype_rows import ROWS
from gatherum._model.named_bytes import named_bytes


def number_type(name: str) -> np.dtype[Any]:
    """Return the named ml_dtypes dtype, or plain bytes if the package is missing or too old."""
    try:
        import ml_dtypes

        extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):  # gathers need only the bytes
        return bytes_of_numbers.make(name, ROWS[name].nbytes)
    return extension


def name_of(dtype: np.dtype[Any]) -> str:
    """Return a dtype's name. Bytes of narrow floats have the name of the floats."""
    return named_bytes(dtype) or dtype.name


def is_added(dtype: np.dtype[Any]) -> bool:
    """Return True for a dtype that packages like ml_dtypes add to NumPy, or its named bytes."""
    return dtype.isbuiltin == 2 or named_bytes(dtype) is not None


def is_bytes(dtype: np.dtype[Any], size: int) -> bool:
    """Return True if a dtype is plain bytes of the given size, without a number type."""
    plain = dtype.kind == "V" and dtype.names is None and dtype.subdtype is None
    return plain and not is_added(dtype) and dtype.itemsize == size


def as_bytes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Replace every type that was added to NumPy with plain bytes.

    Raise TypeError for such types in non-native byte order, because plain bytes do not record the
    order.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return dtype if (replaced := as_bytes(base)) is base else np.dtype((replaced, shape))
    if dtype.names is None:
        if is_added(dtype) and dtype.itemsize > 1 and not dtype.isnative:
            raise TypeError(f"{dtype} is not in native byte order")
        return np.dtype((np.void, dtype.itemsize)) if is_added(dtype) else dtype
    assert dtype.fields is not None
    fields = [dtype.fields[name] for name in dtype.names]
    formats, offsets = [as_bytes(field[0]) for field in fields], [field[1] for field in fields]
    if all(replaced is field[0] for replaced, field in zip(formats, fields, strict=True)):
        return dtype
    described: Any = {"names": dtype.names, "formats": formats, "offsets": offsets}
    described["itemsize"] = dtype.itemsize
    record: np.dtype[Any] = np.dtype(described)
    return record


def keeps_values(dtype: np.dtype[Any], stored: np.dtype[Any]) -> bool:
    """Return True if a dtype differs only in byte order and padding from the stored one."""
    return _packed(dtype) == _packed(stored)


def _packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.names is not None:
        from numpy.lib.recfunctions import repack_fields

        dtype = np.dtype(repack_fields(dtype, recurse=True))
    return dtype.newbyteorder("=")


def cannot_hold(what: str, dtype: np.dtype[Any]) -> ValueError:
    """Return the error for a format that does not support such elements."""
    return ValueError(f"{what} cannot hold elements of dtype {named_bytes(dtype) or dtype}")
