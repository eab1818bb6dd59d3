"""Compute argmax and argmin in one pass of the core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._system import native

from .plans import build_once


def positions_of_extremes(
    attributes: Attributes,
    data: NumpyArray,
    indices: NumpyArray,
    updates: NumpyArray,
    no_position: int,
    skips_nan: bool = False,
) -> NDArray[np.int64] | None:
    """Return the argmax or argmin of each destination of a scatter without old values.

    The reduction is "max" or "min". A position is the place of an entry in `indices`, counted from
    0. The first update that equals the result wins; a destination without updates has
    `no_position`. The axis must be nonnegative. +0 and -0 compare as equal, and so do all NaNs.

    If `skips_nan`, skip updates that are NaN, and return None if the core has no kernel for the
    call.
    """
    plan = build_once(
        Call(attributes, *(ArraySpec.of(operand) for operand in (data, indices, updates)))
    )
    positions: NDArray[np.int64] = native.new_result(np.dtype(np.int64), plan.shape)
    call = plan, data, indices, updates, None, positions, no_position, skips_nan
    return positions if native.extremes(*call) else None
