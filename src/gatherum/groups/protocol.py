"""What a framework supplies for functions over groups: `namespace` is NumPy's."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from gatherum.call import Attributes
from gatherum.dtypes import AnyDType
from gatherum.errors import Shape
from gatherum.places import Array


class Arrays(Protocol):
    """Functions of a framework, besides the operators of its arrays.

    Arithmetic rounds once, whatever a compiler makes of it. A framework may have one more,
    ``fused(name, values, places)``: what a transform gives by one call, with the bits and the
    derivatives of its composition, or None.
    Those of `gatherum.places.Namespace` with the same names are the same. `spare` is an array whose
    memory may take the result. Derivatives are the framework's own, of exp and log too.
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

    def where(self, mask: Array, one: Array, other: Array) -> Array:
        """Choose between two arrays."""

    def isnan(self, x: Array) -> Array:
        """Return where numbers are NaN."""

    def isinf(self, x: Array) -> Array:
        """Return where numbers are infinite."""

    def sqrt(self, x: Array) -> Array:
        """Return square roots, whose derivative at 0 is 0."""

    def exp(self, x: Array) -> Array:
        """Return e to the power of each item: see `gatherum.elementary`."""

    def log(self, x: Array) -> Array:
        """Return natural logarithms: see `gatherum.elementary`."""

    def astype(self, x: Array, to: Any) -> Array:
        """Convert to another dtype; without a copy where it is the same."""

    def reshape(self, x: Array, shape: Shape) -> Array:
        """Give items in row-major order another shape."""

    def broadcast_to(self, x: Array, shape: Shape) -> Array:
        """Repeat an array to a shape."""

    def whole(self, x: Array, shape: Shape) -> Array:
        """Repeat an array to a shape, in memory of its own."""

    def flip(self, x: Array, axes: Shape) -> Array:
        """Reverse the order along some dimensions."""

    def arange(self, start: int, stop: int, like: Array) -> Array:
        """Count, on the device of `like`."""

    def full(self, shape: Shape, value: int, to: Any, like: Array) -> Array:
        """Return one number everywhere, which may lie in memory once."""

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
        """Convert to another dtype; each NaN becomes the quiet one without sign and payload, and x
        may be changed.
        """

    def stop_gradient(self, x: Array) -> Array:
        """Return values alone, which have no derivative."""

    def gather(
        self, attributes: Attributes, data: Array, indices: Array, fill_value: Any = 0
    ) -> Array:
        """Run a gather, which stores a number for an invalid index."""

    def scatter(self, attributes: Attributes, data: Array, indices: Array, updates: Array) -> Array:
        """Run a scatter."""

    def resolve(self, attributes: Attributes, entries: Array, size: int) -> Array:
        """Return the group of each entry, -1 for none, or raise IndexError."""
