"""Convert flat byte buffers and arrays to operands for a tensor desc."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gatherum._arguments.conversion import as_array

from .sizes import packed_strides
from .tensors import BufferTensorDesc
from .violations import listing

# Patterns for PEP 3118 format strings: one for field names, and one for all other allowed
# characters. Characters that do not match (O, &, X, P, z, a Z by itself) mean objects, pointers or
# unknown types, and raise an error.
_NAME: Final = re.compile(r":[^:]*:")
_NUMBERS: Final = re.compile(r"(?:T\{|Z[fdg]|[}0-9(), @=<>!^?cbBhHiIlLqQnNefdgFDGspuwx])*")


def bytes_of(buffer: object, tensor: BufferTensorDesc, where: str) -> memoryview:
    """Return a buffer as flat bytes. Error messages start with ``where``."""
    type_name = type(buffer).__name__
    try:
        view = memoryview(buffer)  # type: ignore[arg-type]  # the point of trying
        flat = view.cast("B")
    except (TypeError, ValueError, BufferError) as error:
        raise TypeError(f"{where} must be a contiguous buffer, got {type_name} ({error})") from None
    if not _is_of_numbers(view.format):
        shown = view.format if len(view.format) <= 40 else view.format[:37] + "..."
        raise TypeError(
            f"{where} must be a buffer of numbers or bytes, without objects or pointers, "
            f"got {type_name} of format {shown!r}"
        )
    required_bytes = tensor.required_bytes
    if flat.nbytes < required_bytes:
        raise ValueError(f"{where} needs a buffer of {required_bytes} bytes, got {flat.nbytes}")
    return flat


def _is_of_numbers(items_format: str) -> bool:
    """Return True if items of a format hold no references, so that their bytes may be moved."""
    return _NUMBERS.fullmatch(_NAME.sub(" ", items_format)) is not None


def view_strides(tensor: BufferTensorDesc, rank: int) -> tuple[int, ...]:
    """Return the strides in bytes of the last ``rank`` dimensions.

    A dimension of size 1 gets its packed stride, because its own stride has no effect, but would
    make equal views compare unequal.
    """
    sizes = tensor.sizes
    strides = zip(sizes, tensor.element_strides, packed_strides(sizes), strict=True)
    itemsize = tensor.data_type.dtype.itemsize
    padding = len(sizes) - rank
    return tuple((p if n == 1 else s) * itemsize for n, s, p in strides)[padding:]


def strided_view(tensor: BufferTensorDesc, rank: int, flat: memoryview) -> npt.NDArray[Any]:
    """Return the last ``rank`` dimensions of a tensor as an array on its buffer."""
    sizes = tensor.sizes[tensor.dimension_count - rank :]
    strides = view_strides(tensor, rank)
    return np.ndarray(sizes, tensor.data_type.dtype, flat, 0, strides)


def same_elements(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return True if two views have the same elements at the same addresses."""
    return a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and (
        a.shape,
        a.strides,
        a.dtype,
    ) == (b.shape, b.strides, b.dtype)


def array_operand(
    operator: str, operand: str, value: npt.ArrayLike, tensor: BufferTensorDesc
) -> npt.NDArray[Any]:
    """Return a value as an array with a tensor's Sizes and DataType, or raise an error."""
    where = f"{operator}: `{operand}`"
    dtype, name = tensor.data_type.dtype, tensor.data_type.name
    array = as_array(operator, operand, value)
    accepted_kinds = "iu" if dtype.kind in "iu" else "iuf"
    if (
        not hasattr(value, "dtype") and array.dtype.kind in accepted_kinds
    ):  # numbers without a width
        try:
            array = np.asarray(value, dtype)
        except OverflowError:
            raise ValueError(f"{where} has a number that {name} cannot hold") from None
    if array.dtype != dtype:
        raise TypeError(f"{where} must have dtype {dtype} ({name}), got {array.dtype}")
    if array.shape != tensor.sizes:
        raise ValueError(
            f"{where} must have the shape {listing(tensor.sizes)}, got {listing(array.shape)}"
        )
    return array
