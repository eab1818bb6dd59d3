"""Describe a call by an operator's attributes and the specs of its operands, without their data.

Only `conversion` creates attributes from the arguments of a caller. It normalizes their types:
because ``True == 1`` in Python, two attributes could otherwise be equal but have different
meanings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gatherum import _core
from gatherum._core import Reduction

from . import shape_limits
from .arrays import NumpyArray
from .dtypes import AnyDType, DType, code_of, value_of
from .errors import Shape
from .modes import FILLING
from .operators import OPERATORS, Operator
from .shape_limits import OperandLayout

# The names of a call's operands and of its output, in the order of the operators' arguments.
OPERAND_NAMES = ("data", "indices", "updates", "out")


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The shape and dtype of an operand, and its strides in bytes."""

    shape: Shape
    dtype: AnyDType
    strides: Shape

    @classmethod
    def of(cls, array: NumpyArray) -> ArraySpec:
        """Describe an array by NumPy's attributes, even if a subclass overrides them."""
        array_view = np.asarray(array)
        return cls(array_view.shape, array_view.dtype, array_view.strides)

    @classmethod
    def contiguous(cls, shape: Shape, dtype: AnyDType) -> ArraySpec:
        """Describe an array in C order."""
        return cls(shape, dtype, shape_limits.contiguous_strides(shape, dtype.itemsize))

    @property
    def layout(self) -> OperandLayout:
        """The shape and strides."""
        return OperandLayout(self.shape, self.strides)

    @property
    def plain(self) -> tuple[Shape, str | DType, Shape]:
        """The spec as a tuple of plain values, which `plan` accepts."""
        dtype = self.dtype if isinstance(self.dtype, np.dtype) else self.dtype.name
        return self.shape, dtype, self.strides

    def __str__(self) -> str:
        contiguous = shape_limits.contiguous_strides(self.shape, self.dtype.itemsize)
        strides = "" if self.strides == contiguous else f", strides {self.strides}"
        return f"{self.dtype} {self.shape}{strides}"


def same_spec(first: ArraySpec | None, second: ArraySpec | None) -> bool:
    """Return True if a plan for one spec also runs on the other.

    A spec may contain a dtype that was known only by its name, because its package was not
    imported. After the import, this dtype equals the package's dtype.
    """
    if first is None or second is None or first.layout != second.layout:
        return first is second
    code = code_of(first.dtype)
    return first.dtype == second.dtype or (code is not None and code == code_of(second.dtype))


def is_spec(value: object) -> bool:
    """Return True for an `ArraySpec`, or a tuple of shape, dtype and optional strides."""
    if isinstance(value, ArraySpec):
        return True
    if not isinstance(value, tuple) or len(value) not in (2, 3) or not isinstance(value[0], tuple):
        return False
    return isinstance(value[1], (str, type, np.dtype))


class FoldRule(NamedTuple):
    """How updates combine: the reduction, and whether the old value is included."""

    reduction: str = "none"
    include_self: bool = True

    @classmethod
    def afresh(cls, reduction: str) -> FoldRule:
        """Return the same rule without the old value."""
        return cls(reduction, False)

    def needs_accumulator(self, dtype: AnyDType) -> bool:
        """Return True if the fold needs a buffer in addition to the output.

        It does if the reduction rounds once, counts updates, or excludes the old value.
        """
        return _core.needs_accumulator(
            value_of(dtype), Reduction[self.reduction], self.include_self
        )

    def fields(self, dtype: AnyDType) -> dict[str, Any]:
        """Return the fields of a program that describe the rule."""
        reduction, value = Reduction[self.reduction], value_of(dtype)
        return {"reduction": reduction, "value": value, "include_self": self.include_self}


class Attributes(NamedTuple):
    """An operator and its arguments other than arrays, in the order of the core's functions.

    Attributes
    ----------
    op : str
        The operator's name.
    axis : int
        `axis` or `batch_dims`, as the caller passed it.
    reduction, include_self, mode, negative
        The operator's arguments. For a gather, the first two have their default values.
    fill : bytes
        The item that a gather stores for an invalid index; b"" for an item whose bits are all zero.
    caller : str
        A `callers.Caller` as a string, whose names appear in errors; "" for the operator's names.
    """

    op: str
    axis: int = 0
    reduction: str = "none"
    include_self: bool = True
    mode: str = "raise"
    negative: bool = True
    fill: bytes = b""
    caller: str = ""

    @property
    def operator(self) -> Operator:
        """The operator's row."""
        return OPERATORS[self.op]

    @property
    def fills(self) -> bool:
        """Whether a gather stores `fill` for an invalid index."""
        return self.mode in FILLING and not self.operator.scatters

    @property
    def fold(self) -> FoldRule:
        """How updates combine."""
        return FoldRule(self.reduction, self.include_self)

    @property
    def fold_keywords(self) -> dict[str, Any]:
        """The fold as keyword arguments of a scatter."""
        return self.fold._asdict()

    def with_fold(self, fold: FoldRule) -> Attributes:
        """Return a copy with another fold."""
        reduction, include_self = fold
        return self._replace(reduction=reduction, include_self=include_self)

    def gathering(self, op: str = "gather", axis: int = 0) -> Attributes:
        """Return the gather that handles indices in the same way, without a fill value."""
        reduction, include_self = FoldRule()
        return self._replace(
            op=op, axis=axis, reduction=reduction, include_self=include_self, fill=b""
        )

    @property
    def keywords(self) -> dict[str, Any]:
        """The attributes as keyword arguments of the operator, without the fill value."""
        keywords = {
            self.operator.attribute: self.axis,
            "mode": self.mode,
            "negative": self.negative,
        }
        if self.operator.scatters:
            keywords |= self.fold_keywords
        return keywords

    @property
    def positional(self) -> tuple[int, str, bool, str, bool]:
        """The arguments of the core's functions after the operator's name and the operands."""
        return self.axis, self.reduction, self.include_self, self.mode, self.negative


@dataclass(frozen=True, slots=True)
class Call:
    """The attributes and the specs of all operands: everything that a plan depends on."""

    attributes: Attributes
    data: ArraySpec
    indices: ArraySpec
    updates: ArraySpec | None = None
    out: ArraySpec | None = None

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.attributes.op

    @property
    def operator(self) -> Operator:
        """The operator's row."""
        return self.attributes.operator

    @property
    def axis(self) -> int:
        """`axis` or `batch_dims`, as the caller passed it."""
        return self.attributes.axis

    @property
    def mode(self) -> str:
        """How invalid indices are handled."""
        return self.attributes.mode

    @property
    def negative(self) -> bool:
        """Whether negative indices count from the end."""
        return self.attributes.negative

    @property
    def reduction(self) -> str:
        """How updates combine."""
        return self.attributes.reduction

    @property
    def include_self(self) -> bool:
        """Whether the old value is included in the reduction."""
        return self.attributes.include_self

    @property
    def resolved_axis(self) -> int:
        """`axis` or `batch_dims`, counted from the front."""
        return self.operator.resolve(self.data.shape, self.indices.shape, self.axis)
