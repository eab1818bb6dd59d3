"""Scatters without the updates that are NaN, in one call to the core."""

from __future__ import annotations

from typing import Any

from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._system import native

from .plans import build_once


def scatter_skipping_nan(
    attributes: Attributes,
    specs: tuple[ArraySpec, ArraySpec, ArraySpec],
    data: Any,
    indices: Any,
    updates: Any,
    out: Any,
) -> bool:
    """Write a scatter of the updates that are not NaN to a new array `out`.

    An item of `out` without such updates is a copy of the item of `data`. Return False if the core
    has no kernel for the call. The operands are arrays or views that `specs` describe. The axis
    must be nonnegative.
    """
    plan = build_once(Call(attributes, *specs))
    return native.skip_nan(plan, data, indices, updates, out)
