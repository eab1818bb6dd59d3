"""Map dates to integers in the same order, so that NaT propagates."""

from __future__ import annotations

import numpy as np

from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import AnyDType, DType


def is_date(dtype: AnyDType) -> bool:
    """Whether the dtype is datetime64 or timedelta64, which have NaT."""
    return dtype.kind in "mM"


def not_a_date(dtype: AnyDType) -> np.generic:
    """Return NaT of a date dtype. NumPy deprecates the creation of a NaT without a unit."""
    return np.int64(np.iinfo(np.int64).min).view(dtype.newbyteorder("="))  # type: ignore[union-attr]


def as_integers(values: AnyArray, extreme: str) -> AnyArray:
    """Convert dates to integers, with NaT as the largest or smallest integer.

    NaT is the least int64, and so the minimum. For "max", 1 is subtracted from each integer, so
    that NaT wraps around to the largest.
    """
    integers = values.view(np.int64)
    return integers - 1 if extreme == "max" else integers


def as_dates(integers: AnyArray, extreme: str, dtype: DType) -> AnyArray:
    """Convert integers from `as_integers` back to dates."""
    return (integers + 1 if extreme == "max" else integers).view(dtype)
