"""Use the `zarr` package with limits: only regular files, and codecs with bounded output.

Import this module only if `zarr` is installed.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import zarr
from numcodecs.abc import Codec
from zarr.abc.codec import ArrayArrayCodec, BytesBytesCodec
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.storage import LocalStore

from gatherum._model import errors
from gatherum._system.regular_files import naming, open_regular
from gatherum.files.formats.inflating import INFLATING, check_codec, encoded_size, inflated
from gatherum.files.formats.zarr.nodes import LONGEST_METADATA, METADATA
from gatherum.files.formats.zarr.private import default_buffer_prototype
from gatherum.files.resources.disk import check_within

METADATA_KEYS = (*METADATA, ".zattrs", ".zgroup", ".zmetadata")
SLACK = 64 << 10  # bytes that a file may have in addition to its chunk


class RegularStore(LocalStore):  # type: ignore[misc]  # zarr is not typed here
    """A directory whose keys are regular files inside it, which are read up to a limit.

    A missing key is None, as in any store. A key that is not a regular file, such as a folder,
    raises ValueError. Other stores treat such a key as missing, and return fill values.
    """

    limit = 0  # the size limit of a chunk; unknown until the metadata are read
    within = "/"

    @classmethod
    def at(cls, path: str, within: str, *, read_only: bool) -> RegularStore:
        """Return the store of the directory `path`, whose files are within another directory."""
        store = cls(path, read_only=read_only)
        store.within = within
        return store

    def with_read_only(self, read_only: bool = False) -> RegularStore:
        """Return the same store, read-only or writable."""
        store = self.at(str(self.root), self.within, read_only=read_only)
        store.limit = self.limit
        return store

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the value of `key`, or a part of it."""
        return await asyncio.to_thread(self._read, key, prototype, byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the value of `key`, or a part of it."""
        return self._read(key, prototype, byte_range)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Any]) -> list[Any]:
        """Return parts of the values of several keys."""
        return [await self.get(key, prototype, byte_request) for key, byte_request in key_ranges]

    def _read(self, key: str, prototype: Any, byte_range: Any) -> Any:
        path = os.path.join(self.root, key)
        descriptor = _opened(path, self.within)
        if descriptor is None:
            return None
        with open(descriptor, "rb") as file, naming(path):
            size = os.fstat(descriptor).st_size
            limit = LONGEST_METADATA if key in METADATA_KEYS else self.limit
            if size > limit:
                raise ValueError(str(errors.file_too_big(path, limit)))
            start, stop = span(byte_range, size)
            file.seek(start)
            content = file.read(max(0, stop - start))
        return (prototype or default_buffer_prototype()).buffer.from_bytes(content)


def _opened(path: str, within: str) -> int | None:
    """Return a descriptor of a regular file, or None if it does not exist."""
    check_within(path, within)
    try:
        return open_regular(path)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise ValueError(f"{path}: a link that leads nowhere") from None
        return None
    except NotADirectoryError:
        raise ValueError(f"{path}: lies in what is not a directory") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(str(error)) from None  # the path exists, but is not a regular file


def span(byte_request: Any, size: int) -> tuple[int, int]:
    """Return the byte range of a zarr request for a value of `size` bytes."""
    if isinstance(byte_request, RangeByteRequest):
        return byte_request.start, min(byte_request.end, size)
    if isinstance(byte_request, OffsetByteRequest):
        return byte_request.offset, size
    return max(0, size - byte_request.suffix) if isinstance(
        byte_request, SuffixByteRequest
    ) else 0, size


def bounded(array: Any, store: Any) -> tuple[Any, int]:
    """Return an array opened from `store` whose files and chunks are read within limits.

    Set the store's `limit`, the maximum size of a stored chunk. The second result is the maximum
    number of bytes of a chunk or shard between two of its codecs. Raise ValueError if a codec
    cannot be bounded.
    """
    metadata, shape = array.metadata, tuple(array.shards or array.chunks)
    item = _item(metadata.dtype)
    if metadata.zarr_format == 2:
        codecs = [*(metadata.filters or ()), *filter(None, [metadata.compressor])]
        for codec in codecs:
            check_codec(_name(codec), _config(codec))
        sizes = _sizes(codecs, shape, item)
        safe = [BoundedNumcodec(c, *size) for c, size in zip(codecs, sizes, strict=False)]
        compressor = safe.pop() if metadata.compressor is not None else None
        metadata = replace(metadata, compressor=compressor, filters=tuple(safe) or None)
    else:
        codecs = list(metadata.codecs)
        metadata = replace(metadata, codecs=_bounded_codecs(codecs))
        sizes = _sizes(codecs, shape, item)
    between = [
        size for codec, (size, _) in zip(codecs, sizes, strict=False) if _name(codec) in INFLATING
    ]
    store.limit = 2 * sizes[-1][0] + SLACK
    return zarr.Array(zarr.AsyncArray(metadata, array.store_path)), max(between, default=0)


def inner_chunks(metadata: Any) -> int:
    """Return the number of chunks in a shard, at all depths, or 0 if there are no shards."""
    codecs = getattr(metadata, "codecs", ())
    shape, count = None, 0
    if codecs:
        shape = metadata.chunk_grid.chunk_shape
    while sharding := next((c for c in codecs if _name(c) == "sharding_indexed"), None):
        count = max(1, count) * (math.prod(shape or ()) // math.prod(sharding.chunk_shape))
        codecs, shape = sharding.codecs, sharding.chunk_shape
    return count


def _sizes(codecs: Iterable[Any], shape: tuple[int, ...], itemsize: int) -> list[tuple[int, bool]]:
    """Return the maximum number of bytes before each codec and after the last one.

    Each number is paired with a bool that is True if the number is exact. A shard contains its
    index, and each of its chunks as encoded by the codecs of the shard.
    """
    item_count = math.prod(shape)
    sizes = [(item_count * itemsize, True)]
    for codec in codecs:
        most_bytes, is_exact = sizes[-1]
        name, config = _name(codec), _config(codec)
        if name == "sharding_indexed":
            inner_shape = tuple(codec.chunk_shape)
            most_itemsize = -(-most_bytes // max(1, item_count))
            chunk_count = item_count // max(1, math.prod(inner_shape))
            most_bytes = chunk_count * _sizes(codec.codecs, inner_shape, most_itemsize)[-1][0]
            most_bytes += _sizes(codec.index_codecs, (chunk_count, 2), 8)[-1][0]
            is_exact = False
        else:
            most_bytes, keeps_exactness = encoded_size(name, config, most_bytes)
            is_exact = is_exact and keeps_exactness
        sizes.append((most_bytes, is_exact))
    return sizes


def _item(dtype: Any) -> int:
    native = dtype.to_native_dtype() if hasattr(dtype, "to_native_dtype") else dtype
    return int(native.itemsize)


def _name(codec: Any) -> str:
    """Return the name of a Zarr 3 or Zarr 2 codec."""
    name = codec.codec_id if isinstance(codec, Codec) else codec.to_dict()["name"]
    return str(name).removeprefix("numcodecs.")


def _config(codec: Any) -> Mapping[str, Any]:
    """Return the settings of a Zarr 3 or Zarr 2 codec."""
    if isinstance(codec, Codec):
        return codec.get_config()  # type: ignore[no-any-return]
    return codec.to_dict().get("configuration") or {}


def _bounded_codecs(codecs: Iterable[Any]) -> tuple[Any, ...]:
    """Return the codecs of a Zarr 3 array or shard, with limits for those that inflate."""
    bounded_codecs: list[Any] = []
    for codec in codecs:
        name = _name(codec)
        check_codec(name, _config(codec))
        if name in INFLATING:
            before = tuple(c for c in bounded_codecs if not isinstance(c, ArrayArrayCodec))
            bounded_codecs.append(BoundedCodec(codec, before))
        elif name == "sharding_indexed":
            inner, index = _bounded_codecs(codec.codecs), _bounded_codecs(codec.index_codecs)
            bounded_codecs.append(replace(codec, codecs=inner, index_codecs=index))
        else:
            bounded_codecs.append(codec)
    return tuple(bounded_codecs)


@dataclass(frozen=True)
class BoundedCodec(BytesBytesCodec):  # type: ignore[misc]  # zarr is not typed here
    """A decompressing Zarr 3 codec, limited to the output of the codecs `before` it."""

    codec: Any
    before: tuple[Any, ...]

    @property
    def is_fixed_size(self) -> bool:
        """Whether the compressed size is known in advance."""
        return bool(self.codec.is_fixed_size)

    def to_dict(self) -> Any:
        """Return the codec as it appears in the metadata."""
        return self.codec.to_dict()

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Return the compressed size, if it is known."""
        return int(self.codec.compute_encoded_size(input_byte_length, chunk_spec))

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        data = chunk_bytes.to_bytes()
        most = _sizes(self.before, chunk_spec.shape, _item(chunk_spec.dtype))[-1]
        decoded = await asyncio.to_thread(
            inflated, _name(self.codec), _config(self.codec), data, *most
        )
        return chunk_spec.prototype.buffer.from_bytes(decoded)

    async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        (encoded,) = await self.codec.encode([(chunk_bytes, chunk_spec)])
        return encoded


class BoundedNumcodec(Codec):  # type: ignore[misc]  # numcodecs is not typed here
    """A Zarr 2 codec (compressor or filter), limited to `most_bytes` of output."""

    codec_id = ""  # set to the ID of the codec

    def __init__(self, codec: Any, most_bytes: int, exact: bool) -> None:
        self.codec_id, self.codec = codec.codec_id, codec
        self.most_bytes, self.exact = most_bytes, exact

    def get_config(self) -> Any:
        """Return the codec as in the metadata."""
        return self.codec.get_config()

    def encode(self, buf: Any) -> Any:
        """Compress."""
        return self.codec.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decompress within bounds."""
        if self.codec_id not in INFLATING:
            return self.codec.decode(buf, out)
        return inflated(self.codec_id, self.get_config(), buf, self.most_bytes, self.exact)
