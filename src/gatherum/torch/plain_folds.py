"""Folds over groups that the core runs on the memory of plain tensors."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from gatherum._derivatives.array_ops import Destinations
from gatherum._model.call import ArraySpec, Call, FoldRule
from gatherum._plans import spreads
from gatherum._plans.plans import build_once
from gatherum._system import native
from gatherum._system.native import View

from . import addresses, checks, private


def squares_and_counts(
    values: Tensor, destinations: Destinations, skips_nan: bool
) -> tuple[Tensor, Tensor] | None:
    """Return the squared distances from the means of groups, and the counts.

    Return None if the core cannot compute them.
    """
    if (operands := _specs_and_views(values, destinations)) is None:
        return None
    specs, views = operands
    call = destinations.attributes, destinations.shape, specs, *views, skips_nan
    arrays = spreads.squares_and_counts(*call)
    return None if arrays is None else (torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1]))


def fold_skipping_nan(
    values: Tensor, reduction: str, destinations: Destinations, initial: Tensor
) -> Tensor | None:
    """Fold values except NaN, starting from `initial`. Return None if the core cannot fold them."""
    if (operands := _specs_and_views(values, destinations)) is None:
        return None
    attributes = destinations.attributes.with_fold(FoldRule.afresh(reduction))
    table = initial.expand(destinations.shape)
    result = torch.empty(destinations.shape, dtype=values.dtype)
    data, out = (addresses.view_of(attributes.op, "data", tensor) for tensor in (table, result))
    specs = addresses.spec_of(attributes.op, "data", table), *operands[0]
    call: Any = build_once(Call(attributes, *specs)), data, *operands[1], out
    return result if native.skip_nan(*call) else None


def _specs_and_views(
    values: Tensor, destinations: Destinations
) -> tuple[tuple[ArraySpec, ArraySpec], tuple[View, View]] | None:
    """Return the specs and the memory of the groups and values, for a call to the core. Return
    None if the call must use torch's functions.
    """
    operands = destinations.indices, values
    if needs_dispatcher(values) or not all(map(private.is_plain, operands)):
        return None
    op, names = destinations.attributes.op, ("groups", "values")
    checks.check_storages(op, names, operands)
    indices, updates = (addresses.spec_of(op, *pair) for pair in zip(names, operands, strict=True))
    views = (addresses.view_of(op, *pair) for pair in zip(names, operands, strict=True))
    return (indices, updates), cast(tuple[View, View], tuple(views))


def is_dispatched(*operands: Tensor) -> bool:
    """Return True if torch's dispatcher does more than call the kernel for a device."""
    is_plain = not needs_dispatcher(*operands) and all(map(private.holds_values, operands))
    return not is_plain or private.is_observed()


def needs_dispatcher(*operands: Tensor) -> bool:
    """Return True if a call must use torch's dispatcher.

    The dispatcher takes several times as long as a small call.
    """
    is_recorded = torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
    return torch.compiler.is_compiling() or is_recorded
