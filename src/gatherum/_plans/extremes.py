"""Maxima and minima with the position of each, by one pass of the core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gatherum._model.call import Array, ArraySpec, Attributes, Call
from gatherum._system import native

from .plans import build_once


def positions_of_extremes(
    attributes: Attributes, data: Array, indices: Array, updates: Array, none: int
) -> NDArray[np.int64]:
    """Return where along the entries of `indices` the first update stands that is equal to the
    result of a scatter "max" or "min" without old values; `none` where nothing arrives.

    The axis is counted from the front. Zeros of either sign are equal, and so are NaN.
    """
    found = build_once(Call(attributes, *(ArraySpec.of(one) for one in (data, indices, updates))))
    positions: NDArray[np.int64] = native.new_result(np.dtype(np.int64), found.shape)
    native.extremes(found, data, indices, updates, None, positions, none)
    return positions
