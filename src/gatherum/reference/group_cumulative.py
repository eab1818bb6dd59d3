"""Cumulative folds, counts and ranks of the values of each group, as plain loops."""

from typing import Any

import numpy as np

from .group_numbers import is_nan, nan_item
from .group_orders import key_of
from .items import Array, DType, Items
from .reductions import folded

FOLDS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
CUMULATIVE = (*FOLDS, "cumcount", "rank")
RANKS = ("average", "ordinal", "min", "max", "dense")


def cumulated(func: str, values: Array, members: Array, method: str) -> Array:
    """Return one result for each value, from the members of each group."""
    out = _blank(func, values, method)
    for cell in np.ndindex(members.shape):
        items = [item for _, item in members[cell]]
        for i, (position, item) in enumerate(members[cell]):
            if func == "cumcount":
                out[position] = i
            elif func == "rank":
                out[position] = _rank(items, i, values.dtype, method)
            else:
                before = items[: i + 1]
                result = item if i == 0 else _fold(before, values.dtype, func)
                out[position] = np.frombuffer(result, values.dtype)[0]
    return out


def _blank(func: str, values: Array, method: str) -> Array:
    if func == "cumcount":
        return np.full(values.shape, -1, np.int64)
    if func == "rank":
        average = method == "average"
        return np.full(values.shape, np.nan if average else 0, np.float64 if average else np.int64)
    out = np.zeros(values.shape, values.dtype)
    if (nan := nan_item(values.dtype)) is not None:
        out[...] = nan
    return out


def _fold(items: Items, dtype: DType, func: str) -> bytes:
    if dtype.kind not in "mM":
        return folded(items, dtype, FOLDS[func])
    missing = [item for item in items if is_nan(item, dtype)]
    extreme = max if func == "cummax" else min
    return missing[0] if missing else extreme(items, key=lambda item: key_of(item, dtype))


def _rank(items: Items, position: int, dtype: DType, method: str) -> Any:
    keys = [key_of(item, dtype) for item in items]
    own_key = keys[position]
    smaller, equal = sum(key < own_key for key in keys), keys.count(own_key)
    ranks = {
        "average": smaller + (equal + 1) / 2,
        "ordinal": smaller + 1 + keys[:position].count(own_key),
        "min": smaller + 1,
        "max": smaller + equal,
        "dense": 1 + len({key for key in keys if key < own_key}),
    }
    return ranks[method]
