"""A gather by tuples that address other dimensions of a file than its first ones."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import FORMATS, MISSING, bits, put, put_zarr
from gatherum import files

pytestmark = pytest.mark.usefixtures("quick_sync")
CUBE = np.random.default_rng(5).standard_normal((7, 10, 12)).astype(np.float32)
STATIONS = np.array([[9, 11], [0, 0], [3, -7], [9, 11]])
NAMES = ("time", "lat", "lon")


def expected(axes: tuple[int, ...], indices: Any = STATIONS, **attributes: Any) -> Any:
    """Return what Python gives for the transposed cube."""
    rest = [axis for axis in range(CUBE.ndim) if axis not in axes]
    return gatherum.gather_nd(CUBE.transpose(*axes, *rest), indices, **attributes)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("axes", [(1, 2), (2, 0), (0, 1), (1, 0)])
def test_any_dimensions_of_any_format(tmp_path: Path, form: str, axes: tuple[int, ...]) -> None:
    table = put(tmp_path, "t", CUBE, form)
    indices = STATIONS % [CUBE.shape[axis] for axis in axes]
    found = files.gather_nd_file(table, indices, axes=axes)
    want = expected(axes, indices)
    if form == "big-endian":
        found = found.astype(np.float32)
    assert bits(found) == bits(want)
    files.gather_nd_file(table, indices, tmp_path / "o.npy", axes=axes, memory="64KiB")
    assert np.load(tmp_path / "o.npy").tolist() == want.tolist()


@pytest.mark.parametrize("axes", [[2], [-1], (2, 1, 0), (0,)])
def test_as_many_dimensions_as_a_tuple_has_components(tmp_path: Path, axes: Any) -> None:
    indices = np.arange(3 * len(axes)).reshape(3, len(axes)) % 5
    whole = tuple(axis % 3 for axis in axes)
    found = files.gather_nd_file(put(tmp_path, "t", CUBE), indices, axes=axes)
    assert bits(found) == bits(expected(whole, indices))


def test_batch_dimensions_stay_in_front(tmp_path: Path) -> None:
    indices = np.arange(14).reshape(7, 2, 1) % 12
    table = put(tmp_path, "t", CUBE, "zarr3")
    found = files.gather_nd_file(table, indices, axes=[2], batch_dims=1)
    want = gatherum.gather_nd(CUBE.transpose(0, 2, 1), indices, batch_dims=1)
    assert bits(found) == bits(want)


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
        found = files.gather_nd_file(table, STATIONS, axes=("lat", "lon"))
        assert bits(found) == bits(expected((1, 2)))


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
        found = files.gather_nd_file(table, STATIONS, axes=("lat", "lon"))
        assert bits(found) == bits(expected((1, 2)))
    with pytest.raises(
        ValueError,
        match=r"t.zarr must have one dimension 'y'; its dimensions are 'time', 'lat', 'lon'$",
    ):
        files.gather_nd_file(tmp_path / "t.zarr", STATIONS, axes=("y", "x"))


@pytest.mark.parametrize(
    ("kind", "axes", "more", "why"),
    [
        (TypeError, (1.5, 2), {}, "`axes` must be an integer, got 1.5"),
        (ValueError, (1, 3), {}, "axes must be in [-3, 3), got 3"),
        (ValueError, (1, -2), {}, "axes must name each dimension once, got -2 twice"),
        (
            ValueError, (1,), {},
            "axes must name a dimension for each component of an index tuple, 2 here, got 1",
        ),
        (
            ValueError, (1, 0), {"batch_dims": 1},
            "axes must name no batch dimension, got 0 with batch_dims 1",
        ),
        (
            ValueError, ("lat", "lon"), {},
            "the table has no names of dimensions, got 'lat'; write axes as numbers",
        ),
    ],
)  # fmt: skip
def test_what_axes_must_be(kind: type[Exception], axes: Any, more: Any, why: str) -> None:
    with pytest.raises(kind, match=re.escape(f"gather_nd: {why}") + "$"):
        files.gather_nd_file(CUBE, STATIONS, axes=axes, **more)


@pytest.mark.parametrize("indices", [[[0, 99]], [[0, 0], [0, -13]]])
def test_an_index_outside_names_the_dimension_of_the_file(tmp_path: Path, indices: Any) -> None:
    with pytest.raises(IndexError, match=r"index \S+ is out of bounds for axis 2 of size 12"):
        files.gather_nd_file(put(tmp_path, "t", CUBE), indices, axes=(1, 2))
    found = files.gather_nd_file(CUBE, indices, axes=(1, 2), mode="fill", fill_value=np.nan)
    assert bits(found) == bits(expected((1, 2), indices, mode="fill", fill_value=np.nan))


@pytest.mark.parametrize("form", ["npy", "fortran", "zarr3"])
def test_only_what_is_asked_for_is_read(tmp_path: Path, form: str) -> None:
    cube = np.zeros((64, 256, 256), np.float32)
    cube[:, 3, 4] = np.arange(64)
    if form == "zarr3":
        table = put_zarr(str(tmp_path / "t.zarr"), cube, chunks=(16, 32, 32))
    else:
        table = put(tmp_path, "t", cube, form)
    out = tmp_path / "o.npy"
    stats = files.gather_nd_file(table, [[3, 4]], out, axes=(1, 2), memory="2MiB")
    assert np.load(out).tolist() == [list(range(64))]
    assert stats.bytes_read < cube.nbytes // 8


def test_the_command_takes_names_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click", reason="install the command line: pip install click rich")
    xarray = pytest.importorskip("xarray", reason=MISSING.format("xarray"))
    pytest.importorskip("netCDF4", reason=MISSING.format("netCDF4"))
    from gatherum import cli

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
         "gather_nd: cube.npy has no names of dimensions, got 'lat'; write --axes as numbers"),
        (["cube.npy", "--values", "0", "--axes", "0", "--workers", "1"], 2,
         "--workers does not go with --axes: workers read a table in the order of its file. See "
         "gatherum gather-nd --help."),
        (["cube.npy", "--values", "0,99", "--axes", "1,2"], 1,
         "gather_nd: index 99 is out of bounds for axis 2 of size 12 (indices[0, 1])"),
        (["cube.npy", "--values", "0,99", "--axes", "0,1", "--batch-dims", "1"], 1,
         "gather_nd: --axes must name no batch dimension, got 0 with --batch-dims 1"),
    ):  # fmt: skip
        assert cli.run(["gather-nd", *arguments, "-o", "o.npy"]) == status
        assert capfd.readouterr() == ("", f"gatherum: {why}\n")
