"""Gathers by tuples that address other than the first dimensions of a file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import FORMATS, MISSING, bits, put, put_zarr
from gatherum import files
from gatherum.files.durable import build
from gatherum.files.strategies.windows import WindowPass

pytestmark = pytest.mark.usefixtures("quick_sync")
CUBE = np.random.default_rng(5).standard_normal((7, 10, 12)).astype(np.float32)
STATIONS = np.array([[9, 11], [0, 0], [3, -7], [9, 11]])
NAMES = ("time", "lat", "lon")


def expected(axes: tuple[int, ...], indices: Any = STATIONS, **attributes: Any) -> Any:
    """Return the result of Python's indexing of the transposed cube."""
    others = [axis for axis in range(CUBE.ndim) if axis not in axes]
    return gatherum.gather_nd(CUBE.transpose(*axes, *others), indices, **attributes)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("axes", [(1, 2), (2, 0), (0, 1), (1, 0)])
def test_any_dimensions_of_any_format(
    tmp_path: Path, file_format: str, axes: tuple[int, ...]
) -> None:
    table = put(tmp_path, "t", CUBE, file_format)
    indices = STATIONS % [CUBE.shape[axis] for axis in axes]
    result = files.gather_nd_file(table, indices, axes=axes)
    want = expected(axes, indices)
    if file_format == "big-endian":
        result = result.astype(np.float32)
    assert bits(result) == bits(want)
    files.gather_nd_file(table, indices, tmp_path / "o.npy", axes=axes, memory="64KiB")
    assert np.load(tmp_path / "o.npy").tolist() == want.tolist()


@pytest.mark.parametrize("axes", [[2], [-1], (2, 1, 0), (0,)])
def test_as_many_dimensions_as_a_tuple_has_components(tmp_path: Path, axes: Any) -> None:
    indices = np.arange(3 * len(axes)).reshape(3, len(axes)) % 5
    whole = tuple(axis % 3 for axis in axes)
    result = files.gather_nd_file(put(tmp_path, "t", CUBE), indices, axes=axes)
    assert bits(result) == bits(expected(whole, indices))


def test_batch_dimensions_stay_in_front(tmp_path: Path) -> None:
    indices = np.arange(14).reshape(7, 2, 1) % 12
    table = put(tmp_path, "t", CUBE, "zarr3")
    result = files.gather_nd_file(table, indices, axes=[2], batch_dims=1)
    want = gatherum.gather_nd(CUBE.transpose(0, 2, 1), indices, batch_dims=1)
    assert bits(result) == bits(want)


@pytest.mark.parametrize("chunked", [True, False])
def test_names_of_netcdf(tmp_path: Path, chunked: bool) -> None:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    with h5py.File(tmp_path / "t.nc", "w") as file:
        cube = file.create_dataset("t2m", data=CUBE, chunks=(3, 4, 5) if chunked else None)
        for place, name in enumerate(NAMES):
            file[name] = np.arange(CUBE.shape[place])
            file[name].make_scale(name)
            cube.dims[place].attach_scale(file[name])
    for table in (f"{tmp_path}/t.nc:t2m", h5py.File(tmp_path / "t.nc")["t2m"]):
        result = files.gather_nd_file(table, STATIONS, axes=("lat", "lon"))
        assert bits(result) == bits(expected((1, 2)))


@pytest.mark.parametrize("version", [2, 3])
def test_names_of_zarr(tmp_path: Path, version: int) -> None:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    names = {"dimension_names": NAMES} if version == 3 else {}
    array = zarr.create_array(
        tmp_path / "t.zarr", shape=CUBE.shape, chunks=(3, 4, 5), dtype="f4", zarr_format=version,
        **names,
    )  # fmt: skip
    array[...] = CUBE
    if version == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = NAMES
    for table in (tmp_path / "t.zarr", zarr.open_array(tmp_path / "t.zarr", mode="r")):
        result = files.gather_nd_file(table, STATIONS, axes=("lat", "lon"))
        assert bits(result) == bits(expected((1, 2)))
    with pytest.raises(
        ValueError,
        match=r"t.zarr must have one dimension 'y'; its dimensions are 'time', 'lat', 'lon'$",
    ):
        files.gather_nd_file(tmp_path / "t.zarr", STATIONS, axes=("y", "x"))


@pytest.mark.parametrize(
    ("error_type", "axes", "more", "why"),
    [
        (ValueError, (1, 3), {}, "`axes` must be in [-3, 3), got 3"),
        (ValueError, (1, -2), {}, "`axes` must name each dimension once, got -2 twice"),
        (
            ValueError, (1,), {},
            "`axes` must name a dimension for each component of an index tuple, 2 here, got 1",
        ),
        (
            ValueError, (1, 0), {"batch_dims": 1},
            "`axes` must name no batch dimension, got 0 with `batch_dims` 1",
        ),
        (ValueError, (1, 2), {"batch_dims": 5}, "`batch_dims` must be in [0, 2), got 5"),
        (ValueError, (1, 2), {"batch_dims": -1}, "`batch_dims` must be in [0, 2), got -1"),
        (TypeError, (1, 2), {"batch_dims": 0.5}, "`batch_dims` must be an integer, got 0.5"),
        (
            ValueError, ("lat", "lon"), {},
            "the table has no names of dimensions, got 'lat'; write `axes` as numbers",
        ),
    ],
)  # fmt: skip
def test_invalid_axes_raise(error_type: type[Exception], axes: Any, more: Any, why: str) -> None:
    with pytest.raises(error_type, match=re.escape(f"gather_nd: {why}") + "$"):
        files.gather_nd_file(CUBE, STATIONS, axes=axes, **more)


@pytest.mark.parametrize(
    ("axes", "description"),
    [
        *((axes, repr(axes)) for axes in (
            True, 1, 1.5, "lat", "12", b"lat", {1}, {1: 2}, (1.5, 2), (True, 2), ("", "lat"),
            (None, 2), ((1, 2),), object,
        )),
        (np.array([[1, 2]]), "an array of int64 (1, 2)"),
        (np.array([1.0, 2.0]), "an array of float64 (2,)"),
        (np.array(1), "an array of int64 ()"),
    ],
)  # fmt: skip
def test_axes_are_a_sequence_of_integers_or_names(axes: Any, description: str) -> None:
    message = "gather_nd: `axes` must be a sequence of integers or names of dimensions, got "
    with pytest.raises(TypeError, match=re.escape(message + description) + "$"):
        files.gather_nd_file(CUBE, STATIONS, axes=axes)


@pytest.mark.parametrize("axes", [[1, 2], range(1, 3), np.array([1, -1]), np.uint8([1, 2])])
def test_sequences_of_any_type(axes: Any) -> None:
    assert bits(files.gather_nd_file(CUBE, STATIONS, axes=axes)) == bits(expected((1, 2)))


@pytest.mark.frameworks
def test_names_of_an_array_with_labels() -> None:
    xarray = pytest.importorskip("xarray", reason=MISSING.format("xarray"))
    for cube in (CUBE, np.asfortranarray(CUBE), np.repeat(CUBE, 2, 2)[..., ::2]):
        labelled = xarray.DataArray(cube, dims=NAMES)
        result = files.gather_nd_file(labelled, STATIONS, axes=("lat", "lon"))
        assert bits(result) == bits(expected((1, 2)))
    with pytest.raises(ValueError, match=r"'y'; its dimensions are 'time', 'lat', 'lon'$"):
        files.gather_nd_file(labelled, STATIONS, axes=("y", "lon"))


@pytest.mark.frameworks
def test_names_of_coordinates_of_netcdf(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4", reason=MISSING.format("netCDF4"))
    square = np.arange(120.0).reshape(10, 12)
    with netcdf.Dataset(tmp_path / "t.nc", "w") as file:
        file.createDimension("lat", 10)
        file.createDimension("lon", 12)
        inner = file.createGroup("inner")
        inner.createDimension("y", 10)
        for group, name, dims in (
            (file, "lat", ("lat",)), (file, "lon", ("lat", "lon")), (inner, "y", ("y", "lon")),
        ):  # fmt: skip
            variable = group.createVariable(name, "f8", dims)
            variable[:] = square if len(dims) == 2 else square[:, 0]
    with netcdf.Dataset(tmp_path / "t.nc", "a") as file:
        file.createDimension("x", 12)  # the last of the numbers
        file.createVariable("x", "f8", ("x", "lat"))[:] = square.T
    for table, axes, want in (
        ("lat", ["lat"], square[:, 0]), ("lon", ["lon", "lat"], square.T),
        ("inner/y", ["lon", "y"], square.T), ("x", ["lat", "x"], square),
    ):  # fmt: skip
        indices = np.arange(10)[:, None] % [want.shape]
        result = files.gather_nd_file(f"{tmp_path}/t.nc:{table}", indices, axes=axes)
        assert bits(result) == bits(gatherum.gather_nd(want, indices))


def test_any_name_of_a_dimension_of_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    with h5py.File(tmp_path / "t.h5", "w") as file:
        cube = file.create_dataset("cube", data=CUBE)
        cube.dims[0].label = "m/s"
        for place, name in ((1, "lat"), (1, "deep/y"), (2, "lon")):
            file[name] = np.arange(CUBE.shape[place])
            file[name].make_scale()
            cube.dims[place].attach_scale(file[name])
        file["two"] = np.zeros((2, 2))
        file["two"].make_scale()
    table = f"{tmp_path}/t.h5:cube"
    for axes, numbers in ((("m/s", "y"), (0, 1)), (("lat", "lon"), (1, 2))):
        indices = STATIONS % [CUBE.shape[axis] for axis in numbers]
        result = files.gather_nd_file(table, indices, axes=axes)
        assert bits(result) == bits(expected(numbers, indices))
    with pytest.raises(ValueError, match=r"'s'; its dimensions are 'm/s', 'lat' or 'y', 'lon'$"):
        files.gather_nd_file(table, STATIONS, axes=("s", "y"))
    with pytest.raises(ValueError, match=r"t.h5:two has no names of dimensions, got 'two'"):
        files.gather_nd_file(f"{tmp_path}/t.h5:two", [[0]], axes=["two"])


@pytest.mark.parametrize(
    ("axes", "kept"), [((1, 2), True), ((-2, 2), True), ((2, 1), False), (None, False)]
)
def test_a_resume_has_the_same_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axes: Any, kept: bool
) -> None:
    table, indices, out = put(tmp_path, "t", CUBE), put(tmp_path, "i", STATIONS % 7), tmp_path / "o"
    monkeypatch.setattr(build, "SYNC_BYTES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(WindowPass, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            files.gather_nd_file(table, indices, f"{out}.npy", axes=(1, 2))
    if not kept:
        with pytest.raises(ValueError, match="cannot resume, attributes changed since it was star"):
            files.gather_nd_file(table, indices, f"{out}.npy", axes=axes, resume=True)
        return
    files.gather_nd_file(table, indices, f"{out}.npy", axes=axes, resume=True)
    assert bits(np.load(f"{out}.npy")) == bits(expected((1, 2), STATIONS % 7))


def interrupt(*_: Any) -> None:
    """Interrupt a run as Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("indices", [[[0, 99]], [[0, 0], [0, -13]]])
def test_an_index_outside_names_the_dimension_of_the_file(tmp_path: Path, indices: Any) -> None:
    with pytest.raises(IndexError, match=r"index \S+ is out of bounds for axis 2 of size 12"):
        files.gather_nd_file(put(tmp_path, "t", CUBE), indices, axes=(1, 2))
    result = files.gather_nd_file(CUBE, indices, axes=(1, 2), mode="fill", fill_value=np.nan)
    assert bits(result) == bits(expected((1, 2), indices, mode="fill", fill_value=np.nan))


@pytest.mark.parametrize("file_format", ["npy", "fortran", "zarr3"])
def test_only_requested_parts_are_read(tmp_path: Path, file_format: str) -> None:
    cube = np.zeros((64, 256, 256), np.float32)
    cube[:, 3, 4] = np.arange(64)
    if file_format == "zarr3":
        table = put_zarr(str(tmp_path / "t.zarr"), cube, chunks=(16, 32, 32))
    else:
        table = put(tmp_path, "t", cube, file_format)
    out = tmp_path / "o.npy"
    stats = files.gather_nd_file(table, [[3, 4]], out, axes=(1, 2), memory="2MiB")
    assert np.load(out).tolist() == [list(range(64))]
    assert stats.bytes_read < cube.nbytes // 8


@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
def test_chunks_that_many_windows_need_are_read_once(tmp_path: Path, file_format: str) -> None:
    rng = np.random.default_rng(3)
    cube = rng.random((64, 256, 256), np.float32)
    if file_format == "zarr3":
        table = put_zarr(str(tmp_path / "t.zarr"), cube, chunks=(16, 32, 32))
    else:
        table = put(tmp_path, "t", cube, file_format)
    stations = rng.integers(0, 256, (4096, 2))  # of four windows, each with stations in all chunks
    out = tmp_path / "o.npy"
    stats = files.gather_nd_file(table, stations, out, axes=(1, 2), memory="1MiB")
    result = np.load(out)
    assert bits(result) == bits(cube[:, stations[:, 0], stations[:, 1]].T)
    assert stats.bytes_read < 1.5 * cube.nbytes


@pytest.mark.frameworks
def test_the_command_takes_names_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click", reason="install the command line: pip install click rich")
    xarray = pytest.importorskip("xarray", reason=MISSING.format("xarray"))
    pytest.importorskip("netCDF4", reason=MISSING.format("netCDF4"))
    from gatherum._command import cli

    monkeypatch.chdir(tmp_path)
    cube = xarray.DataArray(CUBE, dims=NAMES, name="t2m")
    cube.to_netcdf("cube.nc", engine="netcdf4")
    np.save("cube.npy", CUBE)
    Path("stations.csv").write_text("lat,lon\n9,11\n0,0\n3,-7\n9,11\n")
    labelled = xarray.DataArray(STATIONS, dims=("station", "place"))
    want = gatherum.gather_nd(cube.transpose("lat", "lon", ...), labelled).values
    for table, axes in (("cube.nc:t2m", "lat,lon"), ("cube.npy", "1,2"), ("cube.npy", "-2, 2")):
        assert cli.run(["gather-nd", table, "stations.csv", "-o", "o.npy", "--axes", axes]) == 0
        assert bits(np.load("o.npy")) == bits(want)
    for one in ("--values", "9,11"), ("one.csv",):  # a line is a tuple
        Path("one.csv").write_text("9,11\n")
        assert cli.run(["gather-nd", "cube.nc:t2m", *one, "-o", "o.npy", "--axes", "lat,lon"]) == 0
        assert bits(np.load("o.npy")) == bits(want[:1])
    capfd.readouterr()
    for arguments, status, why in (
        (["cube.npy", "--values", "0", "--axes", "lat,"], 2,
         "Invalid value for '--axes': must be dimensions such as 1,2 or lat,lon, got 'lat,'. See "
         "gatherum gather-nd --help."),
        (["cube.npy", "--values", "0", "--axes", "lat"], 1,
         "gather-nd: cube.npy has no names of dimensions, got 'lat'; write --axes as numbers"),
        (["cube.npy", "--values", "0", "--axes", "0", "--workers", "1"], 2,
         "--workers does not go with --axes: workers read a table in the order of its file. See "
         "gatherum gather-nd --help."),
        (["cube.npy", "--values", "0,99", "--axes", "1,2"], 1,
         "gather-nd: index 99 is out of bounds for axis 2 of size 12 (indices[0, 1])"),
        (["cube.npy", "--values", "0,99", "--axes", "1,2", "--batch-dims", "5"], 1,
         "gather-nd: `batch_dims` must be in [0, 2), got 5"),
        (["cube.npy", "--values", "0,99", "--axes", "0,1", "--batch-dims", "1"], 1,
         "gather-nd: --axes must name no batch dimension, got 0 with --batch-dims 1"),
    ):  # fmt: skip
        assert cli.run(["gather-nd", *arguments, "-o", "o.npy"]) == status
        assert capfd.readouterr() == ("", f"gatherum: {why}\n")
