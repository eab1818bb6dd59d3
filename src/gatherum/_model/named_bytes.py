"""Bytes that carry the name of their numbers, where the package that adds the dtype is missing."""

from __future__ import annotations

from typing import Any

import numpy as np

_NUMBER = "number"  # the key in the metadata of a dtype of bytes


def make(name: str, size: int) -> np.dtype[Any]:
    """Return a dtype of bytes that are numbers of a name."""
    return np.dtype((np.void, size), metadata={_NUMBER: name})


def named_bytes(dtype: object) -> str | None:
    """Return which numbers the bytes of a dtype are; None for any other dtype."""
    metadata = getattr(dtype, "metadata", None)
    return None if metadata is None else metadata.get(_NUMBER)
