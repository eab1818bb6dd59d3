"""The conversion of floating values to the integers of `dtype`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum._model.arrays import AnyArray
from gatherum._model.errors.texts import indexed
from gatherum._model.shape_limits import coordinates_of

from . import errors


def integers_of(
    xp: Any, op: str, operand: str, values: AnyArray, target: Any, in_chunk: bool = False
) -> AnyArray:
    """Truncate floating values to an integer dtype, or raise ValueError for a number beyond it.

    Processors disagree about NaN, infinities and numbers that are too large: int32 of NaN is
    -2147483648 on some and 0 on others. Values that are not known yet are not checked. The error
    for values in a chunk names no position, because their position in the array is not known.
    """
    limits = np.iinfo(target)
    lowest, beyond = float(limits.min), 2.0**limits.bits
    beyond = beyond if limits.min == 0 else beyond / 2
    # `lowest - 1` rounds to `lowest` if the dtype of the values is narrow.
    numbers = values.real if xp.plan_dtype(values).kind == "c" else values
    above = (numbers > lowest - 1) | ((numbers == lowest) & (numbers > -np.inf))
    converts = (numbers < beyond) & above
    converts_array = xp.to_numpy(converts)
    if converts_array is not None and not converts_array.all():
        first = coordinates_of(int(converts_array.argmin()), converts_array.shape)
        where = indexed(operand, () if in_chunk else first)
        raise errors.not_in_dtype(op, where, target, xp.to_numpy(values[first]))
    return xp.astype(values, xp.dtype(target))
