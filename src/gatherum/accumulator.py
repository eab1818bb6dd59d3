"""Folds in batches: a scatter whose updates come a few at a time."""

from __future__ import annotations

import weakref
from functools import lru_cache
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import arguments, errors, native, shapes
from ._core import Reduction
from .dtypes import (
    MODES,
    REDUCTIONS,
    DType,
    accumulator_dtype,
    is_movable,
    is_reducible,
    value_of,
)
from .names import ModeName, ReductionName
from .plan import Plan, apply, build
from .signature import Array, Operand, Signature, check_out

_NAME = "Accumulator"
_VERSION = 1
# One tuple of no component addresses all of an array: a copy of it, bit for bit.
_ALL = np.empty(0, np.int64)


class Accumulator:
    """A scatter that takes its updates in batches.

    However the updates are split, the result has the bits of one scatter of all batches, one behind
    the other: float16 and bfloat16 keep float32 accumulators between batches, ``"mean"`` its exact
    counts, and ``include_self=False`` which elements have been touched.

    Parameters
    ----------
    data : array_like
        The array to start from. It is copied: what happens to it later changes nothing here, and
        it is never changed.
    reduction : {"none", "add", "mul", "max", "min", "mean"}
        How an update meets the value at its destination.
    include_self : bool, default True
        Whether the values of `data` take part in the reduction, as in `scatter_nd`.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        What an index outside of its dimension does, as in `scatter_nd`.
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
    ``"max"`` and ``"min"`` keep a copy of `data` as well, so that they can be merged.

    Threads may share an accumulator: each batch is folded as a whole, in the order in which they
    come. An accumulator pickles, with everything that it has taken so far.

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
        how = arguments.as_choice(_NAME, "reduction", reduction, REDUCTIONS)
        invalid = arguments.as_choice(_NAME, "mode", mode, MODES)
        include_self = arguments.as_boolean(_NAME, "include_self", include_self)
        negative = arguments.as_boolean(_NAME, "negative", negative)
        start = arguments.as_array(_NAME, "data", data)
        _check_data(start.shape, start.dtype, how)
        self._describe(start.dtype, start.shape, how, include_self, invalid, negative)
        start = apply("gather_nd", start, _ALL)
        self._counts: NDArray[np.int64] = np.zeros(start.shape, np.int64)
        self._sums: Array = np.zeros(start.shape, self._sum_dtype)
        self._data: Array | None = start if self._keeps_data else None
        if not self._keeps_data:
            self._fold.begin(start, self._sums)

    def _describe(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        reduction: str,
        include_self: bool,
        mode: str,
        negative: bool,
    ) -> None:
        """Set everything but the arrays."""
        self._dtype, self._shape = dtype, shape
        self._reduction, self._include_self = reduction, include_self
        self._mode, self._negative = mode, negative
        # Items of no byte have no address, by which they could be counted: bytes stand in for them.
        moved = dtype if dtype.itemsize else np.dtype(np.uint8)
        self._operand = _contiguous(shape, dtype)
        self._sum_dtype = accumulator_dtype(moved, reduction)
        self._fold = native.Fold(
            Reduction[reduction], value_of(dtype), include_self, moved.itemsize
        )
        self._keeps_data = self._fold.any_order or dtype.itemsize == 0
        # What a batch is checked against: the looks of the data, in no memory.
        self._like: Array = np.ndarray(
            shape, dtype, np.zeros(moved.itemsize, np.uint8), strides=(0,) * len(shape)
        )
        self._lock = RLock()

    def scatter_nd(
        self, indices: ArrayLike, updates: ArrayLike, batch_dims: int = 0
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
        return self._take("scatter_nd", indices, updates, batch_dims)

    def scatter_elements(
        self, indices: ArrayLike, updates: ArrayLike, axis: int = 0
    ) -> Accumulator:
        """Take a batch of one element for every index.

        Parameters
        ----------
        indices, updates, axis
            As in `gatherum.scatter_elements`.

        Returns
        -------
        Accumulator
            This one.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `gatherum.scatter_elements`, in whose name they speak. Nothing of the batch has then
            been taken.
        """
        return self._take("scatter_elements", indices, updates, axis)

    def scatter_slices(self, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Accumulator:
        """Take a batch of one slice for every index.

        Parameters
        ----------
        indices, updates, axis
            As in `gatherum.scatter_slices`.

        Returns
        -------
        Accumulator
            This one.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `gatherum.scatter_slices`, in whose name they speak. Nothing of the batch has then
            been taken.
        """
        return self._take("scatter_slices", indices, updates, axis)

    def _take(self, op: str, indices: object, updates: object, axis: object) -> Accumulator:
        how = self._reduction, self._include_self, self._mode, self._negative
        plain: Any = arguments.normalise(op, self._like, indices, updates, axis, *how, 0, None)
        _, _, where, values, axis, *_ = plain
        pins = _pinned(where, values)
        seen = Operand.of(where), Operand.of(values)
        plan = _planned(Signature(op, self._operand, *seen, plain[4], *how, None))
        if self._dtype.itemsize == 0:
            values = np.broadcast_to(np.uint8(0), values.shape)
            seen = seen[0], Operand.of(values)
            byte = _contiguous(self._shape, values.dtype)
            plan = _planned(Signature(op, byte, *seen, plain[4], *how, None))
        with self._lock:
            self._fold.accumulate(plan, self._sums, self._counts, where, values)
        del pins
        return self

    def counts(self) -> NDArray[np.int64]:
        """Return how many updates each element has had.

        Returns
        -------
        numpy.ndarray of int64
            Of `data`'s shape; a copy. Dropped updates are not counted.
        """
        with self._lock:
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
            integers and bools with any reduction but ``"none"``, and ``"max"`` and ``"min"`` of
            floats.

        Examples
        --------
        >>> import gatherum
        >>> one, two = (gatherum.Accumulator([0, 0], "add") for _ in range(2))
        >>> one.scatter_nd([[0]], 5).merge(two.scatter_nd([[0], [1]], [1, 2])).finish()
        array([6, 2])
        """
        if not isinstance(other, Accumulator):
            raise errors.not_an_accumulator(other)
        for name in ("shape", "dtype", "reduction", "include_self"):
            mine, others = getattr(self, f"_{name}"), getattr(other, f"_{name}")
            if mine != others:
                raise errors.other_accumulator(name, mine, others)
        if not self._fold.any_order:
            raise errors.order_matters(self._reduction, self._dtype)
        first, second = sorted((self, other), key=id)  # two threads that merge crosswise
        with first._lock, second._lock:
            self._fold.merge(self._sums, self._counts, other._sums, other._counts)
        return self

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
            If `out` is no ndarray, masked, or of another dtype.
        ValueError
            If `out` has another shape, is read-only or overlaps itself.
        """
        pins = [] if out is None else _pinned(out)
        target = None if out is None else self._check_out(out)
        direct = target is not None and target.flags.c_contiguous
        result = self._finished(target if direct else None)
        if out is None:
            return result
        if not direct:
            apply("gather_nd", result, _ALL, out=target)
        del pins
        return out

    def _finished(self, out: Array | None) -> Array:
        if self._dtype.itemsize == 0:
            return apply("gather_nd", self._data, _ALL, out=out)
        with self._lock:
            result: Array = self._fold.finish(
                self._data, self._sums, self._counts, self._dtype, out
            )
        return result

    def _check_out(self, out: Array) -> Array:
        """Return `out` as a plain array, or raise as a scatter would."""
        op = f"{_NAME}.finish"
        plain = np.asarray(arguments.as_out(op, out))
        check_out(op, self._shape, self._dtype, Operand.of(plain))
        if not plain.flags.writeable:
            raise errors.out_read_only(op)
        return plain

    def __repr__(self) -> str:
        return (
            f"<{_NAME} of {self._dtype} {self._shape}, reduction={self._reduction!r}, "
            f"include_self={self._include_self}, mode={self._mode!r}, negative={self._negative}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            arrays = {"data": self._data, "sums": self._sums, "counts": self._counts}
            copies = {
                name: None if array is None else apply("gather_nd", array, _ALL)
                for name, array in arrays.items()
            }
        return {
            "version": _VERSION,
            "dtype": self._dtype,
            "reduction": self._reduction,
            "include_self": self._include_self,
            "mode": self._mode,
            "negative": self._negative,
            **copies,
        }

    def __setstate__(self, state: object) -> None:
        kept = _checked_state(state)
        data, sums, counts = (kept.pop(name) for name in ("data", "sums", "counts"))
        self._describe(shape=counts.shape, **kept)
        sums = _reordered(sums, self._sum_dtype)
        wanted = (self._dtype if self._keeps_data else None), self._sum_dtype, np.dtype(np.int64)
        found = (None if data is None else data.dtype), sums.dtype, counts.dtype
        alike = sums.shape == counts.shape and (data is None or data.shape == counts.shape)
        if found != wanted or not alike or (counts < 0).any():
            raise errors.damaged_state("its arrays do not belong together")
        self._data = None if data is None else _owned(data)
        self._sums, self._counts = _owned(sums), _owned(counts)


def element_bytes(dtype: DType, reduction: str) -> int:
    """Return what an element takes at most: its count, its accumulator, and its value twice."""
    return 2 * dtype.itemsize + accumulator_dtype(dtype, reduction).itemsize + 8


def _pinned(*arrays: object) -> list[weakref.ref[Any]]:
    """Return weak references to arrays and to those whose memory they show: ndarray.resize moves
    no array that has one, neither in a finalizer nor in another thread.
    """
    pins = []
    for array in arrays:
        while isinstance(array, np.ndarray):
            pins.append(weakref.ref(array))
            array = array.base  # noqa: PLW2901  # the chain of owners
    return pins


@lru_cache(maxsize=256)
def _planned(signature: Signature) -> Plan:
    return build(signature)


def _contiguous(shape: tuple[int, ...], dtype: DType) -> Operand:
    return Operand(shape, dtype, shapes.contiguous_strides(shape, dtype.itemsize))


def _check_data(shape: tuple[int, ...], dtype: DType, reduction: str) -> None:
    """Raise what a scatter into such data would raise whatever its updates are."""
    if not is_movable(dtype):
        raise errors.objects(_NAME, "data", dtype)
    if reduction != "none" and not is_reducible(dtype, reduction):
        raise errors.not_reducible(_NAME, reduction, dtype)
    shapes.check_rank(_NAME, "`data`", len(shape))
    shapes.check_result(_NAME, shape, dtype)


_STATE = {
    "version",
    "dtype",
    "reduction",
    "include_self",
    "mode",
    "negative",
    "data",
    "sums",
    "counts",
}


def _checked_state(state: object) -> dict[str, Any]:
    """Return a pickled state: the arguments of `_describe` but the shape, and three arrays."""
    if not isinstance(state, dict) or state.get("version") != _VERSION or set(state) != _STATE:
        raise errors.damaged_state(f"it is not one of version {_VERSION}")
    kept = {name: value for name, value in state.items() if name != "version"}
    arrays = [kept["sums"], kept["counts"], *([] if kept["data"] is None else [kept["data"]])]
    if not all(type(array) is np.ndarray for array in arrays):
        raise errors.damaged_state("its arrays are no arrays")
    if not isinstance(kept["dtype"], np.dtype):
        raise errors.damaged_state("its dtype is none")
    try:
        for name, words in (("reduction", REDUCTIONS), ("mode", MODES)):
            kept[name] = arguments.as_choice(_NAME, name, kept[name], words)
        for name in ("include_self", "negative"):
            kept[name] = arguments.as_boolean(_NAME, name, kept[name])
        _check_data(kept["counts"].shape, kept["dtype"], kept["reduction"])
    except (TypeError, ValueError) as why:
        raise errors.damaged_state(why) from None
    return kept


def _reordered(array: Array, dtype: DType) -> Array:
    """Return the array in the byte order of `dtype`: pickles before protocol 5 lose it."""
    lost = not dtype.isnative and array.dtype == dtype.newbyteorder("=")
    return array.byteswap().view(dtype) if lost else array


def _owned(array: Array) -> Array:
    """Return the array itself if nobody else can change it, or else a copy."""
    return array if array.flags.carray and array.flags.owndata else apply("gather_nd", array, _ALL)
