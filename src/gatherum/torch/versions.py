"""Which versions of torch this package works with."""

from __future__ import annotations

from functools import reduce

import torch
import torch._functorch.autograd_function  # what is looked for below
import torch.autograd.function

OLDEST = "2.10"
# What is used of torch beyond what it documents.
UNDERSCORED = (
    "_C._AutoDispatchBelowAutograd",
    "_C._after_ADInplaceOrView_keyset",
    "_C._after_autograd_keyset",
    "_C._any_requires_grad",
    "_C._are_functorch_transforms_active",
    "_C._is_tracing",
    "_C._len_torch_dispatch_stack",
    "_C._functorch.get_unwrapped",
    "_C._functorch.is_batchedtensor",
    "_C._functorch.is_functorch_wrapped_tensor",
    "_C._len_torch_function_stack",
    "_VF._unpack_dual",
    "_functorch.autograd_function.enable_single_level_autograd_function",
    "Tensor.__dlpack_c_exchange_api__",
    "_is_functional_tensor",
    "autograd.forward_ad._current_level",
    "autograd.forward_ad._set_fwd_grad_enabled",
    "autograd.function._SingleLevelFunction",
)


def check() -> None:
    """Raise ImportError for a torch that is too old, or that lacks what is used of it."""
    parts = torch.__version__.split(".")[:2]
    if tuple(map(int, parts)) < tuple(map(int, OLDEST.split("."))):
        raise ImportError(
            f"gatherum.torch needs torch {OLDEST} or later, and this is {torch.__version__}"
        )
    if missing := [name for name in UNDERSCORED if not _has(name)]:
        raise ImportError(
            f"gatherum.torch does not work with torch {torch.__version__}, which has no torch."
            f"{missing[0]}; look for a newer gatherum"
        )


def _has(name: str) -> bool:
    nothing = object()
    found = reduce(lambda of, part: getattr(of, part, nothing), name.split("."), torch)
    return found is not nothing
