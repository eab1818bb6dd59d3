"""Members of `.npz` files: read in place where stored, laid out in a spill file where deflated."""

import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from gatherum.files import npy
from gatherum.files.disk import DiskFile

__all__ = ["open_member"]

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
PIECE = 1 << 20


def open_member(
    name: str, file: DiskFile, member: str | None, spill_dir: str
) -> tuple[npy.ArrayHeader, DiskFile, int]:
    """Find an array of an `.npz` file.

    Parameters
    ----------
    name : str
        The file and member, for error messages.
    file : DiskFile
        The `.npz` file.
    member : str or None
        The array's name, with or without ``.npy``; None when there is only one.
    spill_dir : str
        Where a compressed member is laid out.

    Returns
    -------
    tuple
        The array's header; the file that holds it, `file` itself or a scratch file; and the
        position of the `.npy` data in it.

    Raises
    ------
    ValueError
        There is no such member, or the file is damaged.
    """
    with open(file.fd, "rb", closefd=False) as stream:
        with _damage(name):
            archive = zipfile.ZipFile(stream)
        info = _find(name, archive, member)
        if info.compress_type == zipfile.ZIP_STORED:
            start = _stored_at(name, file, info)
            return _stored_header(name, file, start, info.file_size), file, start
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise ValueError(
                f"{name}: compressed by the zip method {info.compress_type}; stored and deflated "
                "members are read"
            )
        return _unpack(name, _pieces(name, archive, info), info.file_size, file, spill_dir)


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """Turn whatever `zipfile` raises for a damaged archive into one line about it."""
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{name}: cannot be read: {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, ValueError) as error:
        raise ValueError(f"{name}: damaged: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise OSError(error.errno, error.strerror, name) from error
        raise ValueError(f"{name}: damaged: a position in it is outside of the file") from None


def _find(name: str, archive: zipfile.ZipFile, member: str | None) -> zipfile.ZipInfo:
    arrays = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    names = [info.filename.removesuffix(".npy") for info in arrays]
    if member is None:
        found = arrays
    else:
        found = [info for info in arrays if info.filename in (member, member + ".npy")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(repr(n) for n in names[:8]) + (", …" if len(names) > 8 else "")
    if member is None:
        raise ValueError(f"{name}: name one of its {len(names)} arrays after a colon: {listed}")
    if found:
        raise ValueError(f"{name}: the file has {len(found)} arrays of that name")
    raise ValueError(f"{name}: the file has no such array; it holds {listed or 'none'}")


def _stored_at(name: str, file: DiskFile, info: zipfile.ZipInfo) -> int:
    at = info.header_offset
    raw = file.read_bytes(at, LOCAL_HEADER.size) if 0 <= at < file.size else b""
    if len(raw) == LOCAL_HEADER.size:
        fields = LOCAL_HEADER.unpack(raw)
        start: int = at + LOCAL_HEADER.size + fields[-2] + fields[-1]
        if fields[0] == b"PK\3\4" and not fields[2] & 1 and start + info.file_size <= file.size:
            return start
    raise ValueError(f"{name}: damaged: its place in the file is not as announced")


def _stored_header(name: str, file: DiskFile, start: int, size: int) -> npy.ArrayHeader:
    end = npy.header_end(name, file.read_bytes(start, min(size, npy.PREFIX_BYTES)))
    return npy.parse_header(name, file.read_bytes(start, min(size, end)), size)


def _pieces(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Return a deflated member in pieces of bounded size."""
    with _damage(name), archive.open(info) as unpacked:
        while piece := unpacked.read(PIECE):
            yield piece


def _unpack(
    name: str, pieces: Iterator[bytes], size: int, file: DiskFile, spill_dir: str
) -> tuple[npy.ArrayHeader, DiskFile, int]:
    """Lay a member out in a scratch file, once its header agrees with its announced size."""
    start = next(pieces, b"")
    end = npy.header_end(name, start)
    while len(start) < end and (piece := next(pieces, b"")):
        start += piece
    header = npy.parse_header(name, start[:end], size)
    scratch = DiskFile.scratch(spill_dir, file.meter)
    try:
        done = 0
        for piece in chain([start], pieces):
            if done + len(piece) > size:
                raise ValueError(f"{name}: damaged: holds more than its {size} bytes")
            scratch.write_from(done, piece)
            done += len(piece)
        if done != size:
            raise ValueError(f"{name}: damaged: ends at byte {done} of {size}")
    except BaseException:
        scratch.close()
        raise
    return header, scratch, 0
