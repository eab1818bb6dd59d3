"""HDF5 files: errors, locations of datasets, and the content of new files."""

import os
import re
import struct
import sys
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, bits, get, leftovers, put, refused
from gatherum import files
from gatherum.files.formats import locate

h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
pytestmark = pytest.mark.usefixtures("quick_sync")
TABLE = np.arange(600, dtype=np.float32).reshape(100, 6)


@pytest.fixture
def hdf5_path(tmp_path: Path) -> Path:
    """Make a file with datasets of many kinds."""
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file["flat"] = TABLE
        file.create_dataset("group/chunks", data=TABLE, chunks=(30, 4), compression="gzip")
        file.create_dataset("lzf", data=TABLE, chunks=(30, 4), compression="lzf")
        file.create_dataset("texts", data=["a", "b"])
        file.create_dataset("unwritten", (100, 6), "f4")
        file.create_dataset("some chunks", (100, 6), "f4", chunks=(30, 4), fillvalue=7)
        file["some chunks"][:30] = TABLE[:30]
        file["soft"] = h5py.SoftLink("/flat")
        file["outside"] = h5py.ExternalLink("other.h5", "/secret")
        layout = h5py.VirtualLayout((100, 6), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "secret", (100, 6))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (100, 6), "f4", external=[(str(tmp_path / "raw"), 0, 2400)])
        for name, size, bits in ((b"three bytes", 3, 24), (b"few bits", 4, 20)):
            odd, space = h5py.h5t.STD_I32LE.copy(), h5py.h5s.create_simple((4,))
            odd.set_precision(bits)
            odd.set_offset(8 * size - bits)
            odd.set_size(size)
            values = np.array([1, -2, 3, 500_000], np.int32)
            h5py.h5d.create(file.id, name, odd, space).write(
                h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.NATIVE_INT32
            )
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flat", TABLE),
        ("group/chunks", TABLE),
        ("/flat", TABLE),
        ("unwritten", np.zeros_like(TABLE)),
        ("some chunks", np.where(np.arange(100)[:, None] < 30, TABLE, np.float32(7))),
        ("few bits", np.array([1, -2, 3, 500_000], np.int32)),
    ],
)
def test_datasets_of_every_kind(hdf5_path: Path, name: str, expected: Any) -> None:
    indices = np.array([3, 0, len(expected) - 1])
    assert np.array_equal(files.gather_file(f"{hdf5_path}:{name}", indices), expected[indices])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (":soft", ": a link to 'soft' is not followed"),
        (":outside", ": a link to 'outside' is not followed"),
        (":virtual", ": its elements are stored in external files, which are not read"),
        (":external", ": its elements are stored in external files, which are not read"),
        (":texts", ": contains strings or objects of variable length"),
        (
            ":lzf",
            ": HDF5's filter lzf (32000) is not supported, because its output has no size limit",
        ),
        (":three bytes", ": NumPy has no such type: data type '<i3' not understood"),
        (":group", ": expected a dataset, got a group that holds 'group/chunks'"),
        (":nope", ": the file has no such dataset; it holds 'external', 'few bits', 'flat', "),
        (":flat/deeper", ": the file has no such dataset; it holds "),
        ("", ": name one of its 10 datasets after a colon: 'external', "),
    ],
)
def test_unsupported_datasets_raise_one_line(hdf5_path: Path, name: str, line: str) -> None:
    message = refused(hdf5_path.parent, str(hdf5_path) + name)
    assert message.startswith(f"t.h5{name}{line}")


ARRAY_TYPES = {
    "vectors": np.dtype(("<f4", (3,))),
    "matrices": np.dtype((">i2", (3, 4))),
    "arrays of arrays": np.dtype((np.dtype(("<f4", (3,))), (2,))),
    "records": np.dtype(([("a", "<f4"), ("b", "<i2", (2,))], (3,))),
    "strings": np.dtype(("S4", (2,))),
}


@pytest.mark.parametrize("as_dataset", [False, True], ids=["path", "dataset"])
@pytest.mark.parametrize("chunks", [None, (2, 1)])
@pytest.mark.parametrize("type_name", ARRAY_TYPES)
def test_array_types_add_dimensions(
    tmp_path: Path, type_name: str, chunks: Any, as_dataset: bool
) -> None:
    path = tmp_path / "t.h5"
    settings = {"chunks": chunks, "compression": "gzip", "shuffle": True} if chunks else {}
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (5, 2), ARRAY_TYPES[type_name], **settings)
        file.create_dataset("scalar", (), ARRAY_TYPES[type_name])
        values = np.random.default_rng(0).integers(65, 90, dataset[...].nbytes, np.uint8)
        table = values.view(dataset[...].dtype).reshape(dataset[...].shape)
        dataset.id.write(h5py.h5s.ALL, h5py.h5s.ALL, table, dataset.id.get_type())
    indices = np.array([3, 0, 4, -1])
    with h5py.File(path) as file:
        result = files.gather_file(file["x"] if as_dataset else f"{path}:x", indices)
        assert bits(result) == bits(table[indices])
        result = files.gather_file(
            file["scalar"] if as_dataset else f"{path}:scalar", np.array([0]), axis=-1
        )
        assert bits(result) == bits(file["scalar"][...].take([0], axis=-1))
    if not as_dataset and chunks is None:
        files.scatter_slices_file(f"{path}:x", np.array([1]), table[:1], f"{path}:x", in_place=True)
        table[1] = table[0]
        assert bits(get(f"{path}:x")) == bits(table)


@pytest.mark.frameworks
@pytest.mark.parametrize("chunks", ["auto", (1, 2), (7, 6), (100, 1)])
def test_boxes_that_cut_chunks(hdf5_path: Path, chunks: Any) -> None:
    pytest.importorskip("dask.array", reason=MISSING.format("dask"))
    from gatherum.dask import from_file

    for name in ("flat", "group/chunks", "some chunks"):
        result = from_file(f"{hdf5_path}:{name}", chunks=chunks)
        assert bits(np.asarray(result)) == bits(get(f"{hdf5_path}:{name}"))


@pytest.mark.parametrize("dtype", [">i4", "<i8"])
def test_a_scalar_dataset_keeps_its_type(tmp_path: Path, dtype: str) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["x"] = np.array(3, dtype)
    with h5py.File(tmp_path / "t.h5") as file:
        result = files.gather_file(TABLE, file["x"])
        assert bits(result) == bits(TABLE[3])
        result = files.scatter_slices_file(np.zeros(4, dtype), np.array([1]), file["x"])
        assert bits(result) == bits(np.array([0, 3, 0, 0], dtype))


def test_an_empty_dataset(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file["x"] = h5py.Empty("f4")
    line = "an empty dataset of HDF5 has no shape and no elements"
    assert refused(tmp_path, f"{path}:x") == f"t.h5:x: {line}"
    with h5py.File(path) as file, pytest.raises(ValueError, match=f"^the table: {line}$"):
        files.gather_file(file["x"], np.array([0]))


def test_links_are_not_followed_by_groups_either(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["there"] = h5py.ExternalLink("other.h5", "/")
        file["a/b"] = TABLE
    assert refused(tmp_path, f"{tmp_path}/t.h5:there/x") == (
        "t.h5:there/x: a link to 'there' is not followed"
    )
    assert np.array_equal(files.gather_file(f"{tmp_path}/t.h5", np.array([5])), TABLE[[5]])


@pytest.mark.parametrize("cut", [0, 7, 100, 1500, 4000])
def test_damaged_files(hdf5_path: Path, cut: int) -> None:
    raw = hdf5_path.read_bytes()
    hdf5_path.write_bytes(raw[:cut])
    line = refused(hdf5_path.parent, f"{hdf5_path}:flat")
    assert re.match(r"t\.h5:flat: (cannot be read as HDF5|its 2400 bytes reach past)", line)


def test_a_chunk_that_inflates_to_more_than_its_size(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (100, 6), "f4", chunks=(30, 4), compression="gzip")
        dataset[...] = TABLE
        dataset.id.write_direct_chunk((30, 4), zlib.compress(bytes(1 << 26), 9))
    where = f"{path}:x: cannot be read: a chunk "
    assert re.fullmatch(re.escape(where) + r"of 65\d{3} bytes for 480", refused_row(path, 50))
    with h5py.File(path, "a") as file:
        file["x"].id.write_direct_chunk((30, 4), zlib.compress(bytes(1 << 19), 9))
    files.gather_file(f"{path}:x", np.array([5]))  # which does not read the damaged part
    assert refused_row(path, 50) == f"{where}inflates to more than its 480 bytes"
    with h5py.File(path, "a") as file:
        file["x"].id.write_direct_chunk((30, 4), b"damaged")
    assert refused_row(path, 50).startswith(f"{where}of zlib is damaged: ")


def filtered(path: Path, table: Any, filters: str) -> None:
    """Write a dataset with a row per chunk, using filters that h5py's functions do not combine."""
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((1, table.shape[1]))
    for name in filters.split():
        if name == "deflate":
            settings.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (1,))
        else:
            getattr(settings, f"set_{name}")()
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(table.shape)
        dataset = h5py.h5d.create(file.id, b"x", h5py.h5t.py_create(table.dtype), space, settings)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, table)


@pytest.mark.parametrize(
    "filters",
    [
        "deflate",
        "shuffle deflate fletcher32",
        "fletcher32 deflate",
        "deflate deflate",
        "deflate shuffle deflate",
        "shuffle deflate fletcher32 shuffle deflate fletcher32",
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "f4", "V7"])
def test_filters_in_any_order(tmp_path: Path, filters: str, dtype: str) -> None:
    path = tmp_path / "t.h5"
    table = np.random.default_rng(0).integers(0, 256, (9, 840), np.uint8).view(dtype)
    filtered(path, table, filters)
    assert bits(files.gather_file(f"{path}:x", np.arange(9))) == bits(table)


def test_a_chunk_that_skips_some_filters(tmp_path: Path) -> None:
    path, table = tmp_path / "t.h5", np.arange(60).reshape(10, 6)
    filtered(path, table, "shuffle deflate fletcher32")
    with h5py.File(path, "a") as file:
        file["x"].id.write_direct_chunk((3, 0), zlib.compress(table[3].tobytes()), 0b101)
        file["x"].id.write_direct_chunk((4, 0), table[4].tobytes(), 0b111)
        assert np.array_equal(file["x"][...], table)
    assert bits(files.gather_file(f"{path}:x", np.arange(10))) == bits(table)


def test_a_bomb_in_a_chunk_that_is_deflated_twice(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    filtered(path, np.zeros((10, 100)), "deflate shuffle deflate")
    inner = zlib.compress(bytes(1 << 18), 9)
    inner += bytes(-len(inner) % 8)
    shuffled = np.frombuffer(inner, np.uint8).reshape(-1, 8).T.tobytes()
    with h5py.File(path, "a") as file:
        file["x"].id.write_direct_chunk((7, 0), zlib.compress(shuffled, 9))
    line = refused_row(path, 7)
    assert line == f"{path}:x: cannot be read: a chunk inflates to more than its 800 bytes"


def refused_row(path: Path, row: int) -> str:
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"{path}:x", np.array([row]))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("userblock", [0, 512, 4096])
@pytest.mark.parametrize("shape", [(4, 2), (0, 2), ()])
def test_an_unwritten_dataset_has_fill_values_and_no_storage(
    tmp_path: Path, userblock: int, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "t.h5"
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file.create_dataset("unwritten", shape, "i4", fillvalue=7)
        file["written"] = TABLE
        file.create_dataset("chunks", (4, 2), "i4", chunks=(2, 2), compression="gzip", fillvalue=7)
    before = path.read_bytes()
    none = np.zeros((1, 0), np.int64)  # which addresses the whole table
    assert np.array_equal(files.gather_nd_file(f"{path}:unwritten", none)[0], np.full(shape, 7))
    assert np.array_equal(files.gather_nd_file(f"{path}:chunks", none)[0], np.full((4, 2), 7))
    assert np.array_equal(files.gather_nd_file(f"{path}:written", none)[0], TABLE)
    updates = np.ones((1, *shape), np.int32)
    with pytest.raises(ValueError, match=r"t.h5:unwritten cannot be written, it has no storage"):
        files.scatter_nd_file(
            f"{path}:unwritten", none, updates, f"{path}:unwritten", in_place=True
        )
    assert path.read_bytes() == before
    files.scatter_nd_file(f"{path}:unwritten", none, updates, f"{tmp_path}/o.h5:x")
    assert np.array_equal(get(f"{tmp_path}/o.h5:x"), updates[0])
    files.scatter_nd_file(
        f"{path}:written", none, TABLE[None] + 1, f"{path}:written", in_place=True
    )
    assert np.array_equal(get(f"{path}:written"), TABLE + 1)


@pytest.mark.parametrize("userblock", [0, 512])
@pytest.mark.parametrize(
    ("place", "size", "line"),
    [
        (0, 2400, "its 2400 bytes begin at {0}, in HDF5's signature"),
        (1 << 40, 2400, "its 2400 bytes reach past the end of the file"),
        (None, 8, "HDF5 stores 8 bytes of its 2400"),
    ],
)
def test_a_place_is_not_believed(
    tmp_path: Path, userblock: int, place: int | None, size: int, line: str
) -> None:
    path = tmp_path / "t.h5"
    with h5py.File(path, "w", userblock_size=userblock, libver=("earliest", "latest")) as file:
        file["x"] = TABLE
        offset = file["x"].id.get_offset() - userblock
    raw, layout = path.read_bytes(), struct.pack("<QQ", offset, TABLE.nbytes)
    assert raw.count(layout) == 1
    claim = struct.pack("<QQ", offset if place is None else place, size)
    path.write_bytes(raw.replace(layout, claim))
    message = refused(tmp_path, f"{path}:x")
    said = {"t.h5:x: " + line.format(userblock), "t.h5:x: cannot be read as HDF5: "}
    assert any(message.startswith(start) for start in said)


def test_in_place_neighbours_stay(hdf5_path: Path) -> None:
    before = hdf5_path.read_bytes()
    indices = np.array([[3], [50]])
    flat = f"{hdf5_path}:flat"
    files.scatter_nd_file(flat, indices, np.full((2, 6), -1, "f4"), flat, in_place=True)
    expected = TABLE.copy()
    expected[[3, 50]] = -1
    assert np.array_equal(get(f"{hdf5_path}:flat"), expected)
    changed = sum(a != b for a, b in zip(before, hdf5_path.read_bytes(), strict=True))
    assert 0 < changed <= 2 * 24
    with pytest.raises(ValueError, match="cannot be written, it is stored in chunks"):
        files.scatter_nd_file(f"{hdf5_path}:group/chunks", indices, np.zeros((2, 6), "f4"),
                              f"{hdf5_path}:group/chunks", in_place=True)  # fmt: skip


def test_chunks_that_were_never_written_are_not_changed(tmp_path: Path) -> None:
    path = f"{tmp_path}/t.h5:x"
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("x", (4, 3), "f4", chunks=(2, 3))
    with pytest.raises(ValueError) as caught:
        files.scatter_nd_file(path, [[1]], np.ones((1, 3), "f4"), path, in_place=True)
    assert str(caught.value) == f"scatter_nd: {path} cannot be written, it is stored in chunks"


@pytest.mark.parametrize(
    "dtype", ["f4", "?", "c16", ">i2", "V5", "S3", "f2", "u1", "longdouble", "i4,f8"]
)
@pytest.mark.parametrize("count", [0, 5])
def test_new_files(tmp_path: Path, dtype: str, count: int) -> None:
    table = np.zeros((4, 3), dtype)
    table.view("u1")[...] = np.random.default_rng(0).integers(0, 2, table.view("u1").shape)
    indices = np.arange(count) % 4
    out = f"{tmp_path}/o.h5:a/b"
    files.gather_file(table, indices, out)
    with h5py.File(tmp_path / "o.h5", "r") as file:
        assert list(file) == ["a"]
        assert file["a/b"].dtype == table.dtype
        assert file["a/b"][...].tobytes() == table[indices].tobytes()
        assert not count or file["a/b"].id.get_offset() % 64 == 0
    again = files.gather_file(out, np.arange(count))
    assert (again.dtype, again.tobytes()) == (table.dtype, table[indices].tobytes())
    assert leftovers(tmp_path) == []


def test_a_header_does_not_depend_on_the_time() -> None:
    where = locate("/no/o.h5:a/b")
    headers = []
    for _ in range(2):
        headers.append(where.format.header(where, (9, 9), np.dtype("f4"), fortran=False))
        time.sleep(1.1)
    assert headers[0] == headers[1]


def test_outputs_that_are_refused(hdf5_path: Path) -> None:
    folder, indices = hdf5_path.parent, np.array([0])
    (folder / "text.h5").write_text("no HDF5 file at all")
    for out, line in (
        (
            f"{hdf5_path}:flat",
            f"gather: {hdf5_path} holds other datasets, which a new file would lose",
        ),
        (f"{folder}/o.h5", "gather: name the dataset to write after a colon: "),
        (f"{folder}/o.h5:a/../b", "gather: 'a/../b' is not the name of a dataset"),
        (f"{folder}/text.h5:a", f"gather: the output {folder}/text.h5:a is no HDF5 file: "),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(line)}"):
            files.gather_file(TABLE, indices, out)
    with pytest.raises(ValueError, match="cannot hold elements of dtype datetime64"):
        files.gather_file(np.zeros(3, "M8[s]"), indices, f"{folder}/o.h5:a")
    files.gather_file(TABLE, indices, f"{folder}/o.h5:a")
    files.gather_file(TABLE, np.array([5]), f"{folder}/o.h5:a")
    assert np.array_equal(get(f"{folder}/o.h5:a"), TABLE[[5]])
    assert leftovers(folder) == []


def test_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.h5")
    with pytest.raises(OSError, match="is a FIFO, not a regular file"):
        files.gather_file(f"{tmp_path}/t.h5:a", np.array([0]))


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "t", TABLE, "hdf5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    for table, out in ((path, None), (TABLE, f"{tmp_path}/o.h5:a")):
        with pytest.raises(ImportError) as caught:
            files.gather_file(table, np.array([0]), out)
        assert str(caught.value) == "HDF5 files need h5py: pip install h5py"


def test_texts_of_fixed_length_are_written_elsewhere_without_a_warning(tmp_path):
    with h5py.File(tmp_path / "texts.h5", "w") as file:
        file["names"] = np.array([b"ab", b"cde", b"f"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files.gather_file(f"{tmp_path}/texts.h5:names", np.array([2, 0]), out=tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == [b"f", b"ab"]
