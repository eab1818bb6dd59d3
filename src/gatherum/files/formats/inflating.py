"""Decompress chunks up to a limit.

A few bytes can decompress to billions of bytes. Therefore the output of a codec is limited to the
size of the uncompressed chunk. `encoded_size` computes this size. Decompressing needs no more
memory than that:

- gzip, zlib, bz2 and lzma stop at the limit; lzma's dictionary is bounded too.
- blosc, lz4 and zstd announce a size, which is checked first; they output exactly that many bytes.
- zstd without an announced size is decompressed into exactly the chunk's size. If that is unknown,
  after a filter or another compressor, its blocks of at most 128 KiB are counted first.
- Checksums, shuffles and filters output a fixed multiple of their input, once their dtypes are
  numbers of at most 16 bytes.

Other codecs are not supported, because their output could have any size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

INFLATING = ("gzip", "zlib", "bz2", "lzma", "zstd", "blosc", "lz4")
STEADY = (
    "bytes", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32",
    "jenkins_lookup3", "shuffle", "delta", "bitround", "fixedscaleoffset", "quantize", "packbits",
    "astype", "base64",
)  # fmt: skip
CHECKSUMS = ("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3")  # of 4 bytes
DTYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
LARGEST_NUMBER = 16
GROWTH = 512  # the most bytes that a compressor (bzip2) adds to a short input
DICTIONARY = 256 << 20
PIECE_BYTES = 64 << 10
BLOSC_HEADER = struct.Struct("<4B3I")
ZSTD_BLOCK = 128 << 10  # the maximum bytes of a block
ZSTD_MAGIC, ZSTD_SKIPPED = 0xFD2FB528, 0x184D2A5


def check_codec(name: str, config: Mapping[str, Any]) -> None:
    """Raise ValueError for a codec whose output may exceed a fixed multiple of a chunk."""
    if name not in INFLATING and name not in STEADY:
        raise ValueError(
            f"the codec {name!r} is not supported, because its output has no size limit"
        )
    for key in DTYPES:
        if config.get(key) is not None:
            dtype = np.dtype(config[key])
            if dtype.kind not in "biufcmM" or dtype.itemsize > LARGEST_NUMBER:
                raise ValueError(f"the codec {name!r} has the {key} {dtype}, expected numbers")


def encoded_size(name: str, config: Mapping[str, Any], size: int) -> tuple[int, bool]:
    """Return the maximum output of a codec for `size` bytes, and whether it is exact."""
    if name in INFLATING:
        return size + size // 8 + GROWTH, False
    if name in CHECKSUMS:
        return size + 4, True
    if name == "base64":
        return 4 * -(-size // 3), True
    stored, decoded = (
        next((np.dtype(config[key]).itemsize for key in keys if config.get(key)), None)
        for keys in (("encode_dtype", "astype"), ("decode_dtype", "dtype"))
    )
    if stored is None or decoded is None:
        return size + (name == "packbits"), name != "packbits"
    return max(size, -(-size * stored // decoded)), False  # numbers that a filter widens


def inflated(name: str, config: Mapping[str, Any], data: Any, most_bytes: int, exact: bool) -> Any:
    """Decompress a chunk with a codec of `INFLATING` and the settings from Zarr's metadata.

    The result has at most `most_bytes`, or exactly these if `exact`. Raise ValueError if the result
    is larger or the data are damaged.
    """
    view = memoryview(data).cast("B")
    if name in ("gzip", "zlib", "bz2", "lzma"):
        return _streamed(name, lambda: _decompressor(name, config), view, most_bytes)
    size, announced = _announced(name, view)
    if announced and size > most_bytes:
        raise _too_large(most_bytes)
    import numcodecs

    decode = numcodecs.get_codec({"id": name}).decode
    if exact and not announced:
        return decode(view, out=np.empty(most_bytes, np.uint8))
    if size > most_bytes + ZSTD_BLOCK:  # only the last block may be short
        raise ValueError("a chunk of zstd does not say how large it is, and may be too large")
    decoded = decode(view)
    if len(decoded) > most_bytes:
        raise _too_large(most_bytes)
    return decoded


def _too_large(most_bytes: int) -> ValueError:
    return ValueError(f"a chunk inflates to more than its {most_bytes} bytes")


def _decompressor(name: str, config: Mapping[str, Any]) -> Any:
    if name == "gzip":
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if name == "zlib":
        return zlib.decompressobj()
    if name == "bz2":
        import bz2  # some builds of Python lack bz2 or lzma

        return bz2.BZ2Decompressor()
    import lzma

    container, filters = config.get("format", lzma.FORMAT_XZ), config.get("filters")
    if container != lzma.FORMAT_RAW:
        return lzma.LZMADecompressor(container, memlimit=DICTIONARY)
    if any(f.get("dict_size", 0) > DICTIONARY for f in filters or ()):
        raise ValueError("a dictionary of lzma is too large")
    return lzma.LZMADecompressor(container, filters=filters)


def _errors(name: str) -> tuple[type[Exception], ...]:
    if name != "lzma":
        return zlib.error, OSError
    import lzma

    return lzma.LZMAError, OSError


def _streamed(name: str, begin: Callable[[], Any], data: memoryview, most_bytes: int) -> bytearray:
    """Decompress consecutive streams to a total of at most `most_bytes`."""
    output, position = bytearray(), 0
    try:
        while position < len(data):
            stream = begin()
            while not stream.eof:
                if position == len(data):
                    raise ValueError(f"a chunk of {name} ends too early")
                piece = data[position : position + PIECE_BYTES]
                output += stream.decompress(piece, most_bytes + 1 - len(output))
                if len(output) > most_bytes:
                    raise _too_large(most_bytes)
                position += len(piece) - len(stream.unused_data)
    except _errors(name) as error:
        raise ValueError(f"a chunk of {name} is damaged: {error}") from None
    return output


def _announced(name: str, data: memoryview) -> tuple[int, bool]:
    """Return the maximum decompressed size of the data, and whether it is exact."""
    if name == "zstd":
        return _zstd_size(data)
    if name == "lz4" and len(data) >= 4:
        return int.from_bytes(data[:4], "little"), True
    if name == "blosc" and len(data) >= BLOSC_HEADER.size:
        *_, size, _, stored = BLOSC_HEADER.unpack_from(data)
        if stored <= len(data):
            return int(size), True
    raise ValueError(f"a chunk of {name} is damaged: {len(data)} bytes are too few")


def _zstd_size(data: memoryview) -> tuple[int, bool]:
    """Add up the sizes of all frames. If a frame has no size, use the maximum of its blocks."""
    total, position, announced = 0, 0, True
    while position < len(data):
        magic, position = _read_integer(data, position, 4)
        if magic >> 4 == ZSTD_SKIPPED:
            length, position = _read_integer(data, position, 4)
            position += length
            continue
        if magic != ZSTD_MAGIC:
            raise ValueError("a chunk of zstd is damaged: no frame where one should begin")
        settings, position = _read_integer(data, position, 1)
        single, width = settings >> 5 & 1, (0, 2, 4, 8)[settings >> 6]
        position += 1 - single + (0, 1, 2, 4)[settings & 3]
        size, position = _read_integer(data, position, width or single)
        known = bool(width or single)
        announced = announced and known
        total += size + (256 if width == 2 else 0)
        last = 0
        while not last:
            block, position = _read_integer(data, position, 3)
            last = block & 1
            position += 1 if block >> 1 & 3 == 1 else block >> 3
            if not known:  # compressed blocks do not contain their size, other blocks do
                total += ZSTD_BLOCK if block & 4 else min(block >> 3, ZSTD_BLOCK)
        position += settings & 4
    return total, announced


def _read_integer(data: memoryview, position: int, width: int) -> tuple[int, int]:
    """Return the integer stored in `width` bytes at `position`, and the position after it."""
    if position + width > len(data):
        raise ValueError("a chunk of zstd is damaged: it ends too early")
    return int.from_bytes(data[position : position + width], "little"), position + width
