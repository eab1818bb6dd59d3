"""Fake kernels of the ops: check a call and return the shape of its result.

They run while a graph is traced, and on the device ``meta``. Sizes may be symbols, and some depend
on values that are known only at run time. The real kernels check conditions on these sizes at run
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments.checks import check_symbolic
from gatherum._model import callers, errors, shape_limits
from gatherum._model.call import OPERAND_NAMES, ArraySpec, Attributes, Call
from gatherum._model.errors import Shape
from gatherum._model.operators import OPERATORS, find_roles
from gatherum._plans.overlap import check_out_memory, place_at
from gatherum.torch import checks, private
from gatherum.torch.dtypes import plan_dtype
from gatherum.torch.library import inductor, symbolic_sizes
from gatherum.torch.library.ops import LIBRARY, kernels, with_below

shape_limits.register_conditions(torch.SymBool, symbolic_sizes.may_hold)
# Dynamo cannot trace calls to the core. The roles depend only on ranks, which a graph fixes anyway.
torch.compiler.assume_constant_result(find_roles)


def moved_shape(
    attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor | None
) -> tuple[int, Shape]:
    """Check a call by its shapes and dtypes. Return the axis and the moved shape."""
    inductor.register_ops()  # inductor may compile this graph next
    op = attributes.op
    named = tuple(zip(OPERAND_NAMES, (data, indices, updates), strict=False))
    for name, tensor in named:
        if tensor is not None:
            checks.check_dense(op, name, tensor, data.device)
    specs = [
        None if t is None else ArraySpec(tuple(t.shape), plan_dtype(op, name, t.dtype), ())
        for name, t in named
    ]
    with errors.for_tensors():
        return check_symbolic(Call(attributes, *specs))  # type: ignore[arg-type]  # data is there


def _run(
    attributes: Attributes,
    data: Tensor,
    indices: Tensor,
    updates: Tensor | None,
    fill: Any,
    out: Tensor | None,
) -> Tensor:
    """Check a call. Return `out`, or a result of the right shape."""
    with callers.naming(attributes.caller):
        _, result_shape = moved_shape(attributes, data, indices, updates)
        shape = result_shape if updates is None else tuple(data.shape)
        if out is None:
            return data.new_empty(shape)
        _check_fake_out(attributes.op, shape, data, indices, updates, out)
        return out


def _check_fake_out(op: str, shape: Shape, data: Tensor, indices: Tensor, updates: Tensor | None,
               out: Tensor) -> None:  # fmt: skip
    checks.check_dense(op, "out", out, data.device)
    if out.dtype != data.dtype:
        raise errors.other_dtype(op, "out", *(plan_dtype(op, "out", t.dtype) for t in (data, out)))
    if not symbolic_sizes.may_be_equal(out.shape, shape):
        raise errors.other_shape(op, "out", shape, tuple(out.shape))
    _check_memory(op, data, indices, updates, out)


def _check_memory(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, out: Tensor
                  ) -> None:  # fmt: skip
    extents = [None if t is None else _extent(t, out) for t in (data, indices, updates, out)]
    if extents[3] is None:
        return
    apart = np.empty(0, np.uint8)
    first, second, third, written = (apart if extent is None else extent for extent in extents)
    check_out_memory(op, first, second, None if updates is None else third, written)


def _extent(tensor: Tensor, out: Tensor) -> Any:
    """Return the memory range of a tensor in the storage of `out`, as an array, or None.

    The result is None if the tensor is in a different storage, or if the range depends on values.
    """
    from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

    if not private.share_storage(tensor, out):
        return None
    if has_free_unbacked_symbols(tensor):
        return None
    item = tensor.element_size()
    strides = tuple(item * int(step) for step in tensor.stride())
    spec = ArraySpec(tuple(map(int, tensor.shape)), np.dtype(f"V{item}"), strides)
    return place_at(1 + item * int(tensor.storage_offset()), spec)


for _operator in OPERATORS.values():
    for _name, _kernel in kernels(_operator, _run).items():
        for _each in with_below(_name):
            torch.library.register_fake(f"gatherum::{_each}", _kernel, lib=LIBRARY)
