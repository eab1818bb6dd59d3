"""Results that calls on a CUDA device share, such as a check and a sort of their indices."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from gatherum._model.call import Attributes
from gatherum._plans import sharing
from gatherum._plans.sharing import Shared

from . import private


def on_device(x: Tensor) -> bool:
    """Return True for a tensor on a CUDA device."""
    return bool(x.is_cuda)


def current(x: Tensor) -> Shared | None:
    """Return the results that calls on a device share. Calls that are traced share none."""
    if torch.compiler.is_compiling() or not on_device(x):
        return None
    current = sharing.current()
    return None if current is None or private.count_dispatch_modes() else current


def shares_order(indices: Tensor) -> bool:
    """Return True if scatters that share results share the order of these indices."""
    from gatherum.cuda import orders

    return orders.shares_order(indices.numel())


def sharing_calls(shared: Shared | None = None) -> AbstractContextManager[Any]:
    """Return a context in which calls share results: `shared`, or new ones."""
    return nullcontext() if torch.compiler.is_compiling() else sharing.Sharing(shared)


def sharing_gradients(shared: Shared | None) -> AbstractContextManager[Any]:
    """Return a context in which the calls for a gradient use the results of the function."""
    return sharing_calls(None if shared is None else Shared(shared))


def without_check(shares: Shared, attributes: Attributes, data: Tensor, indices: Tensor
           ) -> Attributes | None:  # fmt: skip
    """Return attributes without the index check if an earlier call has made this check, or None."""
    if attributes.mode != "raise" or not shares.find(validity(attributes, data, indices)):
        return None
    return attributes._replace(mode="drop")


def validity(attributes: Attributes, data: Tensor, indices: Tensor) -> Hashable:
    """Return the key under which the result that all indices are valid is shared."""
    shape = tuple(indices.shape)
    space = attributes.operator.space(tuple(data.shape), shape, attributes.axis)
    return "valid", id(indices), attributes.negative, space
