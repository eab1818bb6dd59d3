"""Decide when Autograd kernels record a call, and dispatch it to the kernels below.

`torch.library.register_autograd` and plain `autograd.Function` are not used. The first lacks
forward mode: `jvp` silently returns zero. The second silently returns wrong gradients if
`torch.compile` traces `torch.func.grad` of it. Instead, a kernel applies a function of a single
level of `torch.func`; both interfaces are built on such functions. The names that this requires are
private: `private` contains them, with fallbacks for missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gatherum.torch import private
from gatherum.torch.library.ops import below, name_of


def run_below_autograd(op: Any, keyset: Any, *operands: Any) -> Any:
    """Dispatch to the kernels below the Autograd key."""
    if private.redispatches:
        return private.below_autograd(op, keyset, operands)
    return below(op)(*operands)


def run_below_this_level(op: Any, keyset: Any, *operands: Any) -> Any:
    """Run a call as `run_below_autograd` does, but let the other levels record it."""
    with recording():
        return run_below_autograd(op, keyset, *operands)


@contextmanager
def recording() -> Iterator[None]:
    """Re-enable recording for the other transforms of `torch.func`.

    A function of a single level has disabled recording for all of them.
    """
    if not private.transforms_active():
        yield
        return
    with torch.enable_grad(), private.forward_mode_enabled():
        yield


def without_tangent(saved: Tensor) -> Tensor:
    """Return a saved tensor without its tangent of this level."""
    value: Tensor = forward_ad.unpack_dual(saved, level=0)[0]
    return value


def run_or_record(
    function: Any, op: Any, keyset: Any, call: tuple[Any, ...], operands: Any, *before: Any
) -> Any:
    """Run a call of an op. Record the call with a function if it may be differentiated.

    The function receives `before` and the call.
    """
    if private.transforms_active():
        private.check_transforms(name_of(op))
        with private.single_level():
            return function.apply(keyset, *before, *call)
    if not requires_recording(operands):
        return run_below_autograd(op, keyset, *call)
    return function.apply(keyset, *before, *call)


def requires_recording(operands: tuple[Any, ...]) -> bool:
    """Return True if an operand requires a gradient or may have a tangent."""
    if torch.is_grad_enabled() and private.any_requires_grad(*operands):
        return True
    return may_have_tangents()


def may_have_tangents() -> bool:
    """Return True inside a level of forward mode.

    A traced graph may enter a level without changing Python's count of levels.
    """
    return private.in_forward_mode() or private.count_dispatch_modes() > 0


def has_tangent(operands: tuple[Any, ...]) -> bool:
    """Return True if an operand has a tangent."""
    if not may_have_tangents():
        return False
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    with disable_proxy_modes_tracing():  # otherwise the query is traced into a graph
        return any(
            forward_ad.unpack_dual(operand, level=0)[1] is not None
            for operand in operands
            if isinstance(operand, Tensor)
        )
