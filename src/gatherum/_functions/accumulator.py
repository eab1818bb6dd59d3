"""Accumulator: a scatter whose updates come in batches."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, plain_values, xarray_labels
from gatherum._core import Reduction
from gatherum._model import errors
from gatherum._model.call import Array, ArraySpec, Attributes, Call, FoldRule
from gatherum._model.call_types import ReductionName
from gatherum._model.dtypes import DType, accumulator_dtype, value_of
from gatherum._model.modes import ModeName
from gatherum._plans.plans import apply, build_once
from gatherum._system import native

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

# The accumulators of this process, for a forked child to check.
_LIVING: weakref.WeakSet[Accumulator] = weakref.WeakSet()


def _new_lock() -> Any:
    from threading import RLock  # not needed by calls, and slow to import

    return RLock()


class Accumulator:
    """A scatter that takes its updates in batches.

    However the updates are split, the result has the bits of one scatter of all batches, one after
    the other: float16 and bfloat16 keep float32 accumulators between batches, ``"mean"`` its exact
    counts, and ``include_self=False`` which elements have been touched.

    Parameters
    ----------
    data : array_like
        The array to start from. It is copied: what happens to it later changes nothing here, and
        it is never changed.
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
        If `reduction` or `mode` is not one of its values, or `data` has too many dimensions.

    See Also
    --------
    scatter_nd, scatter_elements, scatter_slices : All updates at once.

    Notes
    -----
    Beside an accumulator, every element of `data` has a count of 8 bytes. Integers, bools,
    ``"max"``, ``"min"``, ``"fsum"`` and ``"fmean"`` keep a copy of `data` as well, so that they can
    be merged. The accumulators of the last two take 32 bytes for float16, 88 for bfloat16 and
    float32, 544 for float64, and twice as many for complex numbers.

    Threads may share an accumulator: each batch is folded as a whole, in the order in which they
    come. An accumulator pickles, with everything that it has taken so far. In a child forked while
    another thread was inside one of its methods, it raises RuntimeError: half a batch may be in it.

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

    def __init__(
        self,
        data: ArrayLike,
        reduction: ReductionName,
        *,
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
    ) -> None:
        how = plain_values.as_attributes(NAME, 0, reduction, include_self, mode, negative)
        xarray_labels.refuse_labels(NAME, data=data)
        start = conversion.as_array(NAME, "data", data)
        check_data(start.shape, start.dtype, how.reduction)
        self._describe(start.dtype, start.shape, how)
        start = apply("gather_nd", start, ALL)
        self._counts: NDArray[np.int64] = np.zeros(start.shape, np.int64)
        self._most = 0  # no element has had more updates
        self._sums: Array = np.zeros(start.shape, self._sum_dtype)
        self._data: Array | None = start if self._keeps_data else None
        if not self._keeps_data:
            self._fold.begin(start, self._sums)

    def _describe(self, dtype: DType, shape: tuple[int, ...], attributes: Attributes) -> None:
        """Set everything but the arrays."""
        self._dtype, self._shape, self._attributes = dtype, shape, attributes
        # Items of no byte have no address, by which they could be counted: bytes stand in for them.
        moved = dtype if dtype.itemsize else np.dtype(np.uint8)
        self._operand = ArraySpec.contiguous(shape, dtype)
        self._sum_dtype = accumulator_dtype(moved, attributes.reduction)
        self._fold = _core_fold(attributes.fold, dtype)
        self._keeps_data = self._fold.any_order or dtype.itemsize == 0
        # Batches are checked against this: an array of the data's shape and dtype in no memory.
        self._like: Array = np.ndarray(
            shape, dtype, np.zeros(moved.itemsize, np.uint8), strides=(0,) * len(shape)
        )
        self._lock, self._torn = _new_lock(), False
        _LIVING.add(self)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Hold the lock of an accumulator that has taken each of its batches as a whole."""
        with self._lock:
            if self._torn:
                raise errors.torn_accumulator()
            yield

    def _after_fork(self) -> None:
        """Give up waiting, in a forked child, for a thread that only the parent has."""
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
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
        """Take a batch of elements or slices by tuples of indices.

        Parameters
        ----------
        indices, updates, batch_dims
            As in `gatherum.scatter_nd`.

        Returns
        -------
        Accumulator
            This one.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `gatherum.scatter_nd`, in whose name they speak. Nothing of the batch has then been
            taken.
        """
        if unknown:
            raise errors.unknown_argument("scatter_nd", unknown, has_axis=False)
        return self._take("scatter_nd", indices, updates, batch_dims)

    def scatter_elements(
        self,
        indices: ArrayLike,
        updates: ArrayLike,
        axis: int = 0,
        **unknown: Never,
    ) -> Accumulator:
        """Take a batch of one element for every index, as `scatter_nd` does.

        The arguments are those of `gatherum.scatter_elements`.
        """
        if unknown:
            raise errors.unknown_argument("scatter_elements", unknown)
        return self._take("scatter_elements", indices, updates, axis)

    def scatter_slices(
        self, indices: ArrayLike, updates: ArrayLike, axis: int = 0, **unknown: Never
    ) -> Accumulator:
        """Take a batch of one slice for every index, as `scatter_nd` does.

        The arguments are those of `gatherum.scatter_slices`.
        """
        if unknown:
            raise errors.unknown_argument("scatter_slices", unknown)
        return self._take("scatter_slices", indices, updates, axis)

    def _take(self, op: str, indices: object, updates: object, axis: object) -> Accumulator:
        xarray_labels.refuse_labels(op, indices=indices, updates=updates)
        how = self._attributes.positional[1:]
        plain: Any = conversion.normalise(op, self._like, indices, updates, axis, *how, 0, None)
        where, values = plain[2:4]
        pins = conversion.pinned(where, values)
        specs = ArraySpec.of(where), ArraySpec.of(values)
        attributes = self._attributes._replace(op=op, axis=plain[4])
        plan = build_once(Call(attributes, self._operand, *specs))
        if self._dtype.itemsize == 0:
            values = np.broadcast_to(np.uint8(0), values.shape)
            specs = specs[0], ArraySpec.of(values)
            byte = ArraySpec.contiguous(self._shape, values.dtype)
            plan = build_once(Call(attributes, byte, *specs))
        with self._whole():
            self._expect(where.size)
            self._fold.accumulate(plan, self._sums, self._counts, where, values)
        del pins
        return self

    def _expect(self, updates: int) -> None:
        """Count so many updates of any one element, or raise ValueError for more than MOST_UPDATES.

        The bound is above the counts, which are asked only where it says that there are too many.
        """
        if self._most + updates > MOST_UPDATES:
            self._most = int(self._counts.max(initial=0))
        if self._most + updates > MOST_UPDATES:
            raise errors.too_many_updates(MOST_UPDATES)
        self._most += updates

    def counts(self) -> NDArray[np.int64]:
        """Return how many updates each element has had.

        Returns
        -------
        numpy.ndarray of int64
            Of `data`'s shape; a copy. Dropped updates are not counted.
        """
        with self._whole():
            return self._counts.copy()

    def merge(self, other: Accumulator) -> Accumulator:
        """Take all that another accumulator has taken, as if its batches had come here.

        The data that `other` started from takes no part.

        Parameters
        ----------
        other : Accumulator
            Of the same shape, dtype, reduction and `include_self`; it is not changed.

        Returns
        -------
        Accumulator
            This one.

        Raises
        ------
        TypeError
            If `other` is not an accumulator.
        ValueError
            If it is one of something else, or the order of the updates would matter: merged can be
            integers and bools with any reduction but ``"none"``, ``"max"`` and ``"min"`` of
            floats, and ``"fsum"`` and ``"fmean"``. Also if an element would then have had more than
            2^52 - 2 updates, which is as far as they are counted.

        Examples
        --------
        >>> import gatherum
        >>> one, two = (gatherum.Accumulator([0, 0], "add") for _ in range(2))
        >>> one.scatter_nd([[0]], 5).merge(two.scatter_nd([[0], [1]], [1, 2])).finish()
        array([6, 2])
        """
        if not isinstance(other, Accumulator):
            raise errors.not_an_accumulator(other)
        for (name, mine), others in zip(self._kind().items(), other._kind().values(), strict=True):
            if mine != others:
                raise errors.other_accumulator(name, mine, others)
        if not self._fold.any_order:
            raise errors.order_matters(self._attributes.reduction, self._dtype)
        first, second = sorted((self, other), key=id)  # two threads that merge crosswise
        with first._whole(), second._whole():
            self._expect(other._most)
            self._fold.merge(self._sums, self._counts, other._sums, other._counts)
        return self

    def _kind(self) -> dict[str, Any]:
        """Return what accumulators that merge have in common."""
        return {"shape": self._shape, "dtype": self._dtype, **self._attributes.fold_keywords}

    def finish(self, out: Array | None = None) -> Array:
        """Return the result of all batches so far; more may follow.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Where the result goes: of the shape and dtype of the data, with any strides.

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

    def _finished(self, out: Array | None) -> Array:
        with self._whole():
            if self._dtype.itemsize == 0:
                return apply("gather_nd", self._data, ALL, out=out)
            result: Array = self._fold.finish(
                self._data, self._sums, self._counts, self._dtype, out
            )
        return result

    def __repr__(self) -> str:
        how = (f"{name}={value!r}" for name, value in state_of(self._attributes).items())
        return f"<{NAME} of {self._dtype} {self._shape}, {', '.join(how)}>"

    def __getstate__(self) -> dict[str, Any]:
        with self._whole():
            arrays = {"data": self._data, "sums": self._sums, "counts": self._counts}
            copies = {
                name: None if array is None else apply("gather_nd", array, ALL)
                for name, array in arrays.items()
            }
        how = state_of(self._attributes)
        return {"version": VERSION, "dtype": self._dtype, **how, **copies}

    def __setstate__(self, state: object) -> None:
        dtype, attributes, arrays = checked_state(state)
        data, sums, counts = arrays.values()
        made = Accumulator.__new__(Accumulator)  # a state that is refused changes nothing here
        made._describe(dtype, counts.shape, attributes)
        dtypes = (made._dtype if made._keeps_data else None), made._sum_dtype
        made._data, made._sums, made._counts = checked_arrays((data, sums, counts), dtypes)
        made._most = int(made._counts.max(initial=0))
        self.__dict__.update(made.__dict__)
        _LIVING.add(self)


def _after_fork() -> None:
    for accumulator in list(_LIVING):
        accumulator._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def begin(data: ArrayLike, attributes: Attributes) -> Accumulator:
    """Return an accumulator for scatters of these attributes."""
    return Accumulator(data, **state_of(attributes))


def element_bytes(dtype: DType, reduction: str) -> int:
    """Return what an element takes at most: its count, its accumulator, and its value twice."""
    return 2 * dtype.itemsize + accumulator_dtype(dtype, reduction).itemsize + 8


def can_merge(dtype: DType, reduction: str) -> bool:
    """Whether accumulators of this dtype can be merged: the order of updates does not matter."""
    return _core_fold(FoldRule(reduction), dtype).any_order


def _core_fold(rule: FoldRule, dtype: DType) -> native.Fold:
    code = Reduction[rule.reduction], value_of(dtype), rule.include_self
    return native.Fold(*code, max(1, dtype.itemsize))
