"""The pickled state of an accumulator, and the checks of a state that is loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._model import errors, shape_limits
from gatherum._model.call import Array, Attributes, FoldRule
from gatherum._model.dtypes import DType, check_movable, is_reducible
from gatherum._plans.plans import apply

NAME = "Accumulator"
VERSION = 1
# An element has no more updates than this: its count, and the old value's one more, are exact as
# doubles and do not wrap. Counted one by one they take months; a pickled state or a merge gets
# there at once.
MOST_UPDATES = (1 << 52) - 2
# One tuple of no component addresses all of an array: a copy of it, bit for bit.
ALL = np.empty(0, np.int64)

_ARRAYS = ("data", "sums", "counts")
_ATTRIBUTES = (*FoldRule._fields, "mode", "negative")
_STATE = {"version", "dtype", *_ATTRIBUTES, *_ARRAYS}


def check_data(shape: tuple[int, ...], dtype: DType, reduction: str) -> None:
    """Raise what a scatter into such data would raise whatever its updates are."""
    check_movable(NAME, "data", dtype)
    if reduction != "none" and not is_reducible(dtype, reduction):
        raise errors.not_reducible(NAME, reduction, dtype)
    shape_limits.check_rank(NAME, "`data`", len(shape))
    shape_limits.check_result(NAME, shape, dtype)


def state_of(attributes: Attributes) -> dict[str, Any]:
    """Return what a pickled state keeps of the attributes."""
    return {name: getattr(attributes, name) for name in _ATTRIBUTES}


def checked_state(state: object) -> tuple[DType, Attributes, dict[str, Any]]:
    """Return what a pickled state is of, and its three arrays."""
    if not isinstance(state, dict) or state.get("version") != VERSION or set(state) != _STATE:
        raise errors.damaged_state(f"it is not one of version {VERSION}")
    kept = dict(state)
    arrays = [kept["sums"], kept["counts"], *([] if kept["data"] is None else [kept["data"]])]
    if not all(type(array) is np.ndarray for array in arrays):
        raise errors.damaged_state("its arrays are not NumPy arrays")
    if not isinstance(kept["dtype"], np.dtype):
        raise errors.damaged_state("its dtype is not a dtype")
    try:
        how = plain_values.as_attributes(NAME, 0, *(kept[name] for name in _ATTRIBUTES))
        check_data(kept["counts"].shape, kept["dtype"], how.reduction)
    except (TypeError, ValueError) as why:
        raise errors.damaged_state(why) from None
    return kept["dtype"], how, {name: kept[name] for name in _ARRAYS}


def checked_arrays(
    given: tuple[Array | None, Array, Array], dtypes: tuple[DType | None, DType]
) -> tuple[Array | None, Array, NDArray[np.int64]]:
    """Return copies of the data, sums and counts of a pickled state, which nobody else can change.

    `dtypes` are those of the data, None where it is not kept, and of the sums.
    """
    data, sums, counts = given
    sums = _reordered(sums, dtypes[1])
    found = (None if data is None else data.dtype), sums.dtype
    alike = sums.shape == counts.shape and (data is None or data.shape == counts.shape)
    # The core knows a type by its number, and a C type of the same size has another one.
    counted = counts.dtype.num == np.dtype(np.int64).num and counts.dtype.isnative
    if found != dtypes or not alike or not counted:
        raise errors.damaged_state("its arrays do not belong together")
    data = None if data is None else apply("gather_nd", data, ALL)
    sums, counts = (apply("gather_nd", array, ALL) for array in (sums, counts))
    if counts.size and not 0 <= counts.min() <= counts.max() <= MOST_UPDATES:
        raise errors.damaged_state(f"its counts must be in [0, {MOST_UPDATES}]")
    return data, sums, counts


def _reordered(array: Array, dtype: DType) -> Array:
    """Return the array in the byte order of `dtype`: pickles before protocol 5 lose it."""
    lost = not dtype.isnative and array.dtype == dtype.newbyteorder("=")
    return array.byteswap().view(dtype) if lost else array
