"""Compute the numbers of elements and bytes of tensors as exact integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Final, SupportsIndex

from .types import UINT32_MAX, UINT64_MAX, DataTypeLike, TensorDataType

# Far more than any feature level accepts. With more dimensions, products of sizes are not computed,
# because the integers and the time for them grow with every dimension.
MOST_DIMENSIONS: Final = 64


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without padding (row-major)."""
    return tuple(accumulate(reversed(sizes[1:]), mul, initial=1))[::-1] if sizes else ()


def spanned_bytes(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> int:
    """Return the number of bytes up to the end of the last element, without rounding up to 4."""
    if strides is None:
        elements = math.prod(sizes)
    else:
        elements = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    return -(-elements * data_type.bits // 8)


def calc_buffer_tensor_size(
    data_type: DataTypeLike, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """Return the size in bytes of a buffer for a tensor: ``DMLCalcBufferTensorSize``, exactly.

    ``elements = prod(sizes)``, or ``1 + dot(sizes - 1, strides)`` with strides; the bytes are
    ``elements * element size``, rounded up to a multiple of 4.

    Parameters
    ----------
    data_type : TensorDataType
        Type of one element, its name in any case, or a NumPy dtype.
    sizes : sequence of int
        Size of each dimension, at least 1.
    strides : sequence of int, optional
        Distance in elements between neighbours of each dimension; packed if absent.

    Returns
    -------
    int
        A Python integer: nothing wraps.

    Raises
    ------
    TypeError
        If a size or stride is not an integer.
    ValueError
        If ``sizes`` is empty, a size is below 1, a stride is negative, the lengths differ,
        or the type is ``UNKNOWN``.

    Notes
    -----
    DirectML's C helper sums ``(sizes[i] - 1) * strides[i]`` in 32 bits. It returns too small a size
    for a strided tensor whose last element is 2**32 elements or more after its first. For packed
    tensors, it multiplies in 64 bits and wraps around only beyond 64 bits.
    `helper_buffer_tensor_size` returns the C helper's result for comparison.

    Examples
    --------
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT16, (3,))
    8
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT32, (3, 1), (2**31, 1))
    17179869188
    """
    whole_type = TensorDataType.of(data_type)
    _require_measurable(whole_type, sizes, strides)
    return _round_up_to_4(spanned_bytes(whole_type, sizes, strides))


def helper_buffer_tensor_size(
    data_type: DataTypeLike, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """Return the result of DirectML's C helper, including its wraparound.

    Parameters
    ----------
    data_type, sizes, strides
        As for `calc_buffer_tensor_size`.

    Returns
    -------
    int
        Equal to `calc_buffer_tensor_size` unless the helper's arithmetic wraps.

    Examples
    --------
    >>> helper_buffer_tensor_size(TensorDataType.FLOAT32, (3, 1), (2**31, 1))
    4
    """
    whole_type = TensorDataType.of(data_type)
    _require_measurable(whole_type, sizes, strides)
    if strides is None:
        elements = math.prod(sizes)
    else:
        last_position = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        elements = (last_position & UINT32_MAX) + 1
    return _round_up_to_4(-(-elements * whole_type.bits // 8) & UINT64_MAX) & UINT64_MAX


def _round_up_to_4(nbytes: int) -> int:
    return -(-nbytes // 4) * 4


def _require_measurable(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> None:
    where = "calc_buffer_tensor_size"
    if data_type is TensorDataType.UNKNOWN:
        raise ValueError(f"{where}: `data_type` must have a width, got UNKNOWN")
    for name, integers in (("sizes", sizes), ("strides", strides or ())):
        if not all(isinstance(value, SupportsIndex) for value in integers):
            raise TypeError(f"{where}: `{name}` must be integers, got {tuple(integers)}")
    if not sizes or min(sizes) < 1:
        raise ValueError(
            f"{where}: `sizes` must be one or more sizes of at least 1, got {tuple(sizes)}"
        )
    if strides is None:
        return
    if len(strides) != len(sizes):
        raise ValueError(f"{where}: `strides` must have {len(sizes)} entries, got {len(strides)}")
    if min(strides) < 0:
        raise ValueError(f"{where}: `strides` must be at least 0, got {tuple(strides)}")
