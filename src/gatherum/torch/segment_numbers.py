"""Compute the segment number of each position, from a CSR pointer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatherum._derivatives.array_ops import ADD, Destinations
from gatherum._model.call import Attributes
from gatherum._model.callers import Caller

from . import checks, private
from . import errors as torch_errors
from .library import symbolic_sizes

BATCH = "it takes a batch itself, with dimensions of `indptr` in front"


def segments_of_edges(xp: Any, op: str, indptr: Tensor, edges: int) -> Tensor:
    """Return the segment of each edge in a traced graph, from an `indptr` that covers all edges.

    `xp` is the namespace of arrays.
    """
    covers_all_edges = (indptr[0] == 0) & (indptr[-1] == edges)
    if symbolic_sizes.is_scripted() or private.assert_when_run is None:
        indptr = torch.where(covers_all_edges, indptr, -1)
    else:
        text = "`indptr` must begin with 0 and end with the number of edges"
        private.assert_when_run(covers_all_edges, f"{op}: {text}")
    return segments_of_positions(xp, op, indptr, edges)


def segments_of_positions(
    xp: Any, op: str, indptr: Tensor, size: int, *, size_is_last_pointer: bool = False
) -> Tensor:
    """Return the segment number of each of `size` positions.

    Positions before the first segment get -1; positions after the last segment get the number of
    segments. Both are out of bounds. If `size` is the last value of `indptr`, error messages omit
    the size.
    """
    if torch.compiler.is_compiling() or symbolic_sizes.is_scripted():
        return _counted_segments(xp, op, _checked_when_run(op, indptr, size), size)
    checks.check_values(op, "indptr", indptr, BATCH)
    size_in_messages = None if size_is_last_pointer else size
    if indptr.dim() == 1 and indptr.is_cpu and (pointer := xp.to_numpy(indptr)) is not None:
        return _repeated_segments(op, pointer, size, size_in_messages)
    is_outside = indptr.numel() and (int(indptr.min()) < 0 or int(indptr.max()) > size)
    if is_outside or bool((indptr.diff(dim=-1) < 0).any()):
        raise torch_errors.no_segments(op, size_in_messages)
    return _counted_segments(xp, op, indptr, size)


def _checked_when_run(op: str, indptr: Tensor, size: int) -> Tensor:
    """Return a pointer whose values a graph checks when it runs, because they are not known yet."""
    previous = torch.arange(-1, indptr.shape[-1] - 1, device=indptr.device).clamp(min=0)
    is_valid = (indptr.index_select(-1, previous) <= indptr).all()
    is_valid &= (indptr >= 0).all() & (indptr <= size).all()
    if symbolic_sizes.is_scripted() or private.assert_when_run is None:
        # TorchScript drops assertions, but not the index checks.
        return torch.where(is_valid, indptr, -1)
    private.assert_when_run(is_valid, f"{op}: `indptr` must not decrease")
    return indptr


def _repeated_segments(
    op: str, pointer: NDArray[Any], size: int, size_in_messages: int | None
) -> Tensor:
    """Return the segment numbers for a pointer in NumPy, which needs a tenth of the time for a few
    numbers. Raise ValueError for an invalid pointer.
    """
    bounds = np.empty(len(pointer) + 2, np.int64)
    bounds[0], bounds[1:-1], bounds[-1] = 0, pointer, size
    lengths = bounds[1:] - bounds[:-1]
    if lengths.min() < 0:
        segment = min(int((lengths < 0).argmax()), len(pointer) - 1)
        detail = f", got {pointer[segment]} (indptr[{segment}])"
        raise torch_errors.no_segments(op, size_in_messages, detail)
    return torch.from_numpy(np.repeat(np.arange(-1, len(pointer)), lengths))


def _counted_segments(xp: Any, op: str, indptr: Tensor, size: int) -> Tensor:
    """Return the segment numbers by a count and a cumulative sum.

    The segment number of a position is the number of segments that begin at or before the position,
    less 1.
    """
    shape = (*indptr.shape[:-1], size + 1)
    caller = Caller(op, "indptr").text
    attributes = Attributes("scatter_elements", indptr.dim() - 1, negative=False, caller=caller)
    segment_starts = Destinations(xp, attributes, indptr, shape)
    one = torch.ones((), dtype=torch.int64, device=indptr.device)
    with torch_errors.naming(caller):
        counts = segment_starts.scatter(torch.zeros_like(one).expand(shape), one, ADD)
    return counts.cumsum(-1).narrow(-1, 0, size) - 1
