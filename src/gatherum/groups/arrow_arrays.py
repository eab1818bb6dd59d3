"""Convert Arrow arrays to NumPy arrays, without importing pandas if possible.

pyarrow imports pandas, if it is installed, in `to_numpy`, `fill_null` and `array`. That takes
longer than a short call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_numpy", "as_texts", "codes_of", "dtype_of"]

FEW = 1 << 14  # strings that take less time to convert one by one than the import of pandas


def as_numpy(array: Any) -> NDArray[Any]:
    """Return an Arrow array, but no chunked one, as a NumPy array."""
    from pyarrow import types

    if _has_numbers(array.type) and not array.null_count:
        return _numbers(array)
    if len(array) <= FEW and (types.is_string(array.type) or types.is_binary(array.type)):
        return np.array(array.to_pylist(), object)
    converted: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return converted


def as_texts(array: Any) -> NDArray[Any] | None:
    """Return bytes, or strings of ASCII characters, as an array of NumPy's fixed width.

    Return None for other Arrow arrays. This creates no Python object for each string.
    """
    from pyarrow import types

    is_large = types.is_large_string(array.type) or types.is_large_binary(array.type)
    is_text = types.is_string(array.type) or types.is_large_string(array.type)
    if not (is_large or is_text or types.is_binary(array.type)) or array.null_count:
        return None
    count, (_, offset_buffer, characters) = len(array), array.buffers()
    if not count or characters is None or not characters.size:
        return None
    offset_dtype = np.dtype(np.int64 if is_large else np.int32)
    start = array.offset * offset_dtype.itemsize
    offsets = np.frombuffer(offset_buffer, offset_dtype, count + 1, start)
    flat = np.frombuffer(characters, np.uint8)[offsets[0] : offsets[-1]]
    if is_text and flat.max(initial=0) > 127:
        return None
    lengths = np.diff(offsets)
    width = max(1, int(lengths.max()))
    items = np.zeros((count, width), np.uint32 if is_text else np.uint8)
    if lengths.min() == width:
        items[...] = flat.reshape(count, width)
    else:
        items[np.arange(width) < lengths[:, None]] = flat
    return items.view(f"{'U' if is_text else 'S'}{width}").reshape(count)


def dtype_of(arrow_type: Any) -> np.dtype[Any]:
    """Return the dtype of an array of a type."""
    import pyarrow

    if _has_numbers(arrow_type):
        dtype: np.dtype[Any] = np.dtype(arrow_type.to_pandas_dtype())  # others may need pandas
    else:
        dtype = pyarrow.array([], arrow_type).to_numpy(zero_copy_only=False).dtype
    return dtype


def codes_of(column: Any) -> NDArray[Any]:
    """Return the codes of a column with a dictionary, in at least 32 bits; -1 for a null."""
    indices = column.indices
    if indices.type.bit_width < 32:
        indices = indices.cast("int32")
    codes = _numbers(indices)
    if not indices.null_count:
        return codes
    start, bitmap = indices.offset, np.frombuffer(indices.buffers()[0], np.uint8)
    is_valid = np.unpackbits(bitmap, count=start + len(codes), bitorder="little")[start:]
    return np.where(is_valid, codes.astype(f"i{codes.itemsize}", copy=False), -1)


def _has_numbers(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(arrow_type) or types.is_floating(arrow_type))


def _numbers(array: Any) -> NDArray[Any]:
    """Return the numbers of an array without a copy. The numbers of nulls are arbitrary."""
    dtype, count = dtype_of(array.type), len(array)
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, count, array.offset * dtype.itemsize)
