"""exp, log and exact square roots: ``torch.ops.gatherum.exp``, ``log`` and ``sqrt``.

They are bit-for-bit equal to `_derivatives.elementary` on NumPy arrays. The results of torch's
functions, even of square roots, differ between processors. The derivative of a root at 0 is 0, as
in `torch.std`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._derivatives import elementary
from gatherum.torch import dtypes, namespace, private
from gatherum.torch import errors as torch_errors
from gatherum.torch.autograd.recording import (
    recording,
    run_below_this_level,
    run_or_record,
    without_tangent,
)
from gatherum.torch.checks import check_dense, check_storage
from gatherum.torch.library.ops import LIBRARY, overload, with_below

NAMES = ("exp", "log", "sqrt")


def _checked_input(name: str, x: Tensor) -> Tensor:
    """Return a contiguous tensor of the same values. Raise TypeError for unsupported dtypes."""
    check_dense(name, "x", x, x.device)
    if not (x.is_floating_point() and dtypes.has_sums(x.dtype)):
        raise torch_errors.no_float(name, dtypes.plan_dtype(name, "x", x.dtype))
    check_storage(name, "x", x)
    return x.detach().resolve_neg().contiguous()


def _on_cpu(name: str, x: Tensor) -> Tensor:
    source = _checked_input(name, x)
    result = torch.empty_like(source)
    values, out = dtypes.as_array(source), dtypes.as_array(result)
    if name == "sqrt":
        with np.errstate(invalid="ignore"):
            np.sqrt(values, out=out)
    else:
        elementary.map_into(name, str(source.dtype).removeprefix("torch."), values, out)
    return result


def _on_cuda(name: str, x: Tensor) -> Tensor:
    from gatherum.torch import cuda

    source = _checked_input(name, x)
    return (
        source.sqrt() if name == "sqrt" else cuda.map_values(name, source)
    )  # the root is exact there


def _refuse_device(name: str, x: Tensor) -> Tensor:
    check_dense(name, "x", x, x.device)
    raise torch_errors.no_device(name, str(x.device))


def _fake(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_Function: Any = private.recorded_function(lambda ctx: (ctx.name,))


class _Elementary(_Function):  # type: ignore[misc]
    """A function of each item."""

    @staticmethod
    def forward(ctx: Any, keyset: Any, name: str, x: Tensor) -> Tensor:
        result: Tensor = run_below_this_level(overload(name), keyset, x)
        saved = x if name == "log" else result
        ctx.name = name
        ctx.save_for_backward(saved)
        ctx.save_for_forward(saved)
        ctx.set_materialize_grads(False)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        return None, None, None if gradient is None else _times_derivative(ctx, gradient)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording():
            return _times_derivative(ctx, tangents[2], private.transforms_active())


def _times_derivative(ctx: Any, change: Tensor, drops_tangent: bool = False) -> Tensor:
    (saved,) = ctx.saved_tensors
    saved = without_tangent(saved) if drops_tangent else saved
    with namespace.float_mode():
        if ctx.name == "sqrt":
            is_zero = saved == 0
            return torch.where(is_zero, 0, change / torch.where(is_zero, 1, 2 * saved))
        return change * saved if ctx.name == "exp" else change / saved


def _run_autograd(name: str, keyset: Any, x: Tensor) -> Any:
    return run_or_record(_Elementary, overload(name), keyset, (x,), (x,), name)


def _run_batch(name: str, info: Any, dims: Any, x: Tensor) -> Any:
    return overload(name)(x), dims[0]


for _name in NAMES:
    for _each in with_below(_name):
        LIBRARY.define(f"{_each}(Tensor x) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
        LIBRARY.impl(_each, partial(_on_cpu, _name), "CPU")
        LIBRARY.impl(_each, partial(_on_cuda, _name), "CUDA")
        LIBRARY.impl(_each, partial(_refuse_device, _name), "CompositeExplicitAutograd")
        torch.library.register_fake(f"gatherum::{_each}", _fake, lib=LIBRARY)
        torch.library.register_vmap(f"gatherum::{_each}", partial(_run_batch, _name), lib=LIBRARY)
    LIBRARY.impl(_name, partial(_run_autograd, _name), "Autograd", with_keyset=True)
