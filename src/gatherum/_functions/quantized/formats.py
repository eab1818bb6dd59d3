"""The number types of quantized rows, by their names in NumPy, ml_dtypes and torch."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from gatherum._model import errors
from gatherum._model.named_bytes import named_bytes

NAME = "gather_quantized"
ResultName: TypeAlias = Literal["float32", "float16", "bfloat16"]


class Codes(NamedTuple):
    """The storage format of quantized values.

    Attributes
    ----------
    value : str
        The type that the core reads: "uint8", "int8", or an 8-bit float.
    bits : int
        The number of bits of a value.
    in_byte : int
        The number of values in a byte, the first in the lowest bits.
    zero : float
        The default zero point.
    """

    value: str
    bits: int
    in_byte: int
    zero: float


# Maps each dtype of the data to the core's name of the type of the values, and its number of bits.
CODES = {
    "uint8": ("uint8", 8),
    "int8": ("int8", 8),
    "uint4": ("uint8", 4),
    "int4": ("int8", 4),
    "uint2": ("uint8", 2),
    "int2": ("int8", 2),
    "float8_e4m3fn": ("float8_e4m3fn", 8),
    "float8_e5m2": ("float8_e5m2", 8),
}
PACKS = ("uint8", "int8")  # their bytes may hold several values
BITS = (2, 4, 8)
RESULTS: tuple[str, ...] = get_args(ResultName)
SCALES = (*RESULTS, "float8_e8m0fnu")


def name_of(dtype: Any) -> str:
    """Return the name of a dtype, with its byte order if that is not the machine's.

    Raise ImportError for a dtype whose package is not installed.
    """
    if dtype_name := named_bytes(dtype):
        raise errors.needs_ml_dtypes(NAME, dtype_name)
    if isinstance(dtype, np.dtype):
        return dtype.name if dtype.isnative else str(dtype)
    return str(dtype).removeprefix("torch.")


def result_name(dtype: Any) -> str | None:
    """Return the name of a dtype argument, or None if results cannot have that dtype."""
    name = dtype if isinstance(dtype, str) else name_of(dtype)
    if isinstance(dtype, type):
        name = np.dtype(dtype).name if issubclass(dtype, np.generic) else dtype.__name__
    return name if name in RESULTS else None
