"""Members of `.npz` files. Stored members are read in place, deflated ones from a scratch file."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from gatherum.files.formats import npy
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.members import choose_member
from gatherum.files.formats.storage import Source
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
PIECE_BYTES = 1 << 20


class Npz(Format):
    """An array in a zip file, which may contain several; read only."""

    name, example, suffixes = "npz", "'x.npz:name'", ("npz",)
    read_only = ".npz files are read only"

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can begin with these bytes."""
        return head.startswith((b"PK\3\4", b"PK\5\6"))

    def decodes_from_start(self, location: Location) -> bool:
        """Return True if the member is compressed."""
        if not zipfile.is_zipfile(location.file):
            return False  # `open` raises
        with zipfile.ZipFile(location.file) as archive:
            return any(
                info.compress_type != zipfile.ZIP_STORED
                for info in archive.infolist()
                if location.member in (None, info.filename, info.filename.removesuffix(".npy"))
            )

    def open(self, location: Location, resources: Resources) -> Source:
        """Find an array, stored or deflated, and check its headers."""
        name, file = location.text, location.open(resources)
        with open(file.fd, "rb", closefd=False) as stream:
            with _damage(name):
                archive = zipfile.ZipFile(stream)
            member_info = _find(name, archive, location.member)
            if member_info.compress_type == zipfile.ZIP_STORED:
                holder, start = file, _stored_at(name, file, archive, member_info)
                header = npy.read_header(name, file, start, member_info.file_size)
            elif member_info.compress_type == zipfile.ZIP_DEFLATED:
                holder, start = resources.scratch(), 0
                header = _unpack(
                    name, _pieces(name, archive, member_info), member_info.file_size, holder
                )
            else:
                raise ValueError(
                    f"{name}: compressed by the zip method {member_info.compress_type}; stored and "
                    "deflated members are read"
                )
        return header.source(location, holder, start, file)


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """Convert `zipfile`'s exceptions for a damaged archive to a one-line ValueError."""
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
    """Return the member with the given name, with or without ``.npy``, as `numpy.load` does."""
    infos = archive.infolist()
    for member_name in () if member is None else (member, f"{member}.npy"):
        matches = [info for info in infos if info.filename == member_name]
        if len(matches) > 1:
            raise ValueError(f"{name}: the file has {len(matches)} arrays of that name")
        if matches:
            return matches[0]
    arrays = [info for info in infos if info.filename.endswith(".npy")]
    names = [info.filename.removesuffix(".npy") for info in arrays]
    return arrays[names.index(choose_member(name, "array", member, names))]


def _stored_at(
    name: str, file: DiskFile, archive: zipfile.ZipFile, member_info: zipfile.ZipInfo
) -> int:
    """Return the offset of a stored member. Check that it does not overlap the next one."""
    offset = member_info.header_offset
    raw = file.read_bytes(offset, LOCAL_HEADER.size) if 0 <= offset < file.size else b""
    offsets = [archive.start_dir, *(neighbour.header_offset for neighbour in archive.infolist())]
    following = min((start_of for start_of in offsets if start_of > offset), default=0)
    if len(raw) == LOCAL_HEADER.size and member_info.compress_size == member_info.file_size:
        fields = LOCAL_HEADER.unpack(raw)
        start: int = offset + LOCAL_HEADER.size + fields[-2] + fields[-1]
        fits = start + member_info.file_size <= min(following, file.size)
        if fields[0] == b"PK\3\4" and not fields[2] & 1 and fits:
            return start
    raise ValueError(f"{name}: damaged: its place in the file is not as announced")


def _pieces(name: str, archive: zipfile.ZipFile, member_info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a deflated member in pieces of bounded size."""
    with _damage(name), archive.open(member_info) as unpacked:
        while piece := unpacked.read(PIECE_BYTES):
            yield piece


def _unpack(name: str, pieces: Iterator[bytes], size: int, scratch: DiskFile) -> npy.ArrayHeader:
    """Check the header of a member against its announced size, and copy it to a scratch file."""
    first_bytes = next(pieces, b"")
    end = npy.header_end(name, first_bytes)
    while len(first_bytes) < end and (piece := next(pieces, b"")):
        first_bytes += piece
    header = npy.parse_header(name, first_bytes[:end], size)
    written = 0
    for piece in chain([first_bytes], pieces):
        if written + len(piece) > size:
            raise ValueError(f"{name}: damaged: holds more than its {size} bytes")
        scratch.write_from(written, piece)
        written += len(piece)
    if written != size:
        raise ValueError(f"{name}: damaged: ends at byte {written} of {size}")
    return header
