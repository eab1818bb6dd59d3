"""TensorScatter for ONNX's evaluator: write new keys and values to a language model's cache."""

from __future__ import annotations

import numpy as np

from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.shape_limits import resolve_axis
from gatherum._plans.plans import apply

from .operators import VersionedOp
from .strings import apply_to_strings, is_string

_MODES = ("linear", "circular")


class TensorScatter(VersionedOp, opsets=(24,)):
    """A copy of `past_cache` with `update` written from a given position in each sample."""

    op = "scatter_nd"
    names = ("past_cache", "update", "write_indices")

    def _run(
        self,
        past_cache: NumpyArray,
        update: NumpyArray,
        write_indices: NumpyArray | None = None,
        mode: str = "linear",
        axis: int = -2,
    ) -> tuple[NumpyArray]:
        operands = {"past_cache": past_cache, "update": update}
        if write_indices is not None:
            operands["write_indices"] = write_indices
        self._require_types(operands)
        compute = apply_to_strings if is_string(past_cache.dtype) else apply
        try:
            axis = self._axis(past_cache, mode, axis)
            starts = self._starts(past_cache, update, write_indices, axis)
            if mode == "linear":
                self._require_place(starts, past_cache.shape[axis], update.shape[axis])
            positions = _positions(starts, past_cache.shape[axis], update.shape[: axis + 1])
            return (compute(self.op, past_cache, positions, update, batch_dims=axis),)
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(self._worded(error)) from error

    def _axis(self, cache: NumpyArray, mode: str, axis: int) -> int:
        """Return the nonnegative axis of the sequence."""
        if mode not in _MODES:
            raise errors.not_one_of(self.op, "mode", mode, _MODES)
        if cache.ndim < 2:
            raise ValueError(f"`past_cache` must have at least 2 dimensions, got {cache.ndim}")
        sequence = resolve_axis(self.op, cache.shape, axis)
        if sequence == 0:
            raise ValueError(f"`axis` must not be that of the batch, 0, got {axis}")
        return sequence

    def _starts(
        self, cache: NumpyArray, update: NumpyArray, starts: NumpyArray | None, axis: int
    ) -> NumpyArray:
        """Check the shapes. Return the first position of each sample."""
        longest = cache.shape[axis]
        sizes = [str(size) for size in cache.shape]
        sizes[axis] = f"0 to {longest}"
        other_sizes = update.shape[:axis] + update.shape[axis + 1 :]
        if (
            update.ndim != cache.ndim
            or update.shape[axis] > longest
            or other_sizes != cache.shape[:axis] + cache.shape[axis + 1 :]
        ):
            raise ValueError(f"`update` must have shape ({', '.join(sizes)}), got {update.shape}")
        if starts is None:
            return np.zeros(cache.shape[0], np.int64)
        if starts.shape != cache.shape[:1]:
            raise ValueError(
                f"`write_indices` must have shape {cache.shape[:1]}, got {starts.shape}"
            )
        return starts

    def _require_place(self, starts: NumpyArray, longest: int, length: int) -> None:
        """Raise IndexError unless every sample's update ends within the cache."""
        wrong = np.flatnonzero((starts < 0) | (starts > longest - length))
        if wrong.size:
            sample = wrong[0]
            raise IndexError(
                f"`write_indices` must be in [0, {longest - length}], so that {length} positions "
                f"fit into the cache's {longest}, got {starts[sample]} (write_indices[{sample}])"
            )


def _positions(starts: NumpyArray, longest: int, entries: tuple[int, ...]) -> NumpyArray:
    """Return an index tuple for each entry, broadcast over the inner dimensions of the entries."""
    if longest == 0:  # no entries either
        return np.zeros((*entries, 1), np.int64)
    positions = (starts[:, None] % longest + np.arange(entries[-1])) % longest
    between = (1,) * (len(entries) - 2)
    shaped = positions.reshape(entries[0], *between, entries[-1], 1)
    return np.broadcast_to(shaped, (*entries, 1))
