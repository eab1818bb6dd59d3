"""Chunks of HDF5 datasets, decompressed within their own size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.errors.audience import hint
from gatherum.files.formats.format import first_line
from gatherum.files.formats.inflating import encoded_size, inflated
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import SlicedArray
from gatherum.files.row_access.grid import Box

DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3  # the numbers of filters in HDF5
FILTERS = {DEFLATE: "zlib", SHUFFLE: "shuffle", FLETCHER32: "fletcher32"}  # as codecs
OTHERS = {  # filters of HDF5, of h5py, and of the list of registered filters
    4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf",
    305: "lzo", 307: "bzip2", 32001: "blosc", 32003: "snappy", 32004: "lz4", 32008: "bitshuffle",
    32013: "zfp", 32014: "fpzip", 32015: "zstd", 32017: "sz", 32018: "fcidecomp", 32019: "jpeg",
    32022: "bitgroom", 32023: "granular bitround", 32024: "sz3", 32026: "blosc2",
}  # fmt: skip
READ_BYTES = 1 << 20  # bytes to read together from a dataset without chunks


def other_filter(name: str, filter_id: int) -> ValueError:
    """Return the error for a filter whose output cannot be bounded."""
    import h5py

    filter_name = f"{OTHERS[filter_id]} ({filter_id})" if filter_id in OTHERS else str(filter_id)
    plugin = "" if h5py.h5z.filter_avail(filter_id) else ", with a plugin such as hdf5plugin"
    advice = hint(f"h5py runs it{plugin}: pass an open dataset, as h5py.File(file)[name]")
    return ValueError(
        f"{name}: HDF5's filter {filter_name} is not supported, because its output has no size "
        f"limit; the supported filters are deflate, shuffle and fletcher32{advice}"
    )


class ChunkedDataset(SlicedArray):
    """A dataset in chunks. The size of a chunk limits its decompression."""

    def __init__(self, name: str, dataset: Any, settings: Any, meter: Meter) -> None:
        import h5py

        super().__init__(name, dataset, meter, READ_BYTES)
        self.filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
        for filter_id in self.filters:
            if filter_id not in FILTERS:
                raise other_filter(name, filter_id)
        stored = dataset.id.get_type()
        # HDF5 verifies checksums, and converts types that NumPy stores in another way
        self._is_plain = FLETCHER32 not in self.filters and stored == h5py.h5t.py_create(
            dataset.dtype, logical=True
        )

    def read_box(self, box: Box) -> NDArray[Any]:
        """Read a box of the dataset, preferably of whole chunks."""
        try:
            if DEFLATE not in self.filters:
                return super().read_box(box)
            return self._inflated_box(box)
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{self._name}: cannot be read: {first_line(error)}") from None

    def _inflated_box(self, box: Box) -> NDArray[Any]:
        """Inflate the chunks of a box. HDF5 reads the chunks that need further decoding."""
        shape = tuple(side.stop - side.start for side in box)
        values: NDArray[Any] = np.empty(shape, self.dtype)
        keyed, other_dims = box[: self._rank], box[self._rank :]
        for corner in self._chunk_corners(box):
            part = [
                slice(max(side.start, first), min(side.stop, first + n))
                for side, first, n in zip(keyed, corner, self.chunks, strict=False)
            ]
            to = _moved(part, [side.start for side in keyed])
            if (chunk := self._inflated(corner)) is None:
                values[to] = super().read_box((*part, *other_dims))
            else:
                values[to] = chunk[(*_moved(part, corner), *other_dims)]
                self._meter.read(values[to].nbytes)
        return values

    def _chunk_corners(self, box: Box) -> list[tuple[int, ...]]:
        """Return the first positions of the chunks that overlap a box."""
        sides = zip(box[: self._rank], self.chunks[: self._rank], strict=True)
        return list(product(*(range(part.start // n * n, part.stop, n) for part, n in sides)))

    def _inflated(self, corner: tuple[int, ...]) -> NDArray[Any] | None:
        """Return a chunk, or None if HDF5 must read it.

        Raise ValueError for a chunk that inflates to more than its size.
        """
        chunk = self._array.id.get_chunk_info_by_coord(corner)
        if chunk.byte_offset is None:
            return None
        item = self._array.dtype.itemsize
        sizes = [math.prod(self._array.chunks) * item]  # before each filter and after the last one
        for filter_id in self.filters:
            sizes.append(encoded_size(FILTERS[filter_id], {}, sizes[-1])[0])
        if chunk.size > 2 * sizes[-1] + 1024:
            raise ValueError(f"a chunk of {chunk.size} bytes for {sizes[0]}")
        run = [i for i, _ in enumerate(self.filters) if not chunk.filter_mask & 1 << i]
        _, raw = self._array.id.read_direct_chunk(corner)
        while run if self._is_plain else any(self.filters[i] == DEFLATE for i in run):
            i = run.pop()
            if self.filters[i] == DEFLATE:
                raw = inflated("zlib", {}, raw, sizes[i], exact=False)
            elif self.filters[i] == FLETCHER32:
                raw = raw[:-4]
            else:
                raw = _unshuffled(raw, item)
        if not self._is_plain or len(raw) != sizes[0]:
            return None
        return np.frombuffer(raw, self.dtype).reshape(self.chunks)


def _moved(part: Sequence[slice], origin: Sequence[int]) -> tuple[slice, ...]:
    """Return a part of an array as a part of the box that begins at `origin`."""
    return tuple(slice(s.start - o, s.stop - o) for s, o in zip(part, origin, strict=True))


def _unshuffled(raw: Any, item: int) -> NDArray[np.uint8]:
    """Undo the filter that stores the first bytes of all items, then the second bytes, etc."""
    whole_items_size = len(raw) // item * item
    planes = np.frombuffer(raw, np.uint8, whole_items_size).reshape(item, -1)
    items = np.empty((whole_items_size // item, item), np.uint8)
    for i, plane in enumerate(planes):
        items[:, i] = plane  # several times as fast as a copy of the transposed array
    remainder = (
        np.frombuffer(raw, np.uint8, offset=whole_items_size)
        if whole_items_size < len(raw)
        else items[:0, 0]
    )
    return np.concatenate([items.reshape(-1), remainder])
