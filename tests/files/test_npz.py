"""Damaged or unusual archives: the error is one line with the archive's name."""

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from files.storage import described, npy_bytes, put, refused
from gatherum import files


def test_npz_names(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../up.npy", npy_bytes(described()))
        archive.writestr("a.npy", npy_bytes(described()))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.npy", npy_bytes(described()))
    assert refused(tmp_path, f"{path}:b") == (
        "t.npz:b: the file has no such array; it holds '../../up', 'a', 'a'"
    )
    assert refused(tmp_path, f"{path}:a") == "t.npz:a: the file has 2 arrays of that name"
    assert refused(tmp_path, str(path)) == (
        "t.npz: name one of its 3 arrays after a colon: '../../up', 'a', 'a'"
    )
    np.save(tmp_path / "i.npy", np.array([0]))
    files.gather_file(f"{path}:../../up", tmp_path / "i.npy", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").shape == (1, 2)


@pytest.mark.parametrize(
    ("inside", "name"),
    [("a.npy", "a"), ("a.npy", "a.npy"), ("a.npy.npy", "a.npy"), ("a", "a"), ("A.NPY", "A.NPY")],
)
def test_members_are_found_as_numpy_finds_them(tmp_path: Path, inside: str, name: str) -> None:
    content = npy_bytes(described("(4, 4)"), bytes(range(64)))
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("b.npy", npy_bytes(described()))
        archive.writestr(inside, content)
    result = files.gather_file(f"{tmp_path}/t.npz:{name}", np.arange(4))
    assert result.tobytes() == np.load(tmp_path / "t.npz")[name].tobytes()


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_damage(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "t.npz"
    save = np.savez_compressed if compressed else np.savez
    save(path, a=np.arange(1000.0).reshape(10, 100))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refused(tmp_path, f"{path}:a").startswith("t.npz:a: damaged: ")
    path.write_bytes(whole[:60] + bytes(40) + whole[100:])
    assert "t.npz:a: " in refused(tmp_path, f"{path}:a")


ZIP_FIELDS = {
    # of an end record, a directory entry and a local header: signature, then field widths
    b"PK\5\6": (2, 2, 2, 2, 4, 4, 2),
    b"PK\1\2": (2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4),
    b"PK\3\4": (2, 2, 2, 2, 2, 4, 4, 4, 2, 2),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("record", ZIP_FIELDS)
def test_every_field_of_a_zip_file(tmp_path: Path, record: bytes, compressed: bool) -> None:
    path, table = tmp_path / "t.npz", np.arange(40.0).reshape(10, 4)
    (np.savez_compressed if compressed else np.savez)(path, a=table)
    put(tmp_path, "i", np.array([3]))
    whole = path.read_bytes()
    at = whole.rindex(record) + 4
    for width in ZIP_FIELDS[record]:
        old = int.from_bytes(whole[at : at + width], "little")
        for new in (0, 1, 5, 12, 14, 93, 99, 2**15, 2**31 - 1, 2**31, 2**32 - 1, old + 1, old - 1):
            field = (new % 2 ** (8 * width)).to_bytes(width, "little")
            path.write_bytes(whole[:at] + field + whole[at + width :])
            try:
                files.gather_file(f"{path}:a", tmp_path / "i.npy", tmp_path / "o.npy")
            except ValueError as error:
                assert str(error).startswith(f"{path}:a: ") and "\n" not in str(error)
            else:
                assert np.load(tmp_path / "o.npy").tolist() == table[[3]].tolist()
        at += width


def zip64(offset: int) -> bytes:
    """Return an archive whose only member begins at `offset`, a 64-bit number."""
    name, extra = b"a.npy", struct.pack("<HHQ", 1, 8, offset % 2**64)
    sizes = (0, 9, 9, len(name), len(extra))
    head = struct.pack("<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 0, *sizes, 0, 0, 0, 0, 2**32 - 1)
    entry = head + name + extra
    return entry + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), 0, 0)


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**62, 2**63 - 1])
def test_a_member_far_away(tmp_path: Path, offset: int) -> None:
    (tmp_path / "t.npz").write_bytes(zip64(offset))
    line = refused(tmp_path, str(tmp_path / "t.npz:a"))
    assert line == "t.npz:a: damaged: its place in the file is not as announced"


@pytest.mark.parametrize("stored", [(False, True), (True, True)])
def test_a_stored_member_ends_before_the_next_one(
    tmp_path: Path, stored: tuple[bool, bool]
) -> None:
    path, long = tmp_path / "t.npz", npy_bytes(described("(20, 2)"), bytes(160))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", long[:-96])  # whose header claims the following bytes, too
        archive.writestr("b.npy", npy_bytes(described()))
    raw, true = path.read_bytes(), struct.pack("<L", len(long) - 96)
    at = raw.index(b"PK\1\2") + 20  # the sizes of the first member in the directory
    sizes = [struct.pack("<L", len(long)) if lies else true for lies in stored]
    path.write_bytes(raw[:at] + b"".join(sizes) + raw[at + 8 :])
    line = refused(tmp_path, f"{path}:a")
    assert line == "t.npz:a: damaged: its place in the file is not as announced"


def test_an_archive_whose_members_begin_before_it(tmp_path: Path) -> None:
    # the directory is closer to the start than its entries claim: all positions become negative
    path = tmp_path / "t.npz"
    np.savez(path, a=np.arange(4.0))
    whole = bytearray(path.read_bytes())
    end = whole.rindex(b"PK\5\6")
    where = int.from_bytes(whole[end + 16 : end + 20], "little")
    whole[end + 16 : end + 20] = (where + 100).to_bytes(4, "little")
    path.write_bytes(whole)
    assert refused(tmp_path, f"{path}:a").startswith("t.npz:a: damaged: ")


def test_members_compressed_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", npy_bytes(described("(4, 4)")))
    assert refused(tmp_path, f"{path}:a") == (
        "t.npz:a: compressed by the zip method 12; stored and deflated members are read"
    )
