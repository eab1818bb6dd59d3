"""Formats keep a dtype as far as they can, also types that NumPy itself does not have."""

from typing import Any

import numpy as np

__all__ = ["as_bytes", "cannot_hold", "is_added", "keeps_values"]


def is_added(dtype: np.dtype[Any]) -> bool:
    """Whether another package, as ml_dtypes, has added the dtype to NumPy."""
    return dtype.isbuiltin == 2


def as_bytes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype with plain bytes in the place of every type that was added to NumPy.

    Raises
    ------
    TypeError
        Such a number is in another byte order than the machine's, which plain bytes cannot record.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return dtype if (plain := as_bytes(base)) is base else np.dtype((plain, shape))
    if dtype.names is None:
        if is_added(dtype) and dtype.itemsize > 1 and not dtype.isnative:
            raise TypeError(f"{dtype} is not in native byte order")
        return np.dtype((np.void, dtype.itemsize)) if is_added(dtype) else dtype
    assert dtype.fields is not None
    parts = [dtype.fields[name] for name in dtype.names]
    formats, offsets = [as_bytes(part[0]) for part in parts], [part[1] for part in parts]
    if all(plain is part[0] for plain, part in zip(formats, parts, strict=True)):
        return dtype
    described: Any = {"names": dtype.names, "formats": formats, "offsets": offsets}
    described["itemsize"] = dtype.itemsize
    record: np.dtype[Any] = np.dtype(described)
    return record


def keeps_values(dtype: np.dtype[Any], stored: np.dtype[Any]) -> bool:
    """Whether a dtype that a library stores differs in byte order and padding alone."""
    return _packed(dtype) == _packed(stored)


def _packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.names is not None:
        from numpy.lib.recfunctions import repack_fields

        dtype = np.dtype(repack_fields(dtype, recurse=True))
    return dtype.newbyteorder("=")


def cannot_hold(what: str, dtype: np.dtype[Any]) -> ValueError:
    """Return the error of a format that has no such elements."""
    return ValueError(f"{what} cannot hold elements of dtype {dtype}")
