"""Accumulator: a scatter that accepts its updates in batches."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, plain_values, xarray_labels
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.call_types import ReductionName
from gatherum._model.dtypes import DType, accumulator_dtype
from gatherum._model.modes import ModeName
from gatherum._plans.plans import apply, build_once

from .accumulator_state import (
    ALL,
    MOST_UPDATES,
    NAME,
    VERSION,
    check_data,
    checked_arrays,
    checked_state,
    state_of,
)
from .fold_properties import core_fold

# The accumulators of this process, which a forked child checks.
_LIVING: weakref.WeakSet[Accumulator] = weakref.WeakSet()


def _new_lock() -> Any:
    from threading import RLock  # slow to import, and not needed by operator calls

    return RLock()


@public
class Accumulator:
    """A scatter that accepts its updates in batches.

    The result is bit-for-bit equal to one scatter of the concatenated batches, however the updates
    are split: float16 and bfloat16 keep float32 accumulators between batches, ``"mean"`` keeps
    exact counts, and ``include_self=False`` keeps the set of updated elements.

    Parameters
    ----------
    data : array_like
        The array to start from. The accumulator copies it, so later changes of `data` have no
        effect. For a PyTorch tensor, a CuPy array or another array on a CUDA device, the state of
        the accumulator is on that device, and all batches must be on it, too.
    reduction : str
        How updates combine with existing values: ``"none"``, ``"add"`` or another reduction of
        `scatter_nd`.
    include_self : bool, default True
        Whether the values of `data` take part in the reduction, as in `scatter_nd`.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices, as in `scatter_nd`.
    negative : bool, default True
        Whether negative indices count from the end, as in `scatter_nd`.

    Raises
    ------
    TypeError
        If `data` holds objects or is a masked array, the reduction is not defined for its dtype,
        or `include_self` or `negative` is not a bool.
    ValueError
        If `reduction` or `mode` has an invalid value, or `data` has too many dimensions.

    See Also
    --------
    scatter_nd, scatter_elements, scatter_slices : Apply all updates in one call.

    Notes
    -----
    Each element of `data` has an accumulator and a count of 8 bytes. Accumulators of integers and
    bools, and of ``"max"``, ``"min"``, ``"fsum"`` and ``"fmean"``, also keep a copy of `data`, so
    that they can be merged. The accumulators of ``"fsum"`` and ``"fmean"`` use 32 bytes for
    float16, 88 for bfloat16 and float32, 544 for float64, and twice as many for complex numbers.

    Threads may share an accumulator. Each batch is applied as a whole, and batches are applied in
    the order of the calls. A pickled accumulator contains all updates so far. If a process forks
    while another thread is inside a method of an accumulator, the child would see a half-applied
    batch, so the accumulator raises RuntimeError there.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> sums = gatherum.Accumulator(np.zeros(3), "mean", include_self=False)
    >>> sums.scatter_nd([[0], [2]], [1.0, 5.0]).scatter_nd([[0]], [4.0]).finish()
    array([2.5, 0. , 5. ])
    >>> sums.counts()
    array([2, 0, 1])
    """

    def __new__(cls, data: object = None, *_: object, **__: object) -> Accumulator:
        """Create an accumulator; if `data` is on a device, use the class for its arrays."""
        adapter = None if type(data) in registry.COMMON else registry.adapter_of(type(data))
        find_class = getattr(adapter, "accumulator", None)
        subclass: type[Accumulator] | None = None if find_class is None else find_class(data)
        return object.__new__(subclass or cls)

    def __init__(
        self,
        data: ArrayLike,
        reduction: ReductionName,
        *,
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise errors.unknown_argument(NAME, unknown, has_axis=False)
        attributes = plain_values.as_attributes(NAME, 0, reduction, include_self, mode, negative)
        xarray_labels.refuse_labels(NAME, data=data)
        initial = conversion.as_array(NAME, "data", data)
        check_data(initial.shape, initial.dtype, attributes.reduction)
        self._describe(initial.dtype, initial.shape, attributes)
        initial = apply("gather_nd", initial, ALL)
        self._counts: NDArray[np.int64] = np.zeros(initial.shape, np.int64)
        self._most = 0  # an upper bound of the counts
        self._sums: NumpyArray = np.zeros(initial.shape, self._sum_dtype)
        self._data: NumpyArray | None = initial if self._keeps_data else None
        if not self._keeps_data:
            self._fold.begin(initial, self._sums)

    def _describe(self, dtype: DType, shape: tuple[int, ...], attributes: Attributes) -> None:
        """Set all attributes except the arrays."""
        self._dtype, self._shape, self._attributes = dtype, shape, attributes
        # Updates are counted by the address of their item. Items of 0 bytes all have the same
        # address, so a byte replaces each item.
        item_dtype = dtype if dtype.itemsize else np.dtype(np.uint8)
        self._operand = ArraySpec.contiguous(shape, dtype)
        self._sum_dtype = accumulator_dtype(item_dtype, attributes.reduction)
        self._fold = core_fold(attributes.fold, dtype)
        self._keeps_data = self._fold.any_order or dtype.itemsize == 0
        # Batches are checked against this array, which has the data's shape and dtype, and strides
        # of 0.
        self._like: NumpyArray = np.ndarray(
            shape, dtype, np.zeros(item_dtype.itemsize, np.uint8), strides=(0,) * len(shape)
        )
        self._lock, self._torn = _new_lock(), False
        _LIVING.add(self)

    @contextmanager
    def _holding_lock(self) -> Iterator[None]:
        """Hold the lock, or raise RuntimeError if a fork left a half-applied batch."""
        with self._lock:
            if self._torn:
                raise errors.torn_accumulator()
            yield

    def _after_fork(self) -> None:
        """In a forked child, replace a lock that a thread of the parent holds."""
        if self._lock.acquire(blocking=False):  # free, or held by the forking thread
            self._lock.release()
        else:
            self._lock, self._torn = _new_lock(), True

    def scatter_nd(
        self,
        indices: ArrayLike,
        updates: ArrayLike,
        batch_dims: int = 0,
        **unknown: Never,
    ) -> Accumulator:
        """Apply a batch of elements or slices by index tuples.

        Parameters
        ----------
        indices, updates, batch_dims
            As in `gatherum.scatter_nd`.

        Returns
        -------
        Accumulator
            This accumulator.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `gatherum.scatter_nd` raises them; the message names `scatter_nd`. No update of the
            batch has then been applied.
        """
        if unknown:
            raise errors.unknown_argument("scatter_nd", unknown, has_axis=False)
        return self._apply_batch("scatter_nd", indices, updates, batch_dims)

    def scatter_elements(
        self,
        indices: ArrayLike,
        updates: ArrayLike,
        axis: int = 0,
        **unknown: Never,
    ) -> Accumulator:
        """Apply a batch of updates, one element for each index; see `scatter_nd`.

        The arguments are the same as in `gatherum.scatter_elements`.
        """
        if unknown:
            raise errors.unknown_argument("scatter_elements", unknown)
        return self._apply_batch("scatter_elements", indices, updates, axis)

    def scatter_slices(
        self, indices: ArrayLike, updates: ArrayLike, axis: int = 0, **unknown: Never
    ) -> Accumulator:
        """Apply a batch of updates, one slice for each index; see `scatter_nd`.

        The arguments are the same as in `gatherum.scatter_slices`.
        """
        if unknown:
            raise errors.unknown_argument("scatter_slices", unknown)
        return self._apply_batch("scatter_slices", indices, updates, axis)

    def _apply_batch(self, op: str, indices: object, updates: object, axis: object) -> Accumulator:
        xarray_labels.refuse_labels(op, indices=indices, updates=updates)
        other_attributes = self._attributes.positional[1:]  # all but the axis
        normalized: Any = conversion.normalize(
            op, self._like, indices, updates, axis, *other_attributes, 0, None
        )
        _op, _data, entries, values, checked_axis, *_ = normalized
        pins = conversion.pinned(entries, values)
        specs = ArraySpec.of(entries), ArraySpec.of(values)
        attributes = self._attributes._replace(op=op, axis=checked_axis)
        plan = build_once(Call(attributes, self._operand, *specs))
        if self._dtype.itemsize == 0:
            values = np.broadcast_to(np.uint8(0), values.shape)
            specs = specs[0], ArraySpec.of(values)
            byte = ArraySpec.contiguous(self._shape, values.dtype)
            plan = build_once(Call(attributes, byte, *specs))
        with self._holding_lock():
            self._count_updates(entries.size)
            self._fold.accumulate(plan, self._sums, self._counts, entries, values)
        del pins
        return self

    def _count_updates(self, updates: int) -> None:
        """Raise the bound on the counts by `updates`.

        Raise ValueError if an element would have more than MOST_UPDATES. The exact maximum is
        computed only if the bound exceeds the limit.
        """
        if self._most + updates > MOST_UPDATES:
            self._most = int(self._counts.max(initial=0))
        if self._most + updates > MOST_UPDATES:
            raise errors.too_many_updates(MOST_UPDATES)
        self._most += updates

    def counts(self) -> NDArray[np.int64]:
        """Return the number of updates of each element.

        Returns
        -------
        numpy.ndarray of int64
            A copy, of `data`'s shape. Dropped updates are not counted.
        """
        with self._holding_lock():
            return self._counts.copy()

    def merge(self, other: Accumulator) -> Accumulator:
        """Apply all updates of another accumulator.

        The data that `other` started from is ignored.

        Parameters
        ----------
        other : Accumulator
            An accumulator of the same shape, dtype, reduction and `include_self`. It is not
            changed.

        Returns
        -------
        Accumulator
            This accumulator.

        Raises
        ------
        TypeError
            If `other` is not an accumulator.
        ValueError
            If the accumulators differ, or the result depends on the order of the updates. The order
            does not matter for integers and bools with any reduction except ``"none"``, for
            ``"max"`` and ``"min"`` of floats, and for ``"fsum"`` and ``"fmean"``. The error is also
            raised if an element would have more than 2^52 - 2 updates, the largest supported count.

        Examples
        --------
        >>> import gatherum
        >>> one, two = (gatherum.Accumulator([0, 0], "add") for _ in range(2))
        >>> one.scatter_nd([[0]], 5).merge(two.scatter_nd([[0], [1]], [1, 2])).finish()
        array([6, 2])
        """
        if not isinstance(other, Accumulator):
            raise errors.not_an_accumulator(other)
        for (name, value), other_value in zip(
            self._merged_properties().items(), other._merged_properties().values(), strict=True
        ):
            if value != other_value:
                raise errors.other_accumulator(name, value, other_value)
        if not self._fold.any_order:
            raise errors.order_matters(self._attributes.reduction, self._dtype)
        # One lock order, so that two threads that merge a into b and b into a do not deadlock.
        first, second = sorted((self, other), key=id)
        with first._holding_lock(), second._holding_lock():
            self._count_updates(other._most)
            self._fold.merge(self._sums, self._counts, other._sums, other._counts)
        return self

    def _merged_properties(self) -> dict[str, Any]:
        """Return the properties that must be equal in accumulators that merge."""
        return {"shape": self._shape, "dtype": self._dtype, **self._attributes.fold_keywords}

    def finish(self, out: NumpyArray | None = None) -> NumpyArray:
        """Return the result of all batches so far. More batches may follow.

        Parameters
        ----------
        out : numpy.ndarray, optional
            The array to store the result in, of the data's shape and dtype, with any strides.

        Returns
        -------
        numpy.ndarray
            `out`, or a new C-contiguous array.

        Raises
        ------
        TypeError
            If `out` is not an ndarray, is masked, or has another dtype.
        ValueError
            If `out` has another shape, is read-only or overlaps itself.
        """
        if out is None:
            return self._finished(None)
        pins = conversion.pinned(out)
        target = conversion.as_plain_out(f"{NAME}.finish", out, self._shape, self._dtype)
        if target.flags.c_contiguous:
            self._finished(target)
        else:
            apply("gather_nd", self._finished(None), ALL, out=target)
        del pins
        return out

    def _finished(self, out: NumpyArray | None) -> NumpyArray:
        with self._holding_lock():
            if self._dtype.itemsize == 0:
                return apply("gather_nd", self._data, ALL, out=out)
            result: NumpyArray = self._fold.finish(
                self._data, self._sums, self._counts, self._dtype, out
            )
        return result

    def __repr__(self) -> str:
        attributes = (f"{name}={value!r}" for name, value in state_of(self._attributes).items())
        return f"<{NAME} of {self._dtype} {self._shape}, {', '.join(attributes)}>"

    def __getstate__(self) -> dict[str, Any]:
        with self._holding_lock():
            arrays = {"data": self._data, "sums": self._sums, "counts": self._counts}
            copies = {
                name: None if array is None else apply("gather_nd", array, ALL)
                for name, array in arrays.items()
            }
        attributes = state_of(self._attributes)
        return {"version": VERSION, "dtype": self._dtype, **attributes, **copies}

    def __setstate__(self, state: object) -> None:
        dtype, attributes, arrays = checked_state(state)
        data, sums, counts = arrays.values()
        loaded = Accumulator.__new__(Accumulator)  # an invalid state must not change `self`
        loaded._describe(dtype, counts.shape, attributes)
        dtypes = (loaded._dtype if loaded._keeps_data else None), loaded._sum_dtype
        loaded._data, loaded._sums, loaded._counts = checked_arrays((data, sums, counts), dtypes)
        loaded._most = int(loaded._counts.max(initial=0))
        self.__dict__.update(loaded.__dict__)
        _LIVING.add(self)


def _after_fork() -> None:
    for accumulator in list(_LIVING):
        accumulator._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def new_accumulator(data: ArrayLike, attributes: Attributes) -> Accumulator:
    """Return an accumulator for scatters with these attributes."""
    return Accumulator(data, **state_of(attributes))


def extended_accumulator(accumulator: Accumulator, data: ArrayLike) -> Accumulator:
    """Return an accumulator of longer data that contains the updates of another.

    The data differ only in their first dimension.
    """
    longer = new_accumulator(data, accumulator._attributes)
    with accumulator._holding_lock():
        updated = slice(len(accumulator._counts))
        longer._counts[updated], longer._sums[updated] = accumulator._counts, accumulator._sums
        if longer._data is not None:
            longer._data[updated] = accumulator._data
        longer._most = accumulator._most
    return longer
