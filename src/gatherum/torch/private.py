"""Look up the private torch names that this package uses; other modules use none.

The names were tested with torch 2.13. Each name has a fallback in torch's public interface, so that
calls on tensors and their gradients work without it. A feature that needs a missing name raises an
error that states the name. Before torch is imported, `_frameworks.torch_compile` sets the marks
that ``torch.compile`` reads later.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gatherum._system import private_names

from . import errors as torch_errors

OLDEST = "2.10"
TESTED = "2.13"

_SLOW = "every call goes through torch's dispatcher"
_ADDRESSES = "the core gets the addresses of tensors from Python; gradients are computed in torch"
_REFUSED = "gradients inside a transform of torch.func raise an error"
_INNER = f"each op calls a second op that has no kernel for Autograd; {_REFUSED}"
_KNOWN = "the condition that it reports is assumed to hold"

# Each name, and the effect if it is missing.
NAMES = {
    "torch.Tensor.__dlpack_c_exchange_api__": _ADDRESSES,
    "torch._C._len_torch_dispatch_stack": _SLOW,
    "torch._C._len_torch_function_stack": _SLOW,
    "torch._C._is_tracing": "torch.jit.is_tracing is called instead",
    "torch._C._are_functorch_transforms_active": f"{_KNOWN}; {_SLOW}",
    "torch.autograd.forward_ad._current_level": f"{_KNOWN}; {_SLOW}",
    "torch._C.__file__": "the storages of tensors are measured in Python",
    "torch.Tensor._cdata": "the storages of tensors are measured in Python",
    "torch.UntypedStorage._cdata": "overlaps are found when a graph runs, not when it is traced",
    "torch._C._any_requires_grad": "requires_grad of each tensor is read instead",
    "torch._C._AutoDispatchBelowAutograd": _INNER,
    "torch._C._after_autograd_keyset": _INNER,
    "torch._C._after_ADInplaceOrView_keyset": _INNER,
    "torch.autograd.function._SingleLevelFunction": _REFUSED,
    "torch._functorch.autograd_function.enable_single_level_autograd_function": _REFUSED,
    "torch.autograd.forward_ad._set_fwd_grad_enabled": _REFUSED,
    "torch._C._functorch.is_functorch_wrapped_tensor": _REFUSED,
    "torch._C._functorch.get_unwrapped": _REFUSED,
    "torch._C._functorch.is_batchedtensor": _REFUSED,
    "torch._is_functional_tensor": "inside a transform of torch.func, torch copies into `out`",
    "torch._check": "graphs do not know that sizes are not negative",
    "torch.ops.aten._assert_async.msg": "graphs detect a decreasing `indptr` only by its indices",
    "torch.library.Library._destroy": "gatherum.torch cannot be imported a second time",
    "torch._C._dynamo.eval_frame.set_code_exec_strategy": (
        "inside `reproducible`, Dynamo traces the code of kernels and warns about graph breaks"
    ),
    "torch._C.DispatchKeySet": "inside `reproducible`, every call of an operator runs Python",
    "torch._inductor.codegen.custom_extern_kernel_codegen.CustomCodegen": (
        "inductor calls the ops through torch's dispatcher"
    ),
}
_OF_REDISPATCH = tuple(name for name, without in NAMES.items() if without is _INNER)
_OF_TRANSFORMS = tuple(name for name, without in NAMES.items() if without.endswith(_REFUSED))


def check_version() -> None:
    """Raise ImportError if torch is too old."""
    parts = torch.__version__.split(".")[:2]
    if tuple(map(int, parts)) < tuple(map(int, OLDEST.split("."))):
        raise ImportError(
            f"gatherum.torch needs torch {OLDEST} or later, and this is {torch.__version__}"
        )


def _find(name: str) -> Any:
    """Return the object to which a name in `NAMES` refers, or None if it does not exist."""
    assert name in NAMES
    return private_names.find_name(name)


def _lacking(name: str) -> str:
    return private_names.lacking("torch", torch.__version__, TESTED, name)


def _always() -> bool:
    return True


# Functions that report active observers of torch calls, as a bool or a count. The core calls them.
transforms_active: Callable[[], bool] = (
    _find("torch._C._are_functorch_transforms_active") or _always
)
count_dispatch_modes: Callable[[], int] = _find("torch._C._len_torch_dispatch_stack") or _always
watchers: list[Callable[[], Any]] = [
    count_dispatch_modes,
    _find("torch._C._len_torch_function_stack") or _always,
    transforms_active,
    _find("torch._C._is_tracing") or torch.jit.is_tracing,
]


def level_module() -> types.ModuleType:
    """Return the module from which the core reads ``_current_level``, the level of forward mode."""
    if _find("torch.autograd.forward_ad._current_level") is not None:
        module: types.ModuleType = forward_ad
        return module
    module = types.ModuleType("forward_ad")
    vars(module)["_current_level"] = 0
    return module


_levels = vars(level_module())


def in_forward_mode() -> bool:
    """Return True inside a level of forward mode."""
    level: int = _levels["_current_level"]
    return level >= 0


def is_plain(tensor: Tensor) -> bool:
    """Return True for a plain tensor in CPU memory, if nothing observes calls on it."""
    return tensor.device.type == "cpu" and holds_values(tensor) and not is_observed()


def holds_values(tensor: Tensor) -> bool:
    """Return True for a strided tensor, not of a subclass, whose memory contains its values."""
    is_strided = type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return is_strided and not (tensor.is_neg() or tensor.is_conj())


def is_observed() -> bool:
    """Return True if something observes all torch calls, such as a transform or a trace."""
    return in_forward_mode() or any(watcher() for watcher in watchers)


# The capsule with the functions that exchange tensors, or None if the core does not support it.
exchange: Any = _find("torch.Tensor.__dlpack_c_exchange_api__")


def handle_of(tensor: Tensor) -> int:
    """Return the address of a tensor's C++ object, or 0 if it is unknown."""
    return 0 if _find("torch.Tensor._cdata") is None else int(tensor._cdata)


def library_path() -> str | None:
    """Return the path of torch's compiled module."""
    path: str | None = _find("torch._C.__file__")
    return path


_knows_storages = _find("torch.UntypedStorage._cdata") is not None


def share_storage(first: Tensor, second: Tensor) -> bool:
    """Return True if two tensors are known to share a storage, even one without memory."""
    if first is second or not _knows_storages:
        return first is second
    return bool(first.untyped_storage()._cdata == second.untyped_storage()._cdata)


def _ask_each(*operands: object) -> bool:
    return any(isinstance(operand, Tensor) and operand.requires_grad for operand in operands)


any_requires_grad: Callable[..., bool] = _find("torch._C._any_requires_grad") or _ask_each

# Whether an op can redispatch to the kernels below its current one. Otherwise a second op has those
# kernels; calling it loses the outer levels of nested transforms.
redispatches = all(_find(name) is not None for name in _OF_REDISPATCH)


def below_autograd(op: Any, keyset: Any, operands: tuple[Any, ...]) -> Any:
    """Redispatch to the kernels below the Autograd key."""
    with torch._C._AutoDispatchBelowAutograd():
        return op.redispatch(keyset & torch._C._after_autograd_keyset, *operands)


def below_counting(op: Any, keyset: Any, operands: tuple[Any, ...]) -> Any:
    """Redispatch to the kernels below the ADInplaceOrView key, which tracks changes."""
    return op.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *operands)


_no_transforms = next((name for name in _OF_TRANSFORMS if _find(name) is None), None)


def known_active() -> bool:
    """Return True if a transform of ``torch.func`` is known to be active."""
    return transforms_active is not _always and transforms_active()


def check_transforms(op: str) -> None:
    """Raise NotImplementedError inside a transform of ``torch.func`` if torch lacks a name.

    Inside a transform, derivatives need these names.
    """
    if _no_transforms is not None and known_active():
        raise torch_errors.no_transforms(op, _lacking(_no_transforms))


_Function: Any = _find("torch.autograd.function._SingleLevelFunction") or torch.autograd.Function
single_level: Callable[[], AbstractContextManager[None]] = (
    _find("torch._functorch.autograd_function.enable_single_level_autograd_function") or nullcontext
)
_set_forward = _find("torch.autograd.forward_ad._set_fwd_grad_enabled")


def forward_mode_enabled() -> AbstractContextManager[None]:
    """Return a context in which forward mode records."""
    return nullcontext() if _set_forward is None else _set_forward(True)


def recorded_function(key: Callable[[Any], Any]) -> Any:
    """Return a base class of autograd functions for a single level of ``torch.func``.

    A call's `key` distinguishes the graphs of compiled autograd.
    """

    class Recorded(_Function):  # type: ignore[misc]
        @staticmethod
        def _compiled_autograd_key(ctx: Any) -> tuple[int, ...]:
            return getattr(ctx, "_autograd_function_id", id(type(ctx))), hash(key(ctx))

    return Recorded


def _is_not(_: Tensor) -> bool:
    return False


_of_wrappers = [_find(name) for name in _OF_TRANSFORMS if "torch._C._functorch." in name]
if None in _of_wrappers:
    _of_wrappers = [_is_not, lambda tensor: tensor, _is_not]
# Tensors of ``torch.func`` transforms: wrappers of other tensors, or batches.
is_wrapped: Callable[[Tensor], bool]
unwrapped: Callable[[Tensor], Tensor]
is_batch: Callable[[Tensor], bool]
is_wrapped, unwrapped, is_batch = _of_wrappers


def _in_transform(_: Tensor) -> bool:
    return known_active()


# Whether ``torch.func.functionalize`` tracks writes to a tensor.
is_functional: Callable[[Tensor], bool] = _find("torch._is_functional_tensor") or _in_transform


def _learn_nothing(condition: Any) -> None:
    """Ignore a condition that a graph does not need."""


learn: Callable[[Any], None] = _find("torch._check") or _learn_nothing

# Raises an error with a message when the graph runs. None if torch has no such op.
assert_when_run: Any = _find("torch.ops.aten._assert_async.msg")


def destroy(library: torch.library.Library) -> None:
    """Remove a library's definitions."""
    if _find(name := "torch.library.Library._destroy") is None:
        raise ImportError(f"gatherum.torch cannot be imported a second time: {_lacking(name)}")
    library._destroy()


_KeySet: Any = _find("torch._C.DispatchKeySet")
# The keys with which the dispatcher calls a kernel for the CPU below autograd. None if unknown.
cpu_keys: Any = None if _KeySet is None else _KeySet(torch.DispatchKey.CPU)


def leave_untraced(function: Any) -> None:
    """Tell Dynamo not to trace a function and the functions that it calls."""
    strategy = _find("torch._C._dynamo.eval_frame.set_code_exec_strategy")
    if strategy is not None:
        frames = sys.modules["torch._C._dynamo.eval_frame"]
        action = frames._FrameAction.SKIP
        strategy(function.__code__, frames._FrameExecStrategy(action, action))


INDUCTOR = "torch._inductor.codegen.custom_extern_kernel_codegen"


def inductor_table() -> tuple[dict[str, Any], Any] | None:
    """Return inductor's table of op writers and the type of its rows.

    Return None if inductor is not loaded or has no such table.
    """
    module = sys.modules.get(INDUCTOR)
    row_type = None if module is None else _find(f"{INDUCTOR}.CustomCodegen")
    table = getattr(module, "CUSTOM_EXTERN_KERNEL_CODEGEN", None)
    return None if row_type is None or table is None else (table, row_type)
