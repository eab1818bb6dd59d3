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
from gatherum._plans.sharing import Shared
from gatherum.torch import checks, dtypes, namespace, operands, private, shared_results
from gatherum.torch.autograd.batching import batch_first, broadcast_updates, shape_of_one
from gatherum.torch.autograd.recording import (
    recording,
    requires_recording,
    run_below_this_level,
    run_or_record,
    without_tangent,
)
from gatherum.torch.library.ops import LIBRARY, overload, with_below
from gatherum.torch.plain_folds import is_dispatched
from gatherum.torch.torch_scatter.scatter_arguments import checked_out

_LINEAR = tuple(name for name in FOLDS if ROWS[name].is_linear)
_aggregate_arrays: Any = aggregation.aggregate


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def aggregate(data: Tensor, *edges: Any, **options: Any) -> Any:
    """Reduce rows of a tensor into other rows, edge by edge; see `gatherum.aggregate`."""
    return aggregation.aggregate(data, *edges, **options)


def run(
    data: Any,
    sources: Any,
    targets: Any,
    options: AggregateOptions,
    weights: Any,
    out: Tensor | None,
) -> Tensor:
    """Run `aggregate` with a tensor as data."""
    size = namespace.as_size(NAME, "size", options.size)
    data = namespace.as_values(NAME, "data", data)
    sources = namespace.as_groups(NAME, "gather_indices", sources, data)
    if isinstance(targets, Pointer):
        options, targets = options._replace(pointer=targets.operand), targets.indptr
    else:
        targets = namespace.as_groups(NAME, "scatter_indices", targets, data)
    if weights is not None:
        weights = _as_weights(weights, data)
    with errors.for_tensors():
        ends = sources, sources if options.pointer else targets
        axis = edge_reductions.check_edges(
            namespace.plan_dtype, data, *ends, weights, options.reduction, options.axis
        )
        fill = (
            None if options.fill_value is None else operands.as_fill(NAME, options.fill_value, data)
        )
    options = options._replace(size=size, axis=axis, fill_value=fill)
    result = _aggregate(data, sources, targets, weights, options)
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
    data, sources, targets, size, reduction, weights, *others = _with_defaults(call)
    bounds, negative, pointer, fill, axis = others
    plan_dtype: Any = dtypes.plan_dtype(NAME, "data", data.dtype)
    if not isinstance(plan_dtype, np.dtype):  # NumPy lacks the dtype until ml_dtypes is imported
        plan_dtype = load_dtype(plan_dtype.name)
    if not isinstance(plan_dtype, np.dtype):
        return _aggregate_with_messages(*call)
    tensors = [data, sources, targets, *([] if weights is None else [weights])]
    checks.check_storages(NAME, ("data", "gather_indices", "scatter_indices", "weights"),
                          tuple(tensors))  # fmt: skip
    table, source_array, target_array, *scales = (_array(tensor, plan_dtype) for tensor in tensors)
    scale = scales[0] if scales else None
    ends = Pointer(pointer, target_array) if pointer else target_array
    with errors.for_tensors():
        result = _aggregate_arrays(
            table, source_array, ends, size, reduction, scale, mode=bounds, negative=negative,
            fill_value=fill, axis=axis,
        )  # fmt: skip
    if dtypes.is_of_numpy(data.dtype):
        return torch.from_numpy(result)
    return torch.from_numpy(result.view(np.uint16)).view(data.dtype)


def _aggregate_with_messages(*call: Any) -> Tensor:
    data, sources, targets, size, reduction, weights, *others = _with_defaults(call)
    bounds, negative, pointer, fill, axis = others
    options = AggregateOptions(size, reduction, bounds, negative, fill_value=fill, axis=axis)
    targets = _targets_of_edges(targets, sources.shape[0], pointer)
    with namespace.float_mode():
        result: Tensor = edge_reductions.aggregate_with_messages(
            namespace, data, sources, targets, weights, options
        )
    return result


def _on_cuda(*call: Any) -> Tensor:
    """Fold rows straight from the data if the axis is 0 and an edge has at most one weight."""
    from gatherum.cuda import orders
    from gatherum.torch import cuda

    data, sources, targets, size, reduction, weights, *others = _with_defaults(call)
    bounds, negative, pointer, fill, axis = others
    folds_rows = axis == 0 and orders.shares_order(sources.numel())
    if weights is not None:
        folds_rows = (
            folds_rows and weights.dim() <= sources.dim() and not is_exact(Reduction[reduction])
        )
    with shared_results.sharing_calls() as shared, namespace.float_mode():
        if pointer:
            targets = _targets_of_edges(targets, sources.shape[0], pointer)
            cuda.keep_adjacent(targets)
        if not folds_rows or shared is None or 0 in (*data.shape, size):
            edges = data, sources, targets, size, reduction, weights
            return _aggregate_with_messages(*edges, bounds, negative, "", fill, axis)
        options = AggregateOptions(size, reduction, bounds, negative, fill_value=fill)
        return _fold_rows(data, sources, targets, weights, options, shared)


def _fold_rows(
    data: Tensor,
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    options: AggregateOptions,
    shared: Shared,
) -> Tensor:
    from gatherum.cuda import edges
    from gatherum.torch import cuda

    rows = data.shape[0]
    if options.skips:
        targets = edge_reductions.valid_targets(namespace, sources, targets, rows, options)
    index_dtype = dtypes.of_plan(edges.source_dtype(rows))

    def numbers() -> Tensor:
        positions = torch.arange(rows, dtype=index_dtype, device=data.device)
        return namespace.gather(options.gather, positions, sources).contiguous()

    table = edge_reductions.empty_table(namespace, data, options)
    negative = options.negative and not options.skips
    if weights is not None:
        weights = weights.expand(sources.shape).contiguous().resolve_conj()
        weights = weights.clone() if weights.data_ptr() % weights.element_size() else weights
    row_edges = edges.Edges(sources, numbers, targets, options.mode, negative, weights)
    return cuda.fold_rows(shared, data, row_edges, table, options.reduction)


def _targets_of_edges(targets: Tensor, edges: int, pointer: str) -> Tensor:
    """Return the target of each edge. Expand a CSR pointer if one was passed instead."""
    if not pointer:
        return targets
    indptr: Any = namespace.to_numpy(targets)
    with errors.for_tensors():
        segments = sparse_edges.segment_numbers(NAME, pointer, indptr, edges)
    return torch.from_numpy(segments).to(targets.device)


def _fake(data: Tensor, *edges: Any) -> Tensor:
    size, axis = edges[2], _with_defaults((data, *edges))[-1]
    return data.new_empty((*data.shape[:axis], size, *data.shape[axis + 1 :]))


_Function: Any = private.recorded_function(lambda ctx: (*ctx.options, ctx.rows))


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
        ctx.options = AggregateOptions(size, reduction, bounds, negative, pointer, axis=axis)
        ctx.rows = data.shape[axis]
        others = bounds, negative, pointer, fill, axis
        call = data, sources, targets, size, reduction, weights, *others
        with shared_results.sharing_calls() as ctx.shared:
            return run_below_this_level(overload(NAME), keyset, *call)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return (None,) * 12
        with namespace.float_mode(), shared_results.sharing_gradients(ctx.shared):
            return _gradients(ctx, gradient)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording(), namespace.float_mode():
            data, sources, targets, *saved_weights = ctx.saved_tensors
            weights = saved_weights[0] if saved_weights else None
            if private.transforms_active():
                data = without_tangent(data)
                weights = None if weights is None else without_tangent(weights)
            result_tangents = []
            if tangents[1] is not None:
                result_tangents.append(
                    _aggregate(tangents[1], sources, targets, weights, ctx.options)
                )
            if tangents[6] is not None:
                result_tangents.append(_aggregate(data, sources, targets, tangents[6], ctx.options))
            return sum(result_tangents[1:], result_tangents[0]) if result_tangents else None


def _gradients(ctx: Any, gradient: Tensor) -> Any:
    """Return the gradients of the arguments of `_Sum`."""
    data, sources, targets, *saved_weights = ctx.saved_tensors
    targets = _targets_of_edges(targets, sources.shape[0], ctx.options.pointer)
    options, weights = ctx.options._replace(pointer=""), saved_weights[0] if saved_weights else None
    if divides(Reduction[options.reduction]):
        ones = data.new_ones(ctx.rows, dtype=dtypes.derivative_dtype(data.dtype))
        counts = _aggregate(ones, sources, targets, None, options._replace(reduction="add", axis=0))
        counts = counts.real.clamp(min=1) if counts.is_complex() else counts.clamp(min=1)
        trailing = (1,) * (gradient.dim() - 1 - options.axis)
        gradient = gradient.to(ones.dtype) / counts.reshape(-1, *trailing)
        data, weights = data.to(ones.dtype), None if weights is None else weights.to(ones.dtype)
    of_data = of_weights = None
    if ctx.needs_input_grad[1]:
        reversed_options = options._replace(size=ctx.rows, reduction="add")
        factors = None if weights is None else weights.conj()
        of_data = _aggregate(gradient, targets, sources, factors, reversed_options).to(
            ctx.saved_tensors[0].dtype
        )
    if weights is not None and ctx.needs_input_grad[6]:
        ends = sources, targets
        per_edge = edge_reductions.weight_gradients(
            namespace, gradient, data, *ends, saved_weights[0].dim(), options
        )
        of_weights = namespace.sum_to(per_edge, saved_weights[0].shape).to(saved_weights[0].dtype)
    return None, of_data, None, None, None, None, of_weights, None, None, None, None, None


def _aggregate(
    data: Tensor,
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    options: AggregateOptions,
) -> Tensor:
    others = (
        options.size,
        options.reduction,
        weights,
        options.mode,
        options.negative,
        options.pointer,
    )
    axis_and_fill = () if options[5:] == (None, 0) else (options.fill_value, options.axis)
    call = data, sources, targets, *others, *axis_and_fill
    tensors = (data, sources, targets) if weights is None else (data, sources, targets, weights)
    runs_on_device = shared_results.on_device(data) and not is_dispatched(*tensors)
    result: Tensor = (_on_cuda if runs_on_device else overload(NAME))(*call)
    return result


def _with_defaults(call: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return all arguments of a call, with defaults for omitted ones."""
    return *call, *(None, "raise", True, "", None, 0)[len(call) - 5 :]


def _run_autograd(keyset: Any, *arguments: Any) -> Any:
    """Run a call, and record it if it may be differentiated."""
    call = _with_defaults(arguments)
    data, _sources, _targets, _size, reduction, weights, *_ = call
    operands = data, weights
    if reduction not in _LINEAR and (private.transforms_active() or requires_recording(operands)):
        return _aggregate_with_messages(*call)
    return run_or_record(_Sum, overload(NAME), keyset, call, operands)


def _run_batch(info: Any, dims: Any, *call: Any) -> tuple[Tensor, int]:
    data, sources, targets, size, reduction, weights, *others, axis = _with_defaults(call)
    if dims[0] is not None and all(dim is None for dim in dims[1:]) and data.dim() > 1:
        call = sources, targets, size, reduction, weights, *others, axis + 1
        return overload(NAME)(data.movedim(dims[0], 0), *call), 0
    bounds, negative, pointer, fill = others
    edges = shape_of_one(sources, dims[1])
    targets = _targets_of_edges(targets, prod(edges), pointer)
    data, sources, targets = (
        batch_first(operand, dim, info.batch_size)
        for operand, dim in zip((data, sources, targets), dims[:3], strict=True)
    )
    if weights is not None:
        weights = batch_first(weights, dims[5], info.batch_size)
        trailing = tuple(data.shape[axis + 2 :])
        shape = edge_reductions.weights_shape(edges, trailing, weights.dim() - 1)
        weights = edge_reductions.weights_of_moved_axis(
            namespace, broadcast_updates(weights, shape), len(edges) + 1, axis
        )
    options = AggregateOptions(size, reduction, bounds, negative, fill_value=fill)
    result = edge_reductions.aggregate_with_messages(
        namespace, data.movedim(axis + 1, 1), sources, targets, weights, options, batched=True
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
    torch.library.register_fake(f"gatherum::{_name}", _fake, lib=LIBRARY)
    torch.library.register_vmap(f"gatherum::{_name}", _run_batch, lib=LIBRARY)
LIBRARY.impl(NAME, _run_autograd, "Autograd", with_keyset=True)
