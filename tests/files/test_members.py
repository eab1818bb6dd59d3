"""Errors name the members, filters and grids of files without a readable array."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, bits, put, refused
from gatherum import files
from gatherum._model.errors.audience import for_command
from gatherum.files.formats.hdf5_chunks import other_filter

h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
pytestmark = pytest.mark.usefixtures("quick_sync")
TABLE = np.arange(60, dtype=np.int32).reshape(10, 6)
PART = "[indptr[i]:indptr[i + 1]]"
SPARSE = {
    "csr_matrix": "; it is a sparse matrix (csr_matrix), whose row i has the values "
    f"data{PART} in the columns indices{PART}",
    "csc_matrix": "; it is a sparse matrix (csc_matrix), whose column i has the values "
    f"data{PART} in the rows indices{PART}",
    "dataframe": "",
    "": "",
}


@pytest.mark.parametrize("encoding", SPARSE)
def test_a_group_of_hdf5_lists_its_datasets(tmp_path: Path, encoding: str) -> None:
    with h5py.File(tmp_path / "c.h5ad", "w") as file:
        for name in ("data", "indices", "indptr", "more/deeper"):
            file[f"layers/X/{name}"] = np.arange(3)
        file["layers/X/link"] = h5py.SoftLink("/layers")
        if encoding:
            file["layers/X"].attrs["encoding-type"] = encoding
    assert refused(tmp_path, f"{tmp_path}/c.h5ad:layers/X") == (
        "c.h5ad:layers/X: expected a dataset, got a group that holds 'layers/X/data', "
        f"'layers/X/indices', 'layers/X/indptr', 'layers/X/more/deeper'{SPARSE[encoding]}"
    )


def test_a_group_with_many_members_and_one_without(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for number in range(12):
            file[f"many/{number:02}"] = np.arange(3)
        file.create_group("none").attrs["encoding-type"] = np.arange(3)
    first = ", ".join(f"'many/{number:02}'" for number in range(8))
    assert refused(tmp_path, f"{tmp_path}/t.h5:many") == (
        f"t.h5:many: expected a dataset, got a group that holds {first}, …"
    )
    line = "t.h5:none: expected a dataset, got a group without datasets"
    assert refused(tmp_path, f"{tmp_path}/t.h5:none") == line


@pytest.mark.parametrize("encoding", SPARSE)
@pytest.mark.parametrize("version", [2, 3])
def test_a_group_of_zarr_lists_its_arrays(tmp_path: Path, version: int, encoding: str) -> None:
    group = zarr.open_group(tmp_path / "c.zarr", zarr_format=version).create_group("X")
    for name in ("data", "indices", "more/deeper"):
        group.create_array(name, data=np.arange(3))
    if encoding:
        group.attrs["encoding-type"] = encoding
    assert refused(tmp_path, f"{tmp_path}/c.zarr/X") == (
        "c.zarr/X: expected an array, got a group that holds 'data', 'indices', 'more/deeper'"
        f"{SPARSE[encoding]}"
    )
    zarr.open_group(tmp_path / "none.zarr", zarr_format=version)
    line = "none.zarr: expected an array, got a group without arrays"
    assert refused(tmp_path, f"{tmp_path}/none.zarr") == line


def test_a_damaged_array_in_a_group_of_zarr(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "t.zarr")
    for name in ("a", "b"):
        group.create_array(name, data=np.arange(3))
    (tmp_path / "t.zarr/b/zarr.json").write_text("{")
    line = "t.zarr: expected an array, got a group that holds 'a'"
    assert refused(tmp_path, f"{tmp_path}/t.zarr") == line


@pytest.mark.frameworks
def test_a_group_at_a_url_lists_the_arrays_in_its_metadata(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason=MISSING.format("fsspec"))
    group = zarr.open_group(tmp_path / "t.zarr")
    group.create_array("a", data=np.arange(3))
    group.create_group("inner").create_array("b", data=np.arange(3))
    metadata = json.loads((tmp_path / "t.zarr/zarr.json").read_text())
    nodes = {name: {"node_type": node_type} for name, node_type in (("a", "array"), ("i", "group"))}
    store = fsspec.filesystem("memory")
    for known, members in (
        (nodes, "that holds 'a'"),
        (None, "without arrays"),
        (3, "without arrays"),
    ):
        metadata["consolidated_metadata"] = {"metadata": known}
        store.pipe("/members/t.zarr/zarr.json", json.dumps(metadata).encode())
        line = refused(tmp_path, "memory://members/t.zarr")
        assert line == f"memory://members/t.zarr: expected an array, got a group {members}"


# ------------------------------------------------------------------ filters

FILTERED: dict[str, tuple[dict[str, Any], str]] = {
    "lzf": ({"compression": "lzf"}, "lzf (32000)"),
    "scaleoffset": ({"scaleoffset": 0}, "scaleoffset (6)"),
    "szip": ({"compression": "szip"}, "szip (4)"),
}


@pytest.mark.parametrize("filter_name", FILTERED)
def test_a_filter_is_named_and_an_open_dataset_is_read(tmp_path: Path, filter_name: str) -> None:
    settings, named = FILTERED[filter_name]
    if filter_name == "szip" and not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("this HDF5 has no szip")
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=TABLE, chunks=(5, 6), **settings)
    assert refused(tmp_path, f"{path}:x") == (
        f"t.h5:x: HDF5's filter {named} is not supported, because its output has no size "
        "limit; the supported filters are deflate, shuffle and fletcher32; h5py runs it: "
        "pass an open dataset, as h5py.File(file)[name]"
    )
    with h5py.File(path) as file:
        assert bits(files.gather_file(file["x"], [7, 2])) == bits(TABLE[[7, 2]])
    with for_command():
        assert refused(tmp_path, f"{path}:x").endswith("deflate, shuffle and fletcher32")


@pytest.mark.parametrize(
    ("number", "named"),
    [
        (5, "nbit (5)"),
        (307, "bzip2 (307)"),
        (32001, "blosc (32001)"),
        (32004, "lz4 (32004)"),
        (32008, "bitshuffle (32008)"),
        (32015, "zstd (32015)"),
        (32026, "blosc2 (32026)"),
    ],
)
def test_filters_that_h5py_has_not_are_named(number: int, named: str) -> None:
    """The filters are not used on a file: a plugin of another package may check their settings."""
    plugin = "" if h5py.h5z.filter_avail(number) else ", with a plugin such as hdf5plugin"
    assert str(other_filter("t.h5:x", number)) == (
        f"t.h5:x: HDF5's filter {named} is not supported, because its output has no size "
        f"limit; the supported filters are deflate, shuffle and fletcher32; h5py runs "
        f"it{plugin}: pass an open dataset, as h5py.File(file)[name]"
    )


def test_an_unknown_filter_raises(tmp_path: Path) -> None:
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((5, 6))
    settings.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, ())
    with h5py.File(tmp_path / "t.h5", "w") as file:
        space, h5_type = h5py.h5s.create_simple(TABLE.shape), h5py.h5t.py_create(TABLE.dtype)
        h5py.h5d.create(file.id, b"x", h5_type, space, settings)
    line = refused(tmp_path, f"{tmp_path}/t.h5:x")
    assert line == str(other_filter("t.h5:x", 40000))
    assert line.startswith("t.h5:x: HDF5's filter 40000 is not supported")


# ------------------------------------------------------------------ without storage


def test_a_dataset_without_storage_is_changed_once_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (4, 2), "i4", fillvalue=7)
    call = f"{path}:x", [1], np.int32([[8, 9]]), f"{path}:x"
    line = (
        "scatter_slices: {}:x cannot be written, it has no storage yet, as nothing was written to "
        "it"
    )
    with pytest.raises(ValueError) as caught:
        files.scatter_slices_file(*call, in_place=True)
    advice = "; write it once with h5py, as by dataset[...] = dataset[...]"
    assert str(caught.value) == line.format(path) + advice
    with for_command(), pytest.raises(ValueError) as caught:
        files.scatter_slices_file(*call, in_place=True)
    assert str(caught.value) == line.format(path)
    with h5py.File(path, "a") as file:
        file["x"][...] = file["x"][...]
    files.scatter_slices_file(*call, in_place=True)
    with h5py.File(path) as file:
        assert file["x"][...].tolist() == [[7, 7], [8, 9], [7, 7], [7, 7]]


# ------------------------------------------------------------------ rectilinear grids


@pytest.mark.parametrize("advised", [True, False])
def test_a_rectilinear_grid_is_named(tmp_path: Path, advised: bool) -> None:
    path = put(tmp_path, "t", TABLE, "zarr3")
    file = Path(path, "zarr.json")
    shapes = {"kind": "inline", "chunk_shapes": [[1, [3, 3]], 6]}
    grid = {"name": "rectilinear", "configuration": shapes}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chunk_grid": grid}))
    advice = "; zarr 3.2 reads it: pass an open array, as zarr.open_array(path)"
    line = (
        "t.zarr: its chunk grid is 'rectilinear', whose chunks or shards differ in size; expected "
        "'regular'"
    )
    if advised:
        assert refused(tmp_path, path) == line + advice
    else:
        with for_command():
            assert refused(tmp_path, path) == line


@pytest.mark.parametrize("file_format", ["zarr3", "shards"])
def test_an_open_array_of_a_rectilinear_grid_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """zarr 3.2 raises for sizes that are not all the same; 3.1 lacks them."""
    array = zarr.open_array(put(tmp_path, "t", TABLE, file_format), mode="r")

    def refuse(_: Any) -> None:
        raise NotImplementedError("only defined for regular chunk grids")

    if file_format == "zarr3":
        monkeypatch.setattr(zarr.Array, "chunks", property(refuse))
    else:
        monkeypatch.setattr(zarr.Array, "shards", property(refuse))
    sizes = property(lambda _: ((1, 3, 6), (2, 4)))
    monkeypatch.setattr(zarr.Array, "write_chunk_sizes", sizes, raising=False)
    assert bits(files.gather_file(array, [7, 0, 2])) == bits(TABLE[[7, 0, 2]])
    assert bits(files.gather_nd_file(array, [[3, 5], [9, 0]])) == bits(TABLE[[3, 9], [5, 0]])
