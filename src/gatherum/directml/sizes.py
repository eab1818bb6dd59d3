"""How many elements and bytes a tensor spans, in exact integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, SupportsIndex

from .types import UINT32_MAX, UINT64_MAX, TensorDataType

# Enough for every layout that occurs; beyond it a layout counts as overlapping.
_OVERLAP_STEPS: Final = 100_000


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without padding (row-major)."""
    return tuple(math.prod(sizes[dimension + 1 :]) for dimension in range(len(sizes)))


def spanned_bytes(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> int:
    """Return the bytes up to the end of the last element, without rounding up to 4."""
    if strides is None:
        elements = math.prod(sizes)
    else:
        elements = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    return -(-elements * data_type.bits // 8)


def calc_buffer_tensor_size(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """Return the bytes that a buffer for a tensor needs: ``DMLCalcBufferTensorSize``, exactly.

    ``elements = prod(sizes)``, or ``1 + dot(sizes - 1, strides)`` with strides; the bytes are
    ``elements * element size``, rounded up to a multiple of 4.

    Parameters
    ----------
    data_type : TensorDataType
        Type of one element, or its name.
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
        If a size or stride is no integer.
    ValueError
        If there is no dimension, a size is below 1, a stride is negative, the lengths differ,
        or the type is ``UNKNOWN``.

    Notes
    -----
    The C helper adds up ``(sizes[i] - 1) * strides[i]`` in 32 bits, so a strided tensor
    whose last element lies 2**32 elements or more after its first gets too small a size from
    it; its packed branch multiplies in 64 bits and wraps only there.
    `helper_buffer_tensor_size` gives the C helper's answer for comparison.

    Examples
    --------
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT16, (3,))
    8
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT32, (3, 1), (2**31, 1))
    17179869188
    """
    kind = TensorDataType(data_type)
    _require_measurable(kind, sizes, strides)
    return _round_up_to_4(spanned_bytes(kind, sizes, strides))


def helper_buffer_tensor_size(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """Return what DirectML's own C helper answers, wrapped sums and all.

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
    kind = TensorDataType(data_type)
    _require_measurable(kind, sizes, strides)
    if strides is None:
        elements = math.prod(sizes)
    else:
        last = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        elements = (last & UINT32_MAX) + 1
    return _round_up_to_4(-(-elements * kind.bits // 8) & UINT64_MAX) & UINT64_MAX


def overlaps_itself(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether two elements of a layout may lie at one place.

    Exact for every layout that a bounded search decides; True where it does not.
    """
    moving = sorted(((s, n) for n, s in zip(sizes, strides, strict=True) if n > 1), reverse=True)
    if any(stride == 0 for stride, _ in moving):
        return True
    # reach[i]: how far dimensions i, i+1, ... (the smaller strides) can move an element.
    reach = [0] * (len(moving) + 1)
    for i in reversed(range(len(moving))):
        reach[i] = reach[i + 1] + moving[i][0] * (moving[i][1] - 1)
    if all(stride > reach[i + 1] for i, (stride, _) in enumerate(moving)):
        return False
    return _has_coincidence(moving, reach)


def _has_coincidence(moving: list[tuple[int, int]], reach: list[int]) -> bool:
    """Return whether two different coordinates have equal offsets, by bounded search.

    They do exactly if steps of at most ``n - 1`` either way, not all zero, sum to zero.
    """
    steps = 0
    pending = [(0, 0, False)]
    while pending:
        i, offset, moved = pending.pop()
        if i == len(moving):
            if moved and offset == 0:
                return True
            continue
        stride, n = moving[i]
        # Only steps that the remaining dimensions can still bring back to zero.
        low = max(-(n - 1), -((offset + reach[i + 1]) // stride))
        high = min(n - 1, (reach[i + 1] - offset) // stride)
        steps += max(0, high - low + 1)
        if steps > _OVERLAP_STEPS:
            return True
        pending += [(i + 1, offset + d * stride, moved or d != 0) for d in range(low, high + 1)]
    return False


def _round_up_to_4(nbytes: int) -> int:
    return -(-nbytes // 4) * 4


def _require_measurable(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> None:
    where = "calc_buffer_tensor_size"
    if data_type is TensorDataType.UNKNOWN:
        raise ValueError(f"{where}: `data_type` must have a width, got UNKNOWN")
    for name, numbers in (("sizes", sizes), ("strides", strides or ())):
        if not all(isinstance(number, SupportsIndex) for number in numbers):
            raise TypeError(f"{where}: `{name}` must be integers, got {tuple(numbers)}")
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
