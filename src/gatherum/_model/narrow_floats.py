"""Convert between float64 and number types that NumPy lacks, rounding to nearest even.

Conversions in other packages use float32 as an intermediate type and therefore round twice.
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
    code_type : type
        The unsigned integer type of the same width.
    fraction_bits : int
        The number of fraction bits.
    least_exponent : int
        The exponent of the smallest normal number.
    largest_code : int
        The code of the largest finite number.
    infinity_code : int or None
        The code of infinity, None if the type has none.
    nan_code : int
        The code of the quiet NaN.
    first_value : int
        The value of code 0: 0, or the smallest power of 2 in a type without zero and signs.
    """

    code_type: type[np.unsignedinteger[Any]]
    fraction_bits: int
    least_exponent: int
    largest_code: int
    infinity_code: int | None
    nan_code: int
    first_value: int


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
    exponent = np.where(
        size == 0, target.least_exponent, np.maximum(np.frexp(size)[1] - 1, target.least_exponent)
    )
    with np.errstate(all="ignore"):
        steps = np.rint(np.ldexp(size, target.fraction_bits - exponent))
        values = np.copysign(np.ldexp(steps, exponent - target.fraction_bits), exact)
        whole_steps = np.where(finite, steps, 0).astype(np.int64)
    unsigned = (
        ((exponent - target.least_exponent).astype(np.int64) << target.fraction_bits)
        + whole_steps
        - target.first_value
    )
    stay_finite = not (finite & (unsigned > target.largest_code)).any()
    have_codes = not (finite & (unsigned < 0)).any()
    if target.first_value:
        have_codes = have_codes and not (finite & negative).any()
    if target.infinity_code is None:
        have_codes = have_codes and not np.isinf(exact).any()
    unsigned = np.where(np.isinf(exact), target.infinity_code or target.nan_code, unsigned)
    unsigned = np.where(np.isnan(exact), target.nan_code, unsigned)
    sign = 1 << (8 * np.dtype(target.code_type).itemsize - 1)
    has_negative_zero = target.nan_code != sign
    signed = negative & ((unsigned != 0) | has_negative_zero)
    codes = np.where(signed, unsigned | sign, unsigned).astype(target.code_type)
    return Rounded(values, codes, stay_finite, have_codes)


def widened(codes: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Convert codes of a type of `FORMATS` to numbers. The conversion is exact."""
    decoded: NDArray[np.float32] = _decoded_values(name)[codes]
    return decoded


@cache
def _decoded_values(name: str) -> NDArray[np.float32]:
    """Return the numbers that all codes of a type represent."""
    number_format = FORMATS[name]
    bits = 8 * np.dtype(number_format.code_type).itemsize
    codes = np.arange(1 << bits)
    if number_format.first_value:
        return np.where(
            codes == number_format.nan_code,
            np.nan,
            np.ldexp(1.0, codes + number_format.least_exponent),
        ).astype("f4")
    size = codes & ((1 << bits - 1) - 1)
    fraction_bits = number_format.fraction_bits
    exponent, fraction = size >> fraction_bits, size & ((1 << fraction_bits) - 1)
    significands = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    values = np.ldexp(
        significands.astype(float),
        np.maximum(exponent, 1) - 1 + number_format.least_exponent - fraction_bits,
    )
    values[size > number_format.largest_code] = np.nan
    values[codes == number_format.nan_code] = np.nan
    if number_format.infinity_code is not None:
        values[size == number_format.infinity_code] = np.inf
    decoded: NDArray[np.float32] = np.where(codes > size, -values, values).astype(np.float32)
    return decoded
