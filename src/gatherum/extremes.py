"""Maxima and minima with the position of each, by one pass of the core."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from . import native
from .call import Array, ArraySpec, Attributes, Call
from .plans import Plan, build


def positions_of_extremes(
    attributes: Attributes, data: Array, indices: Array, updates: Array, none: int
) -> NDArray[np.int64]:
    """Find the first update of each extreme of a scatter that leaves out the old values.

    Parameters
    ----------
    attributes : Attributes
        Of the scatter, with the reduction "max" or "min" and the axis counted from the front.
    data, indices, updates : numpy.ndarray
        Its operands.
    none : int
        The position where nothing arrives.

    Returns
    -------
    numpy.ndarray of int64
        Where along the entries of `indices` the first update stands that is equal to the result.
        Zeros of either sign are equal, and so are NaN.
    """
    found = planned(Call(attributes, *(ArraySpec.of(one) for one in (data, indices, updates))))
    positions: NDArray[np.int64] = native.new_result(np.dtype(np.int64), found.shape)
    native.extremes(found, data, indices, updates, None, positions, none)
    return positions


@native.emptied_at_exit
@lru_cache(maxsize=256)
def planned(call: Call) -> Plan:
    """Return the plan of a call."""
    return build(call)
