"""Dtypes of plain bytes with the name of a number type whose package is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np

_NUMBER = "number"  # the key in the dtype's metadata


def make(name: str, size: int) -> np.dtype[Any]:
    """Create a dtype of plain bytes for numbers of a named type."""
    return np.dtype((np.void, size), metadata={_NUMBER: name})


def named_bytes(dtype: object) -> str | None:
    """Return the name of the number type that a dtype of plain bytes represents, or None."""
    metadata = getattr(dtype, "metadata", None)
    return None if metadata is None else metadata.get(_NUMBER)
