"""Squared distances from exact means, in one call to the core."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum._model.call import ArraySpec, Attributes, Call, FoldRule
from gatherum._model.errors import Shape
from gatherum._system import native

from .plans import build_once

Spreads: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]


def squares_and_counts(
    attributes: Attributes,
    shape: Shape,
    specs: tuple[ArraySpec, ArraySpec],
    indices: Any,
    updates: Any,
    skips_nan: bool,
) -> Spreads | None:
    """Return the squared distances from the mean, and the number of updates.

    If `skips_nan`, skip updates that are NaN. Return None if the core has no kernel for the call.

    The indices and updates are arrays or views that `specs` describe. `shape` is the shape of the
    result, and the axis must be nonnegative.
    """
    plan = _plan(attributes, shape, specs)
    squares: NDArray[np.float64] = native.new_result(np.dtype(np.float64), shape)
    counts: NDArray[np.int64] = native.new_result(np.dtype(np.int64), shape)
    call = plan, indices, updates, squares, counts, skips_nan
    return (squares, counts) if native.spreads(*call) else None


def count_skipping_nan(
    attributes: Attributes,
    shape: Shape,
    specs: tuple[ArraySpec, ArraySpec],
    indices: Any,
    updates: Any,
) -> NDArray[np.int64] | None:
    """Return the number of updates of each destination that are not NaN.

    The operands are those of `squares_and_counts`. Return None if the core has no kernel for the
    call.
    """
    counts: NDArray[np.int64] = native.new_result(np.dtype(np.int64), shape)
    plan = _plan(attributes, shape, specs)
    return counts if native.spreads(plan, indices, updates, None, counts, True) else None


def _plan(attributes: Attributes, shape: Shape, specs: tuple[ArraySpec, ArraySpec]) -> Any:
    """Return the plan of a scatter of exact means."""
    data = ArraySpec.contiguous(shape, specs[1].dtype)
    return build_once(Call(attributes.with_fold(FoldRule.afresh("fmean")), data, *specs))
