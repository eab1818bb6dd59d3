"""Convert between float64 and number types that NumPy lacks, rounding to nearest even.

Conversions of other packages use float32 as an intermediate type and therefore round twice.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dtype_rows import ROWS

Floats = NDArray[np.float64]


class FloatFormat(NamedTuple):
    """The encoding of a type as sign, exponent and fraction, as in IEEE 754.

    Attributes
    ----------
    codes : type
        The unsigned integer type of the same width.
    fraction : int
        The number of fraction bits.
    least : int
        The exponent of the smallest normal number.
    largest : int
        The code of the largest finite number.
    infinity : int or None
        The code of infinity, None if the type has none.
    nan : int
        The code of the quiet NaN.
    first : int
        The value of code 0: 0, or the smallest power of 2 in a type without zero and signs.
    """

    codes: type[np.unsignedinteger[Any]]
    fraction: int
    least: int
    largest: int
    infinity: int | None
    nan: int
    first: int


FORMATS = {
    row.name: FloatFormat(np.dtype(f"u{row.nbytes}").type, *row.encoding)
    for row in ROWS.values()
    if row.encoding is not None
}


class Rounded(NamedTuple):
    """Numbers rounded to a type: their values, their codes, and two flags.

    `stay_finite` is False if a finite number exceeds the largest number of the type. `have_codes`
    is False if the type cannot represent one of the numbers for another reason, such as its sign.
    """

    values: Floats
    codes: NDArray[Any]
    stay_finite: bool
    have_codes: bool


def rounded(exact: Floats, name: str) -> Rounded:
    """Round numbers to a type of `FORMATS`."""
    target = FORMATS[name]
    size, negative, finite = np.abs(exact), np.signbit(exact), np.isfinite(exact)
    exponent = np.where(size == 0, target.least, np.maximum(np.frexp(size)[1] - 1, target.least))
    with np.errstate(all="ignore"):
        steps = np.rint(np.ldexp(size, target.fraction - exponent))
        values = np.copysign(np.ldexp(steps, exponent - target.fraction), exact)
        whole = np.where(finite, steps, 0).astype(np.int64)
    unsigned = (
        ((exponent - target.least).astype(np.int64) << target.fraction) + whole - target.first
    )
    stay_finite = not (finite & (unsigned > target.largest)).any()
    have_codes = not (finite & (unsigned < 0)).any()
    if target.first:
        have_codes = have_codes and not (finite & negative).any()
    if target.infinity is None:
        have_codes = have_codes and not np.isinf(exact).any()
    unsigned = np.where(np.isinf(exact), target.infinity or target.nan, unsigned)
    unsigned = np.where(np.isnan(exact), target.nan, unsigned)
    sign = 1 << (8 * np.dtype(target.codes).itemsize - 1)
    signed = negative & ((unsigned != 0) | (target.nan != sign))  # -0 would be NaN in some types
    codes = np.where(signed, unsigned | sign, unsigned).astype(target.codes)
    return Rounded(values, codes, stay_finite, have_codes)


def widened(codes: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Convert codes of a type of `FORMATS` to numbers. The conversion is exact."""
    decoded: NDArray[np.float32] = _decoded_values(name)[codes]
    return decoded


@cache
def _decoded_values(name: str) -> NDArray[np.float32]:
    """Return the numbers that all codes of a type represent."""
    number_format = FORMATS[name]
    bits = 8 * np.dtype(number_format.codes).itemsize
    codes = np.arange(1 << bits)
    if number_format.first:
        return np.where(
            codes == number_format.nan, np.nan, np.ldexp(1.0, codes + number_format.least)
        ).astype("f4")
    size = codes & ((1 << bits - 1) - 1)
    exponent, fraction = size >> number_format.fraction, size & ((1 << number_format.fraction) - 1)
    whole = fraction + np.where(exponent > 0, 1 << number_format.fraction, 0)
    values = np.ldexp(
        whole.astype(float),
        np.maximum(exponent, 1) - 1 + number_format.least - number_format.fraction,
    )
    values[size > number_format.largest] = np.nan
    values[codes == number_format.nan] = np.nan
    if number_format.infinity is not None:
        values[size == number_format.infinity] = np.inf
    decoded: NDArray[np.float32] = np.where(codes > size, -values, values).astype(np.float32)
    return decoded
