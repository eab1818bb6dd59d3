"""The functions that a framework supplies for groups. `namespace` implements them for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gatherum._derivatives.array_ops import ArrayOps, Destinations
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

if TYPE_CHECKING:
    from .grouping import Grouping

# A function of the values (or a tuple of arrays), their groups and the count of each group.
Computed: TypeAlias = "Callable[[AnyArray, Grouping, AnyArray], AnyArray]"


class ArrayDefaults(Protocol):
    """Members of `Arrays` that have a default: subclasses of `Arrays` inherit it.

    A module that implements `Arrays` assigns the defaults that it uses from `DEFAULTS`.

    Attributes
    ----------
    in_chunks : bool
        Whether arrays are in chunks, so that `in_blocks` runs functions that sort. False by
        default. Such arrays need no `sorted_order`, no `cumsum` and no `cumulate`.
    has_gradients : bool
        Whether the framework differentiates the functions, so that values without an effect need a
        gradient of 0. True by default.
    runs_nan_forms : bool
        Whether the arrays are NumPy arrays, for which `nan_skipping` has the nan forms of
        selections, counts, truth values and `logsumexp`. By default, NaN values are removed from
        their groups first.
    traces_pointers : bool
        Whether `as_groups` converts `indptr` to edges, and `traced_segments` numbers the segments
        of a traced `indptr`. By default, such arguments become NumPy arrays.
    """

    in_chunks: bool = False
    has_gradients: bool = True
    runs_nan_forms: bool = False
    traces_pointers: bool = False

    def fused_transform(
        self, name: str, values: AnyArray, destinations: Destinations
    ) -> AnyArray | None:
        """Run a transform in one call, with the same bits and derivatives as its composition.

        By default, return None: the composition runs.
        """
        return None

    def squares_and_counts(
        self, values: AnyArray, destinations: Destinations, skips_nan: bool
    ) -> tuple[AnyArray, AnyArray] | None:
        """Return the sums of squared distances from the exact means, and the counts of values.

        `values` are real floats. By default, return None: several calls compute both.
        """
        return None

    def count_skipping_nan(self, values: AnyArray, destinations: Destinations) -> AnyArray | None:
        """Return the counts of the values that are not NaN. `values` are real floats.

        By default, return None: a mask of the values is counted.
        """
        return None

    def fold_skipping_nan(
        self, values: AnyArray, reduction: str, destinations: Destinations, initial: AnyArray
    ) -> AnyArray | None:
        """Fold the values that are not NaN in one call.

        By default, return None: NaN values are removed from their groups first.
        """
        return None

    def positions_of_extremes(
        self,
        values: AnyArray,
        extreme: str,
        destinations: Destinations,
        initial: AnyArray | int,
        skips_nan: bool,
    ) -> AnyArray | None:
        """Return the position of the first largest or smallest value of each group in one call.

        A group without values becomes `initial`. By default, return None: several calls find the
        positions.
        """
        return None

    def narrowed(self, groups: AnyArray, count: int) -> AnyArray:
        """Return group numbers from -1 to `count` - 1 in a dtype that is fast to read.

        By default, return them as they are.
        """
        return groups

    def in_blocks(
        self,
        name: str,
        run: Callable[..., AnyArray],
        values: AnyArray,
        grouping: Grouping,
        dtype: Any,
        like: bool = False,
    ) -> AnyArray:
        """Run a function that needs all values of a group, on arrays that may be chunked.

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

    def traced_segments(
        self, op: str, operand: str, indptr: AnyArray, edges: AnyArray
    ) -> AnyArray | None:
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

    def as_values(self, op: str, operand: str, value: object) -> AnyArray:
        """Convert values to an array, or raise TypeError."""

    def as_groups(self, op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
        """Convert an array or a list of integers to an array, placed or chunked like `values`."""

    def as_operand(self, op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
        """Convert an array or a list of numbers to an array, placed or chunked like `values`."""

    def as_dtype(self, op: str, operand: str, value: object) -> AnyDType:
        """Convert a dtype or its name to a dtype of plans, or raise TypeError."""

    def plan_dtype(self, x: AnyArray) -> AnyDType:
        """Return the dtype of an array, in the form that plans use."""

    def dtype(self, plan_dtype: AnyDType) -> Any:
        """Convert a dtype of a plan to the framework's dtype."""

    def item(self, op: str, plan_dtype: AnyDType, value: object, like: AnyArray) -> AnyArray:
        """Convert a `fill_value` to an array of shape (), or raise as an operator does."""

    def to_numpy(self, x: AnyArray) -> np.ndarray[Any, Any] | None:
        """Convert values to a NumPy array. Return None if they are not known yet."""

    def size_of(self, op: str, operand: str, groups: AnyArray) -> int:
        """Return the largest group plus 1, or raise if the groups are not known yet."""

    def as_size(self, op: str, name: str, value: object) -> int:
        """Convert a size argument to an int."""

    def holds_any(self, mask: AnyArray) -> bool:
        """Return False only if a mask is known to be False everywhere."""

    def isinf(self, x: AnyArray) -> AnyArray:
        """Return a mask of the infinite numbers."""

    def sqrt(self, x: AnyArray) -> AnyArray:
        """Return square roots, whose derivative at 0 is 0."""

    def exp(self, x: AnyArray) -> AnyArray:
        """Return e to the power of each item; see `gatherum._derivatives.elementary`."""

    def log(self, x: AnyArray) -> AnyArray:
        """Return natural logarithms; see `gatherum._derivatives.elementary`."""

    def broadcast_copy(self, x: AnyArray, shape: Shape) -> AnyArray:
        """Broadcast an array to a shape, as a copy."""

    def nonzero(self, x: AnyArray) -> AnyArray:
        """Return a mask of the nonzero numbers, which include NaN and any nonzero byte of bools."""

    def equal(self, x: AnyArray, y: AnyArray) -> AnyArray:
        """Return a mask of the equal numbers. 0 equals -0; the result for NaN is unspecified."""

    def add(self, x: AnyArray, y: AnyArray) -> AnyArray:
        """Return x + y."""

    def subtract(self, x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
        """Return x - y."""

    def multiply(self, x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
        """Return x * y."""

    def divide(self, x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
        """Return x / y."""

    def complex_of(self, real: AnyArray, imaginary: AnyArray) -> AnyArray:
        """Combine real and imaginary parts into complex numbers."""

    def replaced(self, x: AnyArray, mask: AnyArray, value: Any) -> AnyArray:
        """Replace the masked items of x with a value; x may be modified."""

    def rounded(self, x: AnyArray, target: Any) -> AnyArray:
        """Convert to another dtype, rounding once. Each NaN becomes the canonical quiet NaN; x may
        be modified.
        """

    def as_float32(self, x: AnyArray) -> AnyArray:
        """Round float64 to float32."""

    def sorted_order(self, values: AnyArray | None, cells: AnyArray) -> AnyArray:
        """Return the stable order of flat arrays by integers, and by value if values are given.
        NaN and NaT are after other values; 0 equals -0.
        """

    def cumsum(self, x: AnyArray) -> AnyArray:
        """Return the running sum of flat integers, in their dtype."""

    def stack(self, arrays: Sequence[AnyArray], axis: int) -> AnyArray:
        """Join arrays along a new dimension."""

    def bits(self, x: AnyArray) -> AnyArray:
        """View float32 or float64 as integers with the same bits."""

    def in_float64(
        self,
        with_float64: Computed,
        without_float64: Computed,
        values: AnyArray,
        grouping: Grouping,
        counts: AnyArray,
    ) -> AnyArray:
        """Return ``with_float64(values, grouping, counts)``, with float64 available.

        If the framework cannot differentiate `with_float64`, it differentiates `without_float64`.
        `values` may be a tuple of arrays.
        """

    def integers_of(self, op: str, operand: str, values: AnyArray, target: Any) -> AnyArray:
        """Truncate floating values to an integer dtype, as `gatherum.groups.integers` does."""

    def resolve(self, attributes: Attributes, entries: AnyArray, size: int) -> AnyArray:
        """Return the group of each entry (-1 for a dropped entry), or raise IndexError."""
