"""The functions that a framework supplies for groups. `namespace` has NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gatherum._derivatives.array_ops import Array, ArrayOps
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

if TYPE_CHECKING:
    from .grouping import Grouping

# A function of the values, or a tuple of arrays, their groups and the count of each group.
Computed: TypeAlias = "Callable[[Array, Grouping, Array], Array]"


class Arrays(ArrayOps, Protocol):
    """Functions of a framework that extend `gatherum._derivatives.array_ops.ArrayOps`.

    Each operation rounds once, also in compiled graphs. A framework may also have a function
    ``fused(name, values, destinations)`` that runs a transform in one call, with the bits and
    derivatives of the composition, or returns None. ``squares(values, destinations,
    skips_nan)`` returns the sums of squared distances from the exact means and the numbers of
    real floats in one call, or None. ``without_nan(values, reduction, destinations, initial)``
    folds the values that are not NaN in one call, or returns None. ``in_blocks(name, run,
    values, grouping, dtype, like)`` runs a function that needs all values of a group, for
    arrays in chunks. ``integers_of(op, operand, values, target)`` is that of
    `gatherum.groups.integers`, for arrays in chunks. ``sharing_calls()`` returns a context in which
    calls on the same groups share their order. ``float_mode()`` returns a context in which
    arithmetic rounds to nearest and keeps subnormal numbers. It replaces the mode of the calling
    thread. The result may use the memory of `spare`. The framework computes all derivatives,
    including those of exp and log.
    """

    def as_values(self, op: str, operand: str, value: object) -> Array:
        """Convert values to an array, or raise TypeError."""

    def as_groups(self, op: str, operand: str, value: object, values: Array) -> Array:
        """Convert an array or a list of integers to an array, placed or chunked like `values`."""

    def as_operand(self, op: str, operand: str, value: object, values: Array) -> Array:
        """Convert an array or a list of numbers to an array, placed or chunked like `values`."""

    def as_dtype(self, op: str, operand: str, value: object) -> AnyDType:
        """Convert a dtype or its name to a dtype of plans, or raise TypeError."""

    def plan_dtype(self, x: Array) -> AnyDType:
        """Return the dtype of an array, as plans have it."""

    def dtype(self, plan_dtype: AnyDType) -> Any:
        """Convert a dtype of a plan to the framework's dtype."""

    def item(self, op: str, plan_dtype: AnyDType, value: object, like: Array) -> Array:
        """Convert a `fill_value` to an array of shape (), or raise as an operator does."""

    def to_numpy(self, x: Array) -> np.ndarray[Any, Any] | None:
        """Convert values to a NumPy array; None if they are not known yet."""

    def size_of(self, op: str, operand: str, groups: Array) -> int:
        """Return the largest group plus 1, or raise if the groups are not known yet."""

    def as_size(self, op: str, name: str, value: object) -> int:
        """Convert a size argument to an int."""

    def holds_any(self, mask: Array) -> bool:
        """Return False only if a mask is known to be False everywhere."""

    def isinf(self, x: Array) -> Array:
        """Return a mask of the infinite numbers."""

    def sqrt(self, x: Array) -> Array:
        """Return square roots, whose derivative at 0 is 0."""

    def exp(self, x: Array) -> Array:
        """Return e to the power of each item; see `gatherum._derivatives.elementary`."""

    def log(self, x: Array) -> Array:
        """Return natural logarithms; see `gatherum._derivatives.elementary`."""

    def whole(self, x: Array, shape: Shape) -> Array:
        """Broadcast an array to a shape, as a copy."""

    def nonzero(self, x: Array) -> Array:
        """Return a mask of the nonzero numbers, which include NaN and any nonzero byte of bools."""

    def equal(self, x: Array, y: Array) -> Array:
        """Return a mask of the equal numbers. 0 equals -0; the result for NaN is unspecified."""

    def add(self, x: Array, y: Array) -> Array:
        """Return x + y."""

    def subtract(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x - y."""

    def multiply(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x * y."""

    def divide(self, x: Array, y: Array, spare: Array) -> Array:
        """Return x / y."""

    def complex_of(self, real: Array, imaginary: Array) -> Array:
        """Join real and imaginary parts to complex numbers."""

    def replaced(self, x: Array, mask: Array, value: Any) -> Array:
        """Replace the items of x under a mask by a value; x may be modified."""

    def rounded(self, x: Array, target: Any) -> Array:
        """Convert to another dtype, rounding once. Each NaN becomes the canonical quiet NaN; x may
        be modified.
        """

    def single(self, x: Array) -> Array:
        """Round float64 to float32."""

    def sorted_order(self, values: Array | None, cells: Array) -> Array:
        """Return the stable order of flat arrays by integers, and by value if values are given.
        NaN and NaT are after other values; 0 equals -0.
        """

    def cumsum(self, x: Array) -> Array:
        """Return the running sum of flat integers, in their dtype."""

    def stack(self, arrays: Sequence[Array], axis: int) -> Array:
        """Join arrays along a new dimension."""

    def bits(self, x: Array) -> Array:
        """View float32 or float64 as integers of the same bits."""

    def in_float64(
        self, wide: Computed, narrow: Computed, values: Array, grouping: Grouping, counts: Array
    ) -> Array:
        """Return ``wide(values, grouping, counts)``, with float64 available.

        If the framework cannot differentiate `wide`, the derivatives are computed from `narrow`.
        `values` may be a tuple of arrays.
        """

    def resolve(self, attributes: Attributes, entries: Array, size: int) -> Array:
        """Return the group of each entry, -1 for a dropped one, or raise IndexError."""
