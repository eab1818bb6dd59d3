"""Updates of one place that come in slices, folded as if they had come at once.

The result of a fold must not depend on how many updates fit in memory, so between slices the
fold keeps what a single pass would keep: float32 for the half-width floats, sums and counts
for the mean, and which places have been touched.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.plan import apply

__all__ = ["Fold"]

HALVES = ("float16", "bfloat16")


class Fold:
    """A scatter into `rows` (in place) whose updates come in several slices.

    Parameters
    ----------
    rows : ndarray
        The destination, rows by elements.
    reduction : str
        As in `scatter_nd`.
    include_self : bool
        As in `scatter_nd`.
    """

    def __init__(self, rows: NDArray[Any], reduction: str, include_self: bool) -> None:
        self.rows, self.include_self = rows, include_self
        self.mean = reduction == "mean"
        self.step = "add" if self.mean else reduction
        self.touched = np.zeros(len(rows), np.int64)
        self.wide = _accumulator(rows.dtype, self.mean) if reduction != "none" else rows.dtype
        self.totals = rows if self.wide == rows.dtype and not self.mean else rows.astype(self.wide)
        self.single = np.zeros(0, rows.dtype)

    def add(self, places: NDArray[np.int64], updates: NDArray[Any]) -> None:
        """Fold one slice: row `places[i]` takes `updates[i]`, in order."""
        if self.step == "none":
            apply("scatter_nd", self.rows, places[:, None], updates, out=self.rows)
            return
        values = updates.astype(self.wide, copy=False)
        fresh = (self.touched == 0)[places]
        if self.include_self or not fresh.any():
            self._fold(places, values, True)
        elif fresh.all():
            self._fold(places, values, False)
        else:
            self._fold(places[~fresh], values[~fresh], True)
            self._fold(places[fresh], values[fresh], False)
        self.touched += np.bincount(places, minlength=len(self.rows))

    def _fold(self, places: NDArray[np.int64], values: NDArray[Any], include_self: bool) -> None:
        apply(
            "scatter_nd",
            self.totals,
            places[:, None],
            values,
            reduction=self.step,
            include_self=include_self,
            out=self.totals,
        )

    def finish(self) -> None:
        """Round, and divide where a mean is asked for, into `rows`."""
        if self.totals is self.rows:
            return
        hit = np.flatnonzero(self.touched)
        totals = self.totals[hit]
        if self.mean:
            totals = _mean(totals, self.touched[hit] + self.include_self)
        with np.errstate(all="ignore"):
            rounded = totals.astype(self.rows.dtype)
        self.rows[hit] = _canonical(rounded)


def _accumulator(dtype: np.dtype[Any], mean: bool) -> np.dtype[Any]:
    if dtype.name in HALVES:
        return np.dtype(np.float32)
    if mean and dtype.kind in "iu":
        return np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
    return dtype


def _mean(totals: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[Any]:
    column = counts[:, None]
    if totals.dtype.kind in "iu":
        floored: NDArray[Any] = np.floor_divide(totals, column.astype(totals.dtype))
        return floored
    with np.errstate(all="ignore"):
        if totals.dtype.kind != "c":
            quotient: NDArray[Any] = totals / column.astype(totals.dtype)
            return quotient
        parts = totals.view(totals.real.dtype).reshape(*totals.shape, 2)
        divided: NDArray[Any] = parts / column[..., None].astype(parts.dtype)
    return divided.reshape(*totals.shape[:-1], -1).view(totals.dtype)


def _canonical(values: NDArray[Any]) -> NDArray[Any]:
    """Give every NaN sign 0 and payload 0."""
    if values.dtype.kind in "iub":
        return values
    parts = values.view(values.real.dtype) if values.dtype.kind == "c" else values
    parts[np.isnan(parts)] = np.nan
    return values
