"""Number the segments of positions, from a pointer to the starts of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._derivatives.array_ops import ADD, Destinations
from gatherum._model.call import Attributes
from gatherum._model.callers import Caller

from . import checks, private
from . import errors as torch_errors
from .library import symbolic_sizes

BATCH = "it takes a batch itself, with dimensions of `indptr` in front"


def of_edges(xp: Any, op: str, indptr: Tensor, edges: int) -> Tensor:
    """Return the segment of each edge in a traced graph, from a pointer that covers all edges.

    `xp` is the namespace of arrays.
    """
    whole = (indptr[0] == 0) & (indptr[-1] == edges)
    if symbolic_sizes.is_scripted() or private.assert_when_run is None:
        indptr = torch.where(whole, indptr, -1)
    else:
        text = "`indptr` must begin with 0 and end with the number of edges"
        private.assert_when_run(whole, f"{op}: {text}")
    return of_positions(xp, op, indptr, edges)


def of_positions(
    xp: Any, op: str, indptr: Tensor, size: int, *, ends_itself: bool = False
) -> Tensor:
    """Return the segment number of each of `size` positions.

    It is the number of segments that begin at or before the position, less 1, computed by a count
    and a cumulative sum. Positions before the first segment get -1; positions after the last
    segment get the number of segments. Both are out of bounds. With `ends_itself`, `size` is the
    last value of the pointer and error messages omit it.
    """
    # The values are known when the graph runs.
    if torch.compiler.is_compiling() or symbolic_sizes.is_scripted():
        before = torch.arange(-1, indptr.shape[-1] - 1, device=indptr.device).clamp(min=0)
        ordered = (indptr.index_select(-1, before) <= indptr).all()
        ordered &= (indptr >= 0).all() & (indptr <= size).all()
        if symbolic_sizes.is_scripted() or private.assert_when_run is None:
            # TorchScript drops assertions, but not the index checks.
            indptr = torch.where(ordered, indptr, -1)
        else:
            private.assert_when_run(ordered, f"{op}: `indptr` must not decrease")
    else:
        checks.check_values(op, "indptr", indptr, BATCH)
        named = None if ends_itself else size
        if indptr.dim() == 1 and indptr.is_cpu and (read := xp.to_numpy(indptr)) is not None:
            # NumPy needs a tenth of the time for a few numbers.
            ends = np.empty(len(read) + 2, np.int64)
            ends[0], ends[1:-1], ends[-1] = 0, read, size
            lengths = ends[1:] - ends[:-1]
            if lengths.min() < 0:
                segment = min(int((lengths < 0).argmax()), len(read) - 1)
                raise torch_errors.no_segments(
                    op, named, f", got {read[segment]} (indptr[{segment}])"
                )
            return torch.from_numpy(np.repeat(np.arange(-1, len(read)), lengths))
        beyond = indptr.numel() and (int(indptr.min()) < 0 or int(indptr.max()) > size)
        if beyond or bool((indptr.diff(dim=-1) < 0).any()):
            raise torch_errors.no_segments(op, named)
    shape = (*indptr.shape[:-1], size + 1)
    caller = Caller(op, "indptr").text
    attributes = Attributes("scatter_elements", indptr.dim() - 1, negative=False, caller=caller)
    begin = Destinations(xp, attributes, indptr, shape)
    unit = torch.ones((), dtype=torch.int64, device=indptr.device)
    with torch_errors.naming(caller):
        counts = begin.scatter(torch.zeros_like(unit).expand(shape), unit, ADD)
    return counts.cumsum(-1).narrow(-1, 0, size) - 1
