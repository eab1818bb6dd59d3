"""Round float64 to narrower dtypes once, with functions that every framework has.

Frameworks convert float64 to float16 and bfloat16 through float32, and a square root is rounded to
float64 first. The second rounding is wrong only if the first one returns a tie. Such a number is
moved off the tie, toward the exact number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum._model.arrays import AnyArray

from .protocol import Arrays

# The bits of a float32 that are 0 if the float32 is a number of the dtype, or a tie between two
# such numbers.
_LOW = {"float16": (1 << 12) - 1, "bfloat16": (1 << 15) - 1}
# The same bits of a float64, for float32 and narrower dtypes.
_LOW_OF_DOUBLE = (1 << 28) - 1


def off_ties(xp: Arrays, x: AnyArray, name: str) -> AnyArray:
    """Adjust float64 numbers so that their conversion to float16 or bfloat16 through float32 equals
    x rounded once.
    """
    exact = xp.stop_gradient(x)
    single = xp.as_float32(exact)
    near = xp.astype(single, exact.dtype)
    tied = ((xp.bits(single) & _LOW[name]) == 0) & (abs(near) < np.inf)
    step = abs(near) * 2.0**-23 + 2.0**-149
    return _moved(xp, x, tied & (exact > near), tied & (exact < near), step)


def rounded_root(xp: Arrays, x: AnyArray, target: Any) -> AnyArray:
    """Return the square root of float64, rounded once to a dtype. Its derivative at 0 is 0."""
    root = xp.sqrt(x)
    if root.dtype == target:
        return xp.rounded(root, target)
    rounded = xp.stop_gradient(root)
    tied = (xp.bits(rounded) & _LOW_OF_DOUBLE) == 0
    square, exact = rounded * rounded, xp.stop_gradient(x)
    step = rounded * 2.0**-51
    return xp.rounded(
        _moved(xp, root, tied & (exact > square), tied & (exact < square), step), target
    )


def _moved(xp: Arrays, x: AnyArray, up: AnyArray, down: AnyArray, step: AnyArray) -> AnyArray:
    return xp.where(up, x + step, xp.where(down, x - step, x))
