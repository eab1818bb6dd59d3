"""A tensor desc describes the layout of a tensor in a flat byte buffer."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gatherum._model.shape_limits import MAX_BYTES

from .sizes import MOST_DIMENSIONS, packed_strides, spanned_bytes
from .types import DataTypeLike, TensorDataType, TensorFlags


@dataclass(frozen=True)
class BufferTensorDesc:
    """A tensor inside a flat byte buffer: ``DML_BUFFER_TENSOR_DESC``.

    Parameters
    ----------
    data_type : TensorDataType
        Type of one element, its name in any case (``"float32"``), or a NumPy dtype.
    sizes : sequence of int
        Size of each dimension.
    strides : sequence of int, optional
        Distance in elements between neighbours of each dimension: 0 repeats elements, and more than
        the packed stride leaves padding. Packed if absent.
    total_tensor_size_in_bytes : int, optional
        Minimum size of the buffer; by default the result of `calc_buffer_tensor_size`.
    guaranteed_base_offset_alignment : int, optional
        0, or a power of two of at least the element size.
    flags : TensorFlags, optional

    Raises
    ------
    TypeError
        If a number is not an integer. `check` reports integers that are not allowed.
    ValueError
        If ``data_type`` or ``flags`` is not a DirectML value.

    Examples
    --------
    >>> desc = BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), strides=(4, 1))
    >>> desc.dimension_count, desc.total_tensor_size_in_bytes
    (2, 28)
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    total_tensor_size_in_bytes: int | None = None
    guaranteed_base_offset_alignment: int = 0
    flags: TensorFlags = TensorFlags.NONE

    if TYPE_CHECKING:  # parameters have wider types than fields

        def __init__(
            self,
            data_type: DataTypeLike,
            sizes: Sequence[int],
            strides: Sequence[int] | None = None,
            total_tensor_size_in_bytes: int | None = None,
            guaranteed_base_offset_alignment: int = 0,
            flags: int = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = type(self).__name__
        set_field(self, "data_type", TensorDataType(self.data_type))
        set_field(self, "sizes", as_integers(where, "sizes", self.sizes))
        if self.strides is not None:
            set_field(self, "strides", as_integers(where, "strides", self.strides))
        alignment = self.guaranteed_base_offset_alignment
        name = "guaranteed_base_offset_alignment"
        set_field(self, name, as_integer(where, name, alignment))
        if not isinstance(self.flags, int) or not 0 <= self.flags <= TensorFlags.OWNED_BY_DML:
            raise ValueError(f"{where}: `flags` must be of TensorFlags, got {self.flags!r}")
        set_field(self, "flags", TensorFlags(self.flags))
        name = "total_tensor_size_in_bytes"
        total = self.total_tensor_size_in_bytes
        total = self.implied_size if total is None else as_integer(where, name, total)
        set_field(self, name, total)

    @property
    def dimension_count(self) -> int:
        """Number of dimensions: ``DimensionCount``."""
        return len(self.sizes)

    @cached_property
    def element_strides(self) -> tuple[int, ...]:
        """The strides in elements; packed strides if ``strides`` is None."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @cached_property
    def measurable(self) -> bool:
        """Whether sizes, strides and data type determine a size in bytes."""
        strides = self.sizes if self.strides is None else self.strides
        return (
            MOST_DIMENSIONS >= len(self.sizes) == len(strides) > 0
            and min(self.sizes) >= 1
            and min(strides) >= 0
            and self.data_type.bits > 0
        )

    @cached_property
    def implied_size(self) -> int:
        """The size that `calc_buffer_tensor_size` returns, or 0 if it is not defined."""
        return -(-self.spanned_bytes // 4) * 4 if self.measurable else 0

    @property
    def addressable(self) -> bool:
        """Whether the spanned bytes can be addressed."""
        return self.measurable and self.spanned_bytes <= MAX_BYTES

    @property
    def spanned_bytes(self) -> int:
        """The number of bytes from the first element to the end of the last one."""
        return spanned_bytes(self.data_type, self.sizes, self.strides)

    @property
    def required_bytes(self) -> int:
        """The minimum number of bytes of a buffer for dispatch.

        This is the total size if it exceeds the implied size, and otherwise the number of bytes up
        to the end of the last element. So the size of a buffer on the host need not be a multiple
        of 4 bytes, which is a rule for Direct3D 12 resources.
        """
        total = self.total_tensor_size_in_bytes or 0
        return total if total > self.implied_size else self.spanned_bytes


def set_field(desc: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass during its construction."""
    object.__setattr__(desc, name, value)


def as_integer(where: str, name: str, value: object) -> int:
    """Return an integer of any type except bool as an int, or raise TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{where}: `{name}` must be an integer, got {type(value).__name__}")
    return operator.index(value)


def as_integers(where: str, name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Return a sequence of integers as a tuple of int, or raise TypeError."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(
            f"{where}: `{name}` must be a sequence of integers, got {type(values).__name__}"
        )
    return tuple(as_integer(where, f"{name}[{i}]", value) for i, value in enumerate(values))
