"""The published definitions of exp and log, as a sequence of operations on doubles.

float32 is computed in double with fewer terms, and rounded once.
"""

import math
from typing import Any

import numpy as np

__all__ = ["exp", "log"]

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def exp(x: Any) -> Any:
    """Return e to the power of a float32 or float64."""
    single = isinstance(x, np.float32)
    return type(x)(_exp(float(x), 7 if single else 12))


def log(x: Any) -> Any:
    """Return the natural logarithm of a float32 or float64."""
    single = isinstance(x, np.float32)
    return type(x)(_log(float(x), 6 if single else 11))


def _exp(x: float, terms: int) -> float:
    if math.isnan(x):
        return math.nan
    x = min(max(x, -746.0), 710.0)
    k = float(round(x * 1.44269504088896338700))  # ties to even
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    tail = (high - r) - low
    series = 1.0 / math.factorial(terms + 1)
    for n in range(terms, 1, -1):
        series = 1.0 / math.factorial(n) + r * series
    power = 1.0 + (r + (tail + r * r * series))
    try:
        return math.ldexp(power, int(k))
    except OverflowError:
        return math.inf


def _log(x: float, terms: int) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    if x in (0, math.inf):
        return -math.inf if x == 0 else math.inf
    fraction, exponent = math.frexp(x)  # from 1/2 to 1
    if fraction < math.sqrt(0.5):
        fraction, exponent = 2 * fraction, exponent - 1
    k, f = float(exponent), fraction - 1.0
    s, half = f / (2.0 + f), 0.5 * f * f
    z = s * s
    series = 2.0 / (2 * terms + 1)
    for n in range(terms - 1, 0, -1):
        series = 2.0 / (2 * n + 1) + z * series
    tail = s * (half + z * series)
    return k * LN2_HIGH - ((half - (tail + k * LN2_LOW)) - f)
