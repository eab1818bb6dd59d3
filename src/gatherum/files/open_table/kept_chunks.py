"""Decoded chunks that an open table keeps for its next calls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import BoxStorage, Source
from gatherum.files.row_access.grid import Box, BoxArray

LEAST = 256 << 10  # bytes of a chunk; smaller ones take less time to decode than to look up here


def keeping_chunks(table: Source, limit: int) -> Source:
    """Return a table that keeps the chunks used last, decoded, in at most `limit` bytes.

    Return other tables unchanged. Only tables in local files with large chunks keep them, because
    the caller may change an array object, and a server does not tell that a chunk has changed.
    """
    storage, location = table.storage, table.location
    is_local = isinstance(location, Location) and location.remote is None
    if not isinstance(storage, BoxStorage) or not is_local:
        return table
    extents = map(min, storage.array.chunks, table.shape)
    if math.prod(extents) * table.dtype.itemsize < LEAST:
        return table
    return replace(table, storage=replace(storage, array=KeptChunks(storage.array, limit)))


class KeptChunks(BoxArray):
    """An array that keeps the boxes used last."""

    keeps_boxes = True

    def __init__(self, array: BoxArray, limit: int) -> None:
        self._array, self._limit = array, limit
        self.shape, self.chunks, self.dtype = array.shape, array.chunks, array.dtype
        # In the order of their last use.
        self._boxes: dict[tuple[tuple[int, int], ...], NDArray[Any]] = {}

    def view_box(self, box: Box) -> NDArray[Any]:
        """Return a box without a copy. It must not be changed."""
        key = tuple((side.start, side.stop) for side in box)
        values = self._boxes.pop(key, None)
        if values is None:
            self._make_room(math.prod(stop - start for start, stop in key) * self.dtype.itemsize)
            values = self._array.view_box(box)
            values = self._array.read_box(box) if values is None else values
            values.flags.writeable = False
        self._boxes[key] = values
        return values

    read_box = view_box

    def _make_room(self, nbytes: int) -> None:
        """Forget the boxes that have not been used for the longest time."""
        boxes = list(self._boxes.items())  # a copy, because other threads add and remove boxes
        kept_bytes = sum(values.nbytes for _, values in boxes)
        for key, values in boxes:
            if kept_bytes + nbytes <= self._limit:
                break
            self._boxes.pop(key, None)
            kept_bytes -= values.nbytes

    def announce(self, boxes: Iterator[Box]) -> None:
        """Prepare to read these boxes next, in this order."""
        self._array.announce(boxes)

    def stop(self) -> None:
        """Cancel pending work, because the call is over."""
        self._array.stop()
