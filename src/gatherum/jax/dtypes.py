"""The JAX dtypes that the operators support."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gatherum._model.dtype_rows import ROWS
from gatherum._model.dtypes import DType, is_reducible
from gatherum._model.errors import frameworks as framework_errors

# Dtypes that XLA stores in whole bytes. Narrower types such as int4 are packed; keys and float0 are
# not numbers.
_WHOLE = frozenset(row.name for row in ROWS.values() if row.xla is not None and row.has_whole_bytes)


def plan_dtype(op: str, operand: str, dtype: Any) -> DType:
    """Return the dtype for plans. Raise TypeError for packed items, keys and float0."""
    if not isinstance(dtype, np.dtype) or dtype.name not in _WHOLE:
        raise framework_errors.no_whole_items(op, operand, "JAX", dtype)
    return dtype


def canonical(dtype: Any) -> Any:
    """Return the dtype that JAX converts to. Without jax_enable_x64, JAX narrows 64-bit types."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def folds(dtype: DType) -> bool:
    """Return True if sums are defined for the dtype. 8-bit floats can only be copied."""
    return is_reducible(dtype, "add")


def derivative_dtype(dtype: DType) -> DType:
    """Return the dtype in which derivatives are computed: float32 for narrower floats."""
    is_narrow = dtype.kind in "fV" and dtype.itemsize < 4
    return np.dtype(np.float32) if is_narrow else dtype
