"""Run operators on string tensors, which gatherum's operators do not support.

The operator moves the strings' positions, which then select the strings. The core never receives an
array with references.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._plans.plans import apply


def is_string(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of the dtype are string tensors: objects or NumPy strings of either kind."""
    return dtype.kind in "OUT"


def apply_to_strings(
    op: str,
    data: NumpyArray,
    indices: NumpyArray,
    updates: NumpyArray | None = None,
    **attributes: Any,
) -> NumpyArray:
    """Run an operator on string tensors. Scatters must not have a reduction."""
    strings = data.reshape(-1)
    operands = [np.arange(data.size, dtype=np.int64).reshape(data.shape), indices]
    if updates is None:  # the fill value addresses an empty string that is appended
        strings = np.concatenate([strings, np.array([""], data.dtype)])
        attributes["fill_value"] = data.size
    else:
        strings = np.concatenate([strings, updates.reshape(-1)])
        positions = np.arange(data.size, strings.size, dtype=np.int64)
        operands.append(positions.reshape(updates.shape))
    taken = apply(op, *operands, **attributes)
    result = np.empty(taken.shape, strings.dtype)
    result[...] = strings[taken]
    return result
