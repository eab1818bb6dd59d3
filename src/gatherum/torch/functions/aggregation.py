"""`gatherum.aggregate` on tensors: ``torch.ops.gatherum.aggregate``, with derivatives.

The gradient of a sum is an aggregation along the same edges with sources and targets exchanged.
Products, maxima and minima are differentiated as a gather, a multiplication and a scatter.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments import conversion
from gatherum._core import Reduction, divides, is_exact
from gatherum._edges import edge_reductions, sparse_edges
from gatherum._edges.edge_reductions import NAME, AggregateOptions, Pointer
from gatherum._functions import aggregation
from gatherum._model import errors
from gatherum._model.dtypes import load_dtype
from gatherum._model.reductions import FOLDS, ROWS
from gatherum._plans import sharing
from gatherum._plans.sharing import Shared
from gatherum.torch import checks, dtypes, namespace, operands, private, shared_results
from gatherum.torch.autograd.batching import front, shape_of_one, stretched
from gatherum.torch.autograd.recording import (
    apply,
    below_recording,
    recording,
    records,
    value_alone,
)
from gatherum.torch.library.ops import LIBRARY, overload, with_below
from gatherum.torch.plain_folds import is_dispatched
from gatherum.torch.torch_scatter.scatter_arguments import checked_out

_LINEAR = tuple(name for name in FOLDS if ROWS[name].linear)
_on_arrays: Any = aggregation.aggregate


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def aggregate(data: Tensor, *edges: Any, **options: Any) -> Any:
    """Reduce rows of a tensor into other rows, edge by edge; see `gatherum.aggregate`."""
    return aggregation.aggregate(data, *edges, **options)


def run(
    data: Any, sources: Any, targets: Any, fold: AggregateOptions, weights: Any, out: Tensor | None
) -> Tensor:
    """Run `aggregate` on data that are a tensor."""
    size = namespace.as_size(NAME, "size", fold.size)
    data = namespace.as_values(NAME, "data", data)
    sources = namespace.as_groups(NAME, "gather_indices", sources, data)
    if isinstance(targets, Pointer):
        fold, targets = fold._replace(pointer=targets.operand), targets.indptr
    else:
        targets = namespace.as_groups(NAME, "scatter_indices", targets, data)
    if weights is not None:
        weights = _as_weights(weights, data)
    with errors.for_tensors():
        ends = sources, sources if fold.pointer else targets
        axis = edge_reductions.check_edges(
            namespace.plan_dtype, data, *ends, weights, fold.reduction, fold.axis
        )
        fill = None if fold.fill_value is None else operands.as_fill(NAME, fold.fill_value, data)
    fold = fold._replace(size=size, axis=axis, fill_value=fill)
    result = _again(data, sources, targets, weights, fold)
    return result if out is None else checked_out(NAME, out, result).copy_(result)


def _as_weights(value: Any, data: Tensor) -> Tensor:
    """Return weights as a tensor. Python numbers adopt the data's dtype."""
    if not isinstance(value, Tensor):
        checks.check_container(NAME, "weights", value)
        if not dtypes.is_of_numpy(data.dtype):
            return torch.as_tensor(value, dtype=data.dtype, device=data.device)
        plan_dtype = dtypes.plan_dtype(NAME, "data", data.dtype)
        with errors.for_tensors():
            array = conversion.as_updates(NAME, value, plan_dtype, "weights")
        value = operands.as_tensor(NAME, "weights", array, data)
    return namespace.as_values(NAME, "weights", value)


def _array(tensor: Tensor, plan_dtype: Any) -> np.ndarray[Any, Any]:
    """View a CPU tensor as a NumPy array."""
    array = dtypes.as_array(tensor.resolve_conj().resolve_neg())
    return array if dtypes.is_of_numpy(tensor.dtype) else array.view(plan_dtype)


def _on_cpu(*call: Any) -> Tensor:
    data, sources, targets, size, reduction, weights, *options = _full(call)
    bounds, negative, pointer, fill, axis = options
    plan_dtype: Any = dtypes.plan_dtype(NAME, "data", data.dtype)
    if not isinstance(plan_dtype, np.dtype):  # NumPy lacks the dtype until ml_dtypes is imported
        plan_dtype = load_dtype(plan_dtype.name)
    if not isinstance(plan_dtype, np.dtype):
        return _composed(*call)
    tensors = [data, sources, targets, *([] if weights is None else [weights])]
    checks.check_storages(NAME, ("data", "gather_indices", "scatter_indices", "weights"),
                          tuple(tensors))  # fmt: skip
    table, source_array, target_array, *scales = (_array(tensor, plan_dtype) for tensor in tensors)
    scale = scales[0] if scales else None
    ends = Pointer(pointer, target_array) if pointer else target_array
    with errors.for_tensors():
        result = _on_arrays(
            table, source_array, ends, size, reduction, scale, mode=bounds, negative=negative,
            fill_value=fill, axis=axis,
        )  # fmt: skip
    if dtypes.is_of_numpy(data.dtype):
        return torch.from_numpy(result)
    return torch.from_numpy(result.view(np.uint16)).view(data.dtype)


def _composed(*call: Any) -> Tensor:
    data, sources, targets, size, reduction, weights, *options = _full(call)
    bounds, negative, pointer, fill, axis = options
    fold = AggregateOptions(size, reduction, bounds, negative, "", fill, axis)
    targets = _listed(targets, sources.shape[0], pointer)
    with namespace.float_mode():
        result: Tensor = edge_reductions.composed(namespace, data, sources, targets, weights, fold)
    return result


def _on_cuda(*call: Any) -> Tensor:
    """Fold rows straight from the data if the axis is 0 and an edge has at most one weight."""
    from gatherum.torch import cuda

    data, sources, targets, size, reduction, weights, *options = _full(call)
    bounds, negative, pointer, fill, axis = options
    plain = axis == 0 and sources.numel() > sharing.MOST_IN_BLOCK
    if weights is not None:
        plain = plain and weights.dim() <= sources.dim() and not is_exact(Reduction[reduction])
    with shared_results.sharing_calls() as shared, namespace.float_mode():
        if pointer:
            targets = _listed(targets, sources.shape[0], pointer)
            cuda.keep_adjacent(targets)
        if not plain or shared is None or 0 in (*data.shape, size):
            return _composed(data, sources, targets, size, reduction, weights, bounds, negative, "",
                             fill, axis)  # fmt: skip
        fold = AggregateOptions(size, reduction, bounds, negative, "", fill)
        return _folded(data, sources, targets, weights, fold, shared)


def _folded(
    data: Tensor,
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    fold: AggregateOptions,
    shared: Shared,
) -> Tensor:
    from gatherum.cuda import edges
    from gatherum.torch import cuda

    rows = data.shape[0]
    if fold.skips:
        targets = edge_reductions.complete(namespace, sources, targets, rows, fold)
    index_dtype = dtypes.of_plan(edges.source_dtype(rows))

    def numbers() -> Tensor:
        positions = torch.arange(rows, dtype=index_dtype, device=data.device)
        return namespace.gather(fold.gather, positions, sources).contiguous()

    table = edge_reductions.empty_table(namespace, data, fold)
    negative = fold.negative and not fold.skips
    if weights is not None:
        weights = weights.expand(sources.shape).contiguous().resolve_conj()
        weights = weights.clone() if weights.data_ptr() % weights.element_size() else weights
    row_edges = edges.Edges(sources, numbers, targets, fold.mode, negative, weights)
    return cuda.fold_rows(shared, data, row_edges, table, fold.reduction)


def _listed(targets: Tensor, edges: int, pointer: str) -> Tensor:
    """Return the target of each edge. Expand a pointer if one was passed instead."""
    if not pointer:
        return targets
    known: Any = namespace.to_numpy(targets)
    with errors.for_tensors():
        segments = sparse_edges.segment_numbers(NAME, pointer, known, edges)
    return torch.from_numpy(segments).to(targets.device)


def _shape(data: Tensor, *edges: Any) -> Tensor:
    size, axis = edges[2], _full((data, *edges))[-1]
    return data.new_empty((*data.shape[:axis], size, *data.shape[axis + 1 :]))


_Function: Any = private.recorded_function(lambda ctx: (*ctx.fold, ctx.rows))


class _Sum(_Function):  # type: ignore[misc]
    """A sum or a mean, which is linear in the data and in the weights."""

    @staticmethod
    def forward(
        ctx: Any, keyset: Any, data: Tensor, sources: Tensor, targets: Tensor, size: int,
        reduction: str, weights: Tensor | None, bounds: str, negative: bool, pointer: str,
        fill: Any, axis: int,
    ) -> Any:  # fmt: skip
        saved = (data, sources, targets, *([] if weights is None else [weights]))
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)
        # Derivatives do not depend on the fill value.
        ctx.fold = AggregateOptions(size, reduction, bounds, negative, pointer, axis=axis)
        ctx.rows = data.shape[axis]
        options = bounds, negative, pointer, fill, axis
        call = data, sources, targets, size, reduction, weights, *options
        with shared_results.sharing_calls() as ctx.shared:
            return below_recording(overload(NAME), keyset, *call)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return (None,) * 12
        with namespace.float_mode(), shared_results.sharing_gradients(ctx.shared):
            return _gradients(ctx, gradient)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording(), namespace.float_mode():
            data, sources, targets, *more = ctx.saved_tensors
            weights = more[0] if more else None
            if private.transforms_active():
                data = value_alone(data)
                weights = None if weights is None else value_alone(weights)
            parts = []
            if tangents[1] is not None:
                parts.append(_again(tangents[1], sources, targets, weights, ctx.fold))
            if tangents[6] is not None:
                parts.append(_again(data, sources, targets, tangents[6], ctx.fold))
            return sum(parts[1:], parts[0]) if parts else None


def _gradients(ctx: Any, gradient: Tensor) -> Any:
    """Return the gradients of the arguments of `_Sum`."""
    data, sources, targets, *more = ctx.saved_tensors
    targets = _listed(targets, sources.shape[0], ctx.fold.pointer)
    fold, weights = ctx.fold._replace(pointer=""), more[0] if more else None
    if divides(Reduction[fold.reduction]):
        ones = data.new_ones(ctx.rows, dtype=dtypes.wide(data.dtype))
        counts = _again(ones, sources, targets, None, fold._replace(reduction="add", axis=0))
        counts = counts.real.clamp(min=1) if counts.is_complex() else counts.clamp(min=1)
        trailing = (1,) * (gradient.dim() - 1 - fold.axis)
        gradient = gradient.to(ones.dtype) / counts.reshape(-1, *trailing)
        data, weights = data.to(ones.dtype), None if weights is None else weights.to(ones.dtype)
    of_data = of_weights = None
    if ctx.needs_input_grad[1]:
        back = fold._replace(size=ctx.rows, reduction="add")
        factors = None if weights is None else weights.conj()
        of_data = _again(gradient, targets, sources, factors, back).to(ctx.saved_tensors[0].dtype)
    if weights is not None and ctx.needs_input_grad[6]:
        ends = sources, targets
        per_edge = edge_reductions.of_weights(namespace, gradient, data, *ends, more[0].dim(), fold)
        of_weights = namespace.sum_to(per_edge, more[0].shape).to(more[0].dtype)
    return None, of_data, None, None, None, None, of_weights, None, None, None, None, None


def _again(
    data: Tensor, sources: Tensor, targets: Tensor, weights: Tensor | None, fold: AggregateOptions
) -> Tensor:
    options = fold.size, fold.reduction, weights, fold.mode, fold.negative, fold.pointer
    more = () if fold[5:] == (None, 0) else (fold.fill_value, fold.axis)
    call = data, sources, targets, *options, *more
    tensors = (data, sources, targets) if weights is None else (data, sources, targets, weights)
    direct = shared_results.on_device(data) and not is_dispatched(*tensors)
    result: Tensor = (_on_cuda if direct else overload(NAME))(*call)
    return result


def _full(call: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return all arguments of a call, with defaults for omitted ones."""
    return *call, *(None, "raise", True, "", None, 0)[len(call) - 5 :]


def _recorded(keyset: Any, *arguments: Any) -> Any:
    """Run a call, and record it if it may be differentiated."""
    call = _full(arguments)
    operands = call[0], call[5]
    if call[4] not in _LINEAR and (private.transforms_active() or records(operands)):
        return _composed(*call)
    return apply(_Sum, overload(NAME), keyset, call, operands)


def _batched(info: Any, dims: Any, *call: Any) -> tuple[Tensor, int]:
    data, sources, targets, size, reduction, weights, *options, axis = _full(call)
    if dims[0] is not None and all(dim is None for dim in dims[1:]) and data.dim() > 1:
        call = sources, targets, size, reduction, weights, *options, axis + 1
        return overload(NAME)(data.movedim(dims[0], 0), *call), 0
    bounds, negative, pointer, fill = options
    edges = shape_of_one(sources, dims[1])
    targets = _listed(targets, prod(edges), pointer)
    data, sources, targets = (
        front(operand, dim, info.batch_size)
        for operand, dim in zip((data, sources, targets), dims[:3], strict=True)
    )
    if weights is not None:
        weights = front(weights, dims[5], info.batch_size)
        trailing = tuple(data.shape[axis + 2 :])
        shape = edge_reductions.weighted_shape(edges, trailing, weights.dim() - 1)
        weights = edge_reductions.lifted(namespace, stretched(weights, shape), len(edges) + 1, axis)
    fold = AggregateOptions(size, reduction, bounds, negative, fill_value=fill)
    result = edge_reductions.composed(
        namespace, data.movedim(axis + 1, 1), sources, targets, weights, fold, batched=True
    )
    return result.movedim(1, axis + 1), 0


_SCHEMA = (
    "(Tensor data, Tensor gather_indices, Tensor scatter_indices, SymInt size, str reduction, "
    "Tensor? weights=None, str bounds='raise', bool negative=True, str pointer='', "
    "Scalar? fill_value=None, int axis=0) -> Tensor"
)
for _name in with_below(NAME):
    LIBRARY.define(_name + _SCHEMA, tags=torch.Tag.pt2_compliant_tag)
    LIBRARY.impl(_name, _on_cpu, "CPU")
    LIBRARY.impl(_name, _on_cuda, "CUDA")
    torch.library.register_fake(f"gatherum::{_name}", _shape, lib=LIBRARY)
    torch.library.register_vmap(f"gatherum::{_name}", _batched, lib=LIBRARY)
LIBRARY.impl(NAME, _recorded, "Autograd", with_keyset=True)
