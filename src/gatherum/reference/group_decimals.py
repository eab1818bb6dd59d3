"""Functions over groups of decimal numbers, computed with exact fractions."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .items import Array

FUNCTIONS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "sum": lambda numbers: sum(numbers, Fraction()),
    "mean": lambda numbers: sum(numbers, Fraction()) / len(numbers),
    "max": max,
    "min": min,
}


def decimals_in(values: Any) -> Array | None:
    """Return an array of decimals, or None for other values."""
    array = np.asarray(values)
    is_decimal = (
        array.dtype == object and array.size and any(isinstance(x, Decimal) for x in array.flat)
    )
    return array if is_decimal else None


def reduce_decimals(
    op: str, name: str, values: Array, members: Array, fill: Any, axis: int
) -> Array:
    """Reduce decimals. The result has as many digits after the point as the value with the most.

    `members` contains, for each group, a list of the positions of its values.
    """
    if name not in FUNCTIONS:
        raise TypeError(f"{op}: `func` is not defined for decimals, got {name!r}")
    if not all(isinstance(x, Decimal | int) and Decimal(x).is_finite() for x in values.flat):
        raise TypeError(f"{op}: `values` must be finite decimals")
    digits = max(0, *(-int(Decimal(x).as_tuple().exponent) for x in values.flat))
    if fill is not None and type(fill) not in (Decimal, int):
        raise TypeError(f"{op}: `fill_value` must be a decimal, got {fill!r}")
    out = np.empty(members.shape, object)
    for group in np.ndindex(members.shape):
        numbers = [Fraction(values[position]) for position in members[group]]
        if numbers or (name == "sum" and fill is None):
            total = round(FUNCTIONS[name](numbers) * 10**digits)
            out[group] = Decimal(f"{total}E-{digits}")
        elif fill is None:
            raise ValueError(f"{op}: group {group[axis]} is empty: `fill_value` must be given")
        else:
            out[group] = Decimal(fill)
    return out
