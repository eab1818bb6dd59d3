"""The pickled state of an accumulator, and the checks of a loaded state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.dtypes import DType, check_movable, is_reducible
from gatherum._plans.plans import apply

NAME = "Accumulator"
VERSION = 1
# The limit of updates for each element: the count, plus 1 for the old value, is exact as a double
# and does not wrap. Single updates would take months to reach the limit; a pickled state or a merge
# can reach it in one call.
MOST_UPDATES = (1 << 52) - 2
# One tuple without components addresses the whole array: `gather_nd` then copies it bit for bit.
ALL = np.empty(0, np.int64)

_ARRAYS = ("data", "sums", "counts")
_ATTRIBUTES = (*FoldRule._fields, "mode", "negative")
_STATE = {"version", "dtype", *_ATTRIBUTES, *_ARRAYS}


def check_data(shape: tuple[int, ...], dtype: DType, reduction: str) -> None:
    """Raise the errors that a scatter into such data would raise whatever its updates are."""
    check_movable(NAME, "data", dtype)
    if reduction != "none" and not is_reducible(dtype, reduction):
        raise errors.not_reducible(NAME, reduction, dtype)
    shape_limits.check_rank(NAME, "`data`", len(shape))
    shape_limits.check_result(NAME, shape, dtype)


def state_of(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes that a pickled state contains."""
    return {name: getattr(attributes, name) for name in _ATTRIBUTES}


def checked_state(state: object) -> tuple[DType, Attributes, dict[str, Any]]:
    """Return the dtype, the attributes and the three arrays of a pickled state."""
    if not isinstance(state, dict) or state.get("version") != VERSION or set(state) != _STATE:
        raise errors.damaged_state(f"it is not one of version {VERSION}")
    known_state = dict(state)
    arrays = [
        known_state["sums"],
        known_state["counts"],
        *([] if known_state["data"] is None else [known_state["data"]]),
    ]
    if not all(type(array) is np.ndarray for array in arrays):
        raise errors.damaged_state("its arrays are not NumPy arrays")
    if not isinstance(known_state["dtype"], np.dtype):
        raise errors.damaged_state("its dtype is not a dtype")
    try:
        attributes = plain_values.as_attributes(
            NAME, 0, *(known_state[name] for name in _ATTRIBUTES)
        )
        check_data(known_state["counts"].shape, known_state["dtype"], attributes.reduction)
    except (TypeError, ValueError) as why:
        raise errors.damaged_state(why) from None
    return known_state["dtype"], attributes, {name: known_state[name] for name in _ARRAYS}


def checked_arrays(
    arrays: tuple[NumpyArray | None, NumpyArray, NumpyArray], dtypes: tuple[DType | None, DType]
) -> tuple[NumpyArray | None, NumpyArray, NDArray[np.int64]]:
    """Return private copies of the data, sums and counts of a pickled state.

    `dtypes` contains the dtype of the data (None if the data is not kept) and the dtype of the
    sums.
    """
    data, sums, counts = arrays
    sums = _reordered(sums, dtypes[1])
    actual = (None if data is None else data.dtype), sums.dtype
    alike = sums.shape == counts.shape and (data is None or data.shape == counts.shape)
    # The core identifies a type by its number; another C type of the same size has another number.
    counted = counts.dtype.num == np.dtype(np.int64).num and counts.dtype.isnative
    if actual != dtypes or not alike or not counted:
        raise errors.damaged_state("its arrays do not belong together")
    data = None if data is None else apply("gather_nd", data, ALL)
    sums, counts = (apply("gather_nd", array, ALL) for array in (sums, counts))
    if counts.size and not 0 <= counts.min() <= counts.max() <= MOST_UPDATES:
        raise errors.damaged_state(f"its counts must be in [0, {MOST_UPDATES}]")
    return data, sums, counts


def _reordered(array: NumpyArray, dtype: DType) -> NumpyArray:
    """Return the array in the byte order of `dtype`. Protocols before 5 lose this order."""
    lost = not dtype.isnative and array.dtype == dtype.newbyteorder("=")
    return array.byteswap().view(dtype) if lost else array
