"""The functions that a framework supplies for groups. `namespace` implements them for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gatherum._derivatives.array_ops import Array, ArrayOps, Destinations
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

if TYPE_CHECKING:
    from .grouping import Grouping

# A function of the values (or a tuple of arrays), their groups and the count of each group.
Computed: TypeAlias = "Callable[[Array, Grouping, Array], Array]"


class ArrayDefaults(Protocol):
    """Members of `Arrays` that have a default: subclasses of `Arrays` inherit it.

    A module that implements `Arrays` assigns the defaults that it uses from `DEFAULTS`.

    Attributes
    ----------
    in_chunks : bool
        Whether arrays are in chunks, so that `in_blocks` runs functions that sort. False by
        default. Such arrays need no `sorted_order` and no `cumsum`.
    traces_pointers : bool
        Whether `as_groups` converts `indptr` to edges, and `traced_segments` numbers the segments
        of a traced `indptr`. By default, such arguments become NumPy arrays.
    """

    in_chunks: bool = False
    traces_pointers: bool = False

    def fused_transform(self, name: str, values: Array, destinations: Destinations) -> Array | None:
        """Run a transform in one call, with the same bits and derivatives as its composition.

        By default, return None: the composition runs.
        """
        return None

    def squares_and_counts(
        self, values: Array, destinations: Destinations, skips_nan: bool
    ) -> tuple[Array, Array] | None:
        """Return the sums of squared distances from the exact means, and the counts of values.

        `values` are real floats. By default, return None: several calls compute both.
        """
        return None

    def count_skipping_nan(self, values: Array, destinations: Destinations) -> Array | None:
        """Return the counts of the values that are not NaN. `values` are real floats.

        By default, return None: a mask of the values is counted.
        """
        return None

    def fold_skipping_nan(
        self, values: Array, reduction: str, destinations: Destinations, initial: Array
    ) -> Array | None:
        """Fold the values that are not NaN in one call.

        By default, return None: NaN values are removed from their groups first.
        """
        return None

    def in_blocks(
        self,
        name: str,
        run: Callable[..., Array],
        values: Array,
        grouping: Grouping,
        dtype: Any,
        like: bool = False,
    ) -> Array:
        """Run a function that needs all values of a group on arrays in chunks.

        The result has one item for each group, or, with `like`, for each value. By default, call
        ``run(values, grouping)``.
        """
        return run(values, grouping)

    def sharing_calls(self) -> AbstractContextManager[Any]:
        """Return a context in which calls on the same groups share their order.

        By default, calls share nothing.
        """
        return nullcontext()

    def float_mode(self) -> AbstractContextManager[None]:
        """Return a context in which arithmetic rounds to nearest and keeps subnormal numbers.

        It replaces the mode of the calling thread. By default, the mode does not change.
        """
        return nullcontext()

    def traced_segments(self, op: str, operand: str, indptr: Array, edges: Array) -> Array | None:
        """Return the segment of each edge while a graph is traced. By default, return None."""
        return None


class _Defaults(ArrayDefaults):
    pass


DEFAULTS = _Defaults()


class Arrays(ArrayOps, ArrayDefaults, Protocol):
    """Functions of a framework that extend `gatherum._derivatives.array_ops.ArrayOps`.

    Each operation rounds once, also in compiled graphs. The result may use the memory of `spare`.
    The framework computes all derivatives, including the derivatives of exp and log.
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
        """Return the dtype of an array, in the form that plans use."""

    def dtype(self, plan_dtype: AnyDType) -> Any:
        """Convert a dtype of a plan to the framework's dtype."""

    def item(self, op: str, plan_dtype: AnyDType, value: object, like: Array) -> Array:
        """Convert a `fill_value` to an array of shape (), or raise as an operator does."""

    def to_numpy(self, x: Array) -> np.ndarray[Any, Any] | None:
        """Convert values to a NumPy array. Return None if they are not known yet."""

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

    def broadcast_copy(self, x: Array, shape: Shape) -> Array:
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
        """Combine real and imaginary parts into complex numbers."""

    def replaced(self, x: Array, mask: Array, value: Any) -> Array:
        """Replace the masked items of x with a value; x may be modified."""

    def rounded(self, x: Array, target: Any) -> Array:
        """Convert to another dtype, rounding once. Each NaN becomes the canonical quiet NaN; x may
        be modified.
        """

    def as_float32(self, x: Array) -> Array:
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
        """View float32 or float64 as integers with the same bits."""

    def in_float64(
        self,
        with_float64: Computed,
        without_float64: Computed,
        values: Array,
        grouping: Grouping,
        counts: Array,
    ) -> Array:
        """Return ``with_float64(values, grouping, counts)``, with float64 available.

        If the framework cannot differentiate `with_float64`, it differentiates `without_float64`.
        `values` may be a tuple of arrays.
        """

    def integers_of(self, op: str, operand: str, values: Array, target: Any) -> Array:
        """Truncate floating values to an integer dtype, as `gatherum.groups.integers` does."""

    def resolve(self, attributes: Attributes, entries: Array, size: int) -> Array:
        """Return the group of each entry (-1 for a dropped entry), or raise IndexError."""
