"""What a framework supplies for functions over groups: `namespace` is NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gatherum._derivatives.array_ops import Array, Basics
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

if TYPE_CHECKING:
    from .grouping import Grouping

# From values, their groups and the count of each group.
Computed: TypeAlias = "Callable[[Array, Grouping, Array], Array]"


class Arrays(Basics, Protocol):
    """Functions of a framework, besides those of `gatherum._derivatives.array_ops.Basics`.

    Arithmetic rounds once, whatever a compiler makes of it. A framework may have one more,
    ``fused(name, values, places)``: what a transform gives by one call, with the bits and the
    derivatives of its composition, or None.
    `spare` is an array whose memory may take the result. Derivatives are the framework's own, of
    exp and log too.
    """

    def as_values(self, op: str, operand: str, value: object) -> Array:
        """Return values as an array, or raise TypeError."""

    def as_groups(self, op: str, operand: str, value: object, values: Array) -> Array:
        """Return an array or a list of integers as an array beside the values."""

    def kind(self, x: Array) -> AnyDType:
        """Return the dtype of an array as plans have it."""

    def dtype(self, of: AnyDType) -> Any:
        """Return the framework's dtype of one that plans have."""

    def item(self, op: str, of: AnyDType, value: object, like: Array) -> Array:
        """Return a `fill_value` as an array of shape (), or raise as an operator does."""

    def to_numpy(self, x: Array) -> np.ndarray[Any, Any] | None:
        """Return values as an array of NumPy; None where they are not known yet."""

    def size_of(self, op: str, operand: str, groups: Array) -> int:
        """Return the largest group and 1, or raise where values are not known yet."""

    def as_size(self, op: str, name: str, value: object) -> int:
        """Return a size that is given as an argument."""

    def holds_any(self, mask: Array) -> bool:
        """Return False only where it is known that nothing in a mask is true."""

    def isinf(self, x: Array) -> Array:
        """Return where numbers are infinite."""

    def sqrt(self, x: Array) -> Array:
        """Return square roots, whose derivative at 0 is 0."""

    def exp(self, x: Array) -> Array:
        """Return e to the power of each item: see `gatherum._derivatives.elementary`."""

    def log(self, x: Array) -> Array:
        """Return natural logarithms: see `gatherum._derivatives.elementary`."""

    def whole(self, x: Array, shape: Shape) -> Array:
        """Repeat an array to a shape, in memory of its own."""

    def nonzero(self, x: Array) -> Array:
        """Return which numbers are not 0: NaN is not, nor any byte but 0 of bools."""

    def equal(self, x: Array, y: Array) -> Array:
        """Return where numbers are equal, as 0 and -0 are; of NaN it may say either."""

    def add(self, x: Array, y: Array) -> Array:
        """Return x + y."""

    def subtract(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x - y."""

    def multiply(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x * y."""

    def divide(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x / y."""

    def replaced(self, x: Array, mask: Array, value: Any) -> Array:
        """Return x with a value where a mask is true; x may be changed."""

    def rounded(self, x: Array, to: Any) -> Array:
        """Convert to another dtype, rounded once; each NaN becomes the quiet one without sign and
        payload, and x may be changed.
        """

    def single(self, x: Array) -> Array:
        """Round float64 to float32."""

    def bits(self, x: Array) -> Array:
        """Return float32 or float64 as integers of the same bits."""

    def in_float64(
        self, wide: Computed, narrow: Computed, values: Array, by: Grouping, counts: Array
    ) -> Array:
        """Return ``wide(values, by, counts)``, where float64 exists. Where the framework cannot
        differentiate that, the derivatives are those of `narrow`.
        """

    def resolve(self, attributes: Attributes, entries: Array, size: int) -> Array:
        """Return the group of each entry, -1 for none, or raise IndexError."""
