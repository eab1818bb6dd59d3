"""Packed numbers of netCDF and Zarr are decoded to the same bits as by xarray."""

import json
import pickle
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import MISSING, bits, put
from gatherum import files
from gatherum._model.errors.audience import for_command
from gatherum.files.arguments.operands import open_all
from gatherum.files.formats import locate
from gatherum.files.resources.resources import Resources

h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
pytestmark = pytest.mark.usefixtures("quick_sync")
F4, F8, I2 = np.float32, np.float64, np.int16
PACKED = {"scale_factor": F8(0.01), "add_offset": F8(273.15), "_FillValue": I2(-32767)}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "as of ERA5": ("i2", PACKED),
    "float32": ("i2", {"scale_factor": F4(0.01), "add_offset": F4(273.15)}),
    "float32 of int32": ("i4", {"scale_factor": F4(0.01), "add_offset": F4(273.15)}),
    "float32 of int64": ("i8", {"scale_factor": F4(0.01), "add_offset": F4(273.15)}),
    "a float32 scale": ("i2", {"scale_factor": F4(0.1)}),
    "a float64 scale": ("u1", {"scale_factor": F8(0.1), "_FillValue": np.uint8(255)}),
    "an integer scale": ("i2", {"scale_factor": np.int32(3)}),
    "a scale that overflows": ("i2", {"scale_factor": I2(3)}),
    "an offset alone": ("i1", {"add_offset": F4(0.3)}),
    "an integer offset": ("i2", {"add_offset": np.int32(1000), "scale_factor": F4(0.1)}),
    "mixed types": ("i2", {"add_offset": F8(0.3), "scale_factor": F4(0.1)}),
    "a fill value": ("i2", {"_FillValue": I2(-7)}),
    "a fill value of int32": ("i4", {"_FillValue": np.int32(-7)}),
    "a fill value of float32": ("f4", {"_FillValue": F4(1e20)}),
    "a fill value of big-endian float32": (">f4", {"_FillValue": F4(1e20)}),
    "NaN as a fill value": ("f4", {"_FillValue": F4(np.nan), "scale_factor": F8(0.1)}),
    "NaN as a fill value alone": ("f4", {"_FillValue": F4(np.nan)}),
    "a missing value": ("f4", {"missing_value": F4(-999)}),
    "missing values": ("i2", {"missing_value": np.array([-7, 3], I2), "_FillValue": I2(5)}),
    "another type of missing value": ("f4", {"missing_value": F8(0.1)}),
    "packed float32": ("f4", {"scale_factor": F8(0.1), "add_offset": F8(1.7)}),
    "packed float64": ("f8", {"scale_factor": F4(0.1), "_FillValue": F8(-999)}),
    "big-endian": (">i2", PACKED),
    "unsigned": ("i1", {"_Unsigned": "true"}),
    "unsigned and packed": (
        "i1",
        {"_Unsigned": "true", "_FillValue": np.int8(-1), "scale_factor": F4(0.5)},
    ),
    "unsigned and big-endian": (">i2", {"_Unsigned": "true", "_FillValue": I2(-7)}),
    "unsigned with a missing value": ("i1", {"_Unsigned": "true", "missing_value": np.int8(-1)}),
    "signed": ("u1", {"_Unsigned": "false", "_FillValue": np.uint8(249)}),
    "unsigned floats": ("f4", {"_Unsigned": "true", "scale_factor": F4(0.5)}),
    "NaN for integers": ("i2", {"_FillValue": F8(np.nan), "scale_factor": F4(0.5)}),
    "nothing to decode": ("i2", {"units": "K"}),
}
CHUNKS = {"contiguous": {}, "chunks": {"chunksizes": (2, 3, 4), "zlib": True}}


def stored(dtype: str) -> NDArray[Any]:
    """Return numbers of a dtype, some of which mark missing values."""
    stored_dtype = np.dtype(dtype)
    if stored_dtype.kind == "f":
        values = np.random.default_rng(0).normal(0, 300, (5, 6, 7))
    else:
        limits = np.iinfo(stored_dtype)
        values = np.random.default_rng(0).integers(
            limits.min, limits.max, (5, 6, 7), stored_dtype.newbyteorder("="), endpoint=True
        )
    array = values.astype(stored_dtype)
    marks = (-7, 3, 5, -1, 255, 249, -999, 1e20, 0.1, np.nan, -32767)
    fitting = [mark for mark in marks if stored_dtype.kind == "f" or is_in(mark, stored_dtype)]
    array.reshape(-1)[: 2 * len(fitting)] = np.array(fitting * 2).astype(stored_dtype)
    return array


def is_in(mark: float, stored_dtype: np.dtype[Any]) -> bool:
    return (
        not np.isnan(mark)
        and np.iinfo(stored_dtype).min <= mark <= np.iinfo(stored_dtype).max
        and mark % 1 == 0
    )


def put_netcdf(path: Path, array: NDArray[Any], attributes: dict[str, Any], **options: Any) -> str:
    """Write a netCDF variable with the numbers unchanged, and return its path."""
    package = pytest.importorskip("netCDF4", reason=MISSING.format("netCDF4"))
    attributes = dict(attributes)
    fill = attributes.pop("_FillValue", None)
    with package.Dataset(path, "w") as file:
        for name, size in zip("tyx", array.shape, strict=True):
            file.createDimension(name, size)
        if fill is not None and np.dtype(type(fill)) != array.dtype.newbyteorder("="):
            attributes["_FillValue"], fill = fill, None
        options |= {"fill_value": fill, "endian": "big" if array.dtype.str[0] == ">" else "little"}
        variable = file.createVariable("v", array.dtype, tuple("tyx"), **options)
        variable.set_auto_maskandscale(False)
        variable[...] = array
    with h5py.File(path, "a") as file:  # netCDF4 writes no fill value of another type
        for name, value in attributes.items():
            file["v"].attrs[name] = value
    return f"{path}:v"


def of_xarray(path: Path, *, decode: bool = True, **options: Any) -> NDArray[Any]:
    """Return the values that xarray reads, without decoding of times."""
    xarray = pytest.importorskip("xarray", reason=MISSING.format("xarray"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # about fill values that are NaN
        with xarray.open_dataset(
            path, mask_and_scale=decode, decode_times=False, **options
        ) as opened:
            result: NDArray[Any] = opened["v"].values
    return result


def same(actual: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Return True if arrays have the same bits; NaN payloads and byte orders may differ."""
    if actual.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return False
    pair = [one.astype(one.dtype.newbyteorder("=")) for one in (actual, expected)]
    if actual.dtype.kind == "f":
        for one in pair:
            one[np.isnan(one)] = np.nan
    return bits(pair[0]) == bits(pair[1])


@pytest.mark.frameworks
@pytest.mark.parametrize("layout", CHUNKS)
@pytest.mark.parametrize("case", CASES)
def test_netcdf_is_decoded_as_xarray_decodes_it(tmp_path: Path, case: str, layout: str) -> None:
    dtype, attributes = CASES[case]
    table = stored(dtype)
    path = put_netcdf(tmp_path / "cube.nc", table, attributes, **CHUNKS[layout])
    expected = of_xarray(tmp_path / "cube.nc", engine="netcdf4")
    assert same(files.gather_file(path, np.arange(5)), expected)
    raw = files.gather_file(path, np.arange(5), decode=False)
    assert bits(raw) == bits(table)


ZARR_CASES = {
    "as of ERA5": ("i2", {"scale_factor": 0.01, "add_offset": 273.15}, -32767),
    "a fill value": ("i2", {}, -7),
    "a fill value of float32": ("f4", {}, 0.1),
    "packed float32": ("f4", {"scale_factor": 0.1, "add_offset": 1.7}, 0.1),
    "NaN": ("f4", {"scale_factor": 0.1}, np.nan),
    "an integer scale": ("i2", {"scale_factor": 3}, None),
    "an integer offset": ("i2", {"add_offset": 3, "scale_factor": 0.1}, None),
    "a missing value": ("i4", {"missing_value": -7}, None),
    "unsigned": ("i1", {"_Unsigned": "true"}, -7),
    "nothing to decode": ("i2", {}, None),
}


@pytest.mark.frameworks
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("case", ZARR_CASES)
def test_zarr_is_decoded_as_xarray_decodes_it(tmp_path: Path, case: str, version: int) -> None:
    dtype, attributes, fill = ZARR_CASES[case]
    xarray = pytest.importorskip("xarray", reason=MISSING.format("xarray"))
    table = stored(dtype)
    mark = {} if fill is None else {"_FillValue": np.dtype(dtype).type(fill)}
    variable = xarray.Dataset({"v": (tuple("tyx"), table, attributes | mark)})
    options = {"zarr_format": version, "consolidated": False}
    variable.to_zarr(tmp_path / "cube.zarr", encoding={"v": {"chunks": (2, 3, 4)}}, **options)
    expected = of_xarray(tmp_path / "cube.zarr", engine="zarr", consolidated=False)
    path = f"{tmp_path}/cube.zarr/v"
    assert same(files.gather_file(path, np.arange(5)), expected)
    assert bits(files.gather_file(path, np.arange(5), decode=False)) == bits(table)


@pytest.mark.frameworks
@pytest.mark.parametrize("version", [2, 3])
def test_zarr_at_a_url(tmp_path: Path, version: int) -> None:
    fsspec = pytest.importorskip("fsspec", reason=MISSING.format("fsspec"))
    table, path = np.array([1047, -32767, 2], I2), str(tmp_path / "t.zarr")
    target = zarr.create_array(path, data=table, chunks=(2,), zarr_format=version)
    target.attrs.update({"scale_factor": 0.01, "missing_value": -32767, "_ARRAY_DIMENSIONS": ["t"]})
    store = fsspec.filesystem("memory")
    store.put(path, f"/packed/{version}.zarr", recursive=True)
    url = f"memory://packed/{version}.zarr"
    assert same(files.gather_file(url, [0, 1]), np.array([10.47, np.nan]))
    assert files.gather_file(url, [0, 1], decode=False).tolist() == [1047, -32767]
    if version == 2:
        assert files.gather_nd_file(url, [[0]], axes=("t",)).tolist() == [10.47]


@pytest.mark.parametrize("version", [2, 3])
def test_the_fill_value_of_a_plain_zarr_array_marks_nothing(tmp_path: Path, version: int) -> None:
    path, table = str(tmp_path / "t.zarr"), np.arange(6, dtype=np.int16)
    zarr.create_array(path, data=table, zarr_format=version, fill_value=3)
    assert bits(files.gather_file(path, np.arange(6))) == bits(table)


def test_zarr_filters_always_run(tmp_path: Path) -> None:
    numcodecs = pytest.importorskip("numcodecs", reason=MISSING.format("numcodecs"))
    path, table = str(tmp_path / "t.zarr"), np.arange(0, 6, 0.5, "f4")
    filters = [numcodecs.FixedScaleOffset(offset=1, scale=2, dtype="f4", astype="i2")]
    zarr.create_array(path, data=table, zarr_format=2, filters=filters)
    for decode in (True, False):
        assert bits(files.gather_file(path, [3, 0], decode=decode)) == bits(table[[3, 0]])


# ------------------------------------------------------------------ every entry point


@pytest.fixture(params=["contiguous", "chunks", "zarr"])
def cube(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, NDArray[Any], NDArray[Any]]:
    """Write a packed cube. Return its path, its numbers as stored, and decoded."""
    table = stored("i2")
    if request.param != "zarr":
        path = put_netcdf(tmp_path / "cube.nc", table, PACKED, **CHUNKS[request.param])
    else:
        path = str(tmp_path / "cube.zarr")
        target = zarr.create_array(path, data=table, chunks=(2, 3, 4), dimension_names=tuple("tyx"))
        target.attrs.update({name: value.item() for name, value in PACKED.items()})
    decoded = table * 0.01 + 273.15
    decoded[table == -32767] = np.nan
    assert np.isnan(decoded).any()
    return path, table, decoded


@pytest.mark.frameworks
def test_gathers(cube: Any, tmp_path: Path) -> None:
    path, table, decoded = cube
    tuples, elements = np.array([[3, 2], [0, 5]]), np.array([[[4] * 7]])
    for values, decode in ((decoded, {}), (decoded, {"decode": True}), (table, {"decode": False})):
        for memory in ("1GiB", "64KiB"):
            options = {"memory": memory, **decode}
            assert same(files.gather_file(path, [3, 0], axis=1, **options), values[:, [3, 0]])
            assert same(files.gather_nd_file(path, tuples, **options), values[[3, 0], [2, 5]])
            named = files.gather_nd_file(path, tuples, axes=("y", "x"), **options)
            assert same(named, values[:, [3, 0], [2, 5]].T)
            result = files.gather_elements_file(path, elements, **options)
            assert same(result, values[4:5, :1])
            assert [one.tolist() for one in files.rows(path, [[1]], **options)]
            (result,) = files.rows(path, [[4, 1]], **options)
            assert same(result, values[[4, 1]])
            files.gather_file(path, [4, 1], tmp_path / "o.npy", **options)
            assert same(np.load(tmp_path / "o.npy"), values[[4, 1]])
            sums = files.reduce_file(path, [1, 0, 1, 1, 0], func="max", **options)
            assert same(sums, np.stack([values[[1, 4]].max(0), values[[0, 2, 3]].max(0)]))
    assert same(
        files.gather_file(path, [9], mode="fill", fill_value=-1.5), np.full((1, 6, 7), -1.5)
    )
    with pytest.raises(ValueError, match="fill_value"):
        files.gather_file(path, [9], mode="fill", fill_value=-1.5, decode=False)


@pytest.mark.frameworks
def test_open_tables(cube: Any) -> None:
    path, table, decoded = cube
    for values, decode in ((decoded, True), (table, False)):
        for cache in ("0", "1MiB"):
            with files.open(path, cache=cache, decode=decode) as opened:
                assert (opened.shape, opened.dtype) == (values.shape, values.dtype)
                assert opened.nbytes == values.nbytes
                opened.prefetch([2, 4])
                for _ in range(2):
                    assert same(opened.gather([2, 4]), values[[2, 4]])
                out = np.empty((2, 6, 7), values.dtype)
                assert same(opened.gather([2, 4], out=out), values[[2, 4]])
                assert same(opened.gather([1], axis=2), values[:, :, [1]])
                assert same(opened.gather_nd([[1, 2, 3]]), values[[1], [2], [3]])
                assert same(opened.submit([3]).result(), values[[3]])
                assert same(next(opened.rows([[1, 0]])), values[[1, 0]])
                with pickle.loads(pickle.dumps(opened)) as other:
                    assert same(other.gather([2]), values[[2]])
                opened.reload()
                assert opened.dtype == values.dtype


@pytest.mark.frameworks
def test_a_scatter_is_of_stored_numbers(cube: Any, tmp_path: Path) -> None:
    path, table, _ = cube
    attributes = ", ".join(f"{name} {value}" for name, value in PACKED.items())
    line = (
        f"scatter_slices: {path} cannot be written, it is packed ({attributes}), and decoded "
        "values are not packed again; "
    )
    operands = path, [1], np.full((1, 6, 7), 5, np.int16)
    for output in ((), (tmp_path / "o.npy",)):
        with pytest.raises(ValueError) as caught:
            files.scatter_slices_file(*operands, *output)
        assert str(caught.value) == f"{line}decode=False takes the stored numbers"
    with for_command(), pytest.raises(ValueError) as caught:
        files.scatter_slices_file(*operands, path, in_place=True)
    assert str(caught.value) == f"{line}--no-decode takes the stored numbers"
    expected = table.copy()
    expected[1] = 5
    result = files.scatter_slices_file(*operands, decode=False)
    assert bits(result) == bits(expected)
    with files.open(path, decode=False) as opened:
        assert bits(opened.gather(np.arange(5))) == bits(table)
    if not _is_chunked(path):
        files.scatter_slices_file(*operands, path, in_place=True, decode=False)
        assert same(files.gather_file(path, [1]), np.full((1, 6, 7), 5 * 0.01 + 273.15))
    floats = np.zeros((2, 6, 7))
    result = files.scatter_slices_file(floats, np.arange(5) % 2, path, reduction="max")
    assert np.isnan(result).any()


def _is_chunked(path: str) -> bool:
    if not path.endswith(":v"):
        return False
    with h5py.File(path[:-2]) as file:
        return file["v"].chunks is not None


def test_indices_are_as_they_are_stored(tmp_path: Path) -> None:
    table = np.arange(300)
    for attributes, expected in (
        ({"_FillValue": np.int8(-1)}, [1, 299]),
        ({"_Unsigned": "true", "_FillValue": np.int8(-1)}, [1, 255]),
    ):
        with h5py.File(tmp_path / "i.h5", "w") as file:
            file["i"] = np.array([1, -1], np.int8)
            file["i"].attrs.update(attributes)
        assert files.gather_file(table, f"{tmp_path}/i.h5:i").tolist() == expected
    with h5py.File(tmp_path / "i.h5", "a") as file:
        file["i"].attrs["scale_factor"] = 2.0
    with pytest.raises(ValueError) as caught:
        files.gather_file(table, f"{tmp_path}/i.h5:i")
    assert str(caught.value) == (
        f"{tmp_path}/i.h5:i: the indices must be integers, got packed numbers (scale_factor, "
        "_FillValue, _Unsigned); decode=False takes the stored numbers"
    )
    assert files.gather_file(table, f"{tmp_path}/i.h5:i", decode=False).tolist() == [1, 299]


@pytest.mark.frameworks
def test_an_open_dataset_returns_the_values_of_its_package(tmp_path: Path) -> None:
    table = stored("i2")
    path = put_netcdf(tmp_path / "cube.nc", table, PACKED)
    with h5py.File(path[:-2]) as file:
        assert bits(files.gather_file(file["v"], [3])) == bits(table[[3]])


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("scale_factor", "0.01", "`scale_factor` must be a number, got '0.01'"),
        ("add_offset", [1, 2], "`add_offset` must be a number, got array([1, 2])"),
        ("_FillValue", "none", "`_FillValue` must be a number, or at most 100, got 'none'"),
    ],
)
def test_attributes_that_are_refused(tmp_path: Path, name: str, value: Any, line: str) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["v"] = np.arange(3)
        file["v"].attrs[name] = value
    path = f"{tmp_path}/t.h5:v"
    with pytest.raises(ValueError) as caught:
        files.gather_file(path, [0])
    assert str(caught.value) == f"{path}: {line}; decode=False takes the stored numbers"
    assert files.gather_file(path, [2], decode=False).tolist() == [2]


def test_numbers_in_attributes_that_no_dtype_has(tmp_path: Path) -> None:
    path = put(tmp_path, "t", np.arange(6), "zarr3")
    file = Path(path, "zarr.json")
    text = json.loads(file.read_text())
    file.write_text(json.dumps(text | {"attributes": {"scale_factor": 10**400}}))
    with pytest.raises(ValueError, match=r"t\.zarr: cannot be decoded \(scale_factor 1000"):
        files.gather_file(path, [0])


def test_decode_is_a_boolean(tmp_path: Path) -> None:
    path = put(tmp_path, "t", np.arange(6))
    for call in (
        lambda: files.gather_file(path, [0], decode=1),
        lambda: files.open(path, decode=1),
        lambda: files.rows(path, [[0]], decode=1),
        lambda: files.reduce_file(path, path, decode=1),
    ):
        with pytest.raises(TypeError, match="`decode` must be"):
            call()


@pytest.mark.frameworks
def test_direct_reads_are_of_stored_numbers(tmp_path: Path) -> None:
    path = put_netcdf(tmp_path / "cube.nc", stored("i2"), {"scale_factor": F8(0.5)})
    with pytest.raises(ValueError) as caught:
        files.open(path, direct=True)
    assert str(caught.value) == (
        f"open: direct=True is for numbers as they are stored, got {path}, which is packed "
        "(scale_factor 0.5); decode=False takes the stored numbers"
    )
    with files.open(path, direct=True, decode=False) as opened:
        assert bits(opened.gather([3])) == bits(stored("i2")[[3]])


def test_a_chunk_must_fit_when_it_is_decoded(tmp_path: Path) -> None:
    path = str(tmp_path / "t.zarr")
    target = zarr.create_array(path, shape=(1 << 16,), chunks=(1 << 14,), dtype="i1")
    target.attrs["scale_factor"] = 0.5
    files.gather_file(path, [0], memory="64KiB", decode=False)
    with pytest.raises(ValueError, match=r"one chunk has 147456 bytes, too much"):
        files.gather_file(path, [0], memory="64KiB")


# ------------------------------------------------------------------ other ways to run


def test_resumed_runs_keep_how_numbers_are_decoded(tmp_path: Path) -> None:
    """Decoded and stored float32 have the same dtype: the journal must distinguish them."""
    table = np.array([1, 2, 3], F4)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["v"] = table
        file["v"].attrs["_FillValue"] = F4(2)
    path = f"{tmp_path}/t.h5:v"
    states = []
    for decode in (True, False):
        with ExitStack() as stack:
            resources = Resources.of("gather", stack, decode=decode)
            states.append(open_all({"table": locate(path)}, resources)["table"].state())
    assert [state.pop("dtype")[:6] for state in states] == ["dtype("] * 2
    assert states[0] == {"decoded": True} | states[1]


@pytest.mark.parametrize("name", ["t.zarr", "t.h5:v"])
def test_decoded_values_replace_no_packed_array(tmp_path: Path, name: str) -> None:
    path, table = f"{tmp_path}/{name}", np.array([[5, 6], [7, 8]], I2)
    if name == "t.zarr":
        zarr.create_array(path, data=table).attrs["scale_factor"] = 0.5
    else:
        with h5py.File(tmp_path / "t.h5", "w") as file:
            file["v"] = table
            file["v"].attrs["scale_factor"] = 0.5
    with pytest.raises(ValueError) as caught:
        files.gather_file(np.zeros((2, 3)), [1, 0], path)
    assert str(caught.value) == (
        f"gather: {path} cannot be written, it is packed (scale_factor 0.5), and decoded values "
        "are not packed again; decode=False takes the stored numbers"
    )
    assert same(files.gather_file(path, [0, 1]), table / 2)
    files.gather_file(table, [1, 0], path, decode=False)
    assert bits(files.gather_file(path, [0, 1])) == bits(table[[1, 0]])


@pytest.mark.frameworks
def test_dask(cube: Any, tmp_path: Path) -> None:
    pytest.importorskip("dask.array", reason=MISSING.format("dask"))
    import gatherum.dask

    path, table, decoded = cube
    for values, decode in ((decoded, True), (table, False)):
        array = gatherum.dask.from_file(path, decode=decode)
        assert (array.shape, array.dtype) == (values.shape, values.dtype)
        assert same(np.asarray(array), values)
        assert same(np.asarray(gatherum.dask.from_file(path, (1, 4, 7), decode=decode)), values)
    names = {gatherum.dask.from_file(path, decode=decode).name for decode in (True, False)}
    assert len(names) == 2
    if path.endswith(".zarr"):
        operands = path, [1], np.full((1, 6, 7), 5, np.int16)
        with pytest.raises(ValueError, match=r"cannot be written, it is packed \(scale_factor 0"):
            gatherum.dask.scatter_slices_into(*operands)
        gatherum.dask.scatter_slices_into(*operands, decode=False)
        assert same(files.gather_file(path, [1]), np.full((1, 6, 7), 5 * 0.01 + 273.15))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command line, and return its output."""
    cli = pytest.importorskip("gatherum._command.cli", reason=MISSING.format("click"))

    def call(*arguments: str) -> str:
        cli.run(arguments)
        return "".join(capfd.readouterr())

    return call


@pytest.mark.frameworks
def test_the_command(cube: Any, tmp_path: Path, run: Callable[..., str]) -> None:
    path, table, decoded = cube
    out, groups = str(tmp_path / "o.npy"), str(tmp_path / "g.npy")
    np.save(groups, np.array([0, 0, 1, 1, 1]))
    for values, flags in ((decoded, ()), (table, ("--no-decode",))):
        call = "gather", path, "--values", "3,0", "-o", out, *flags
        run(*call)
        assert same(np.load(out), values[[3, 0]])
        assert run(*call, "--print").strip() == str(values[[3, 0]])
        run(*call, "--cast", "float64")
        assert same(np.load(out), values[[3, 0]].astype(F8))
        run("groups", path, groups, "-o", out, "--func", "max", *flags)
        assert same(np.load(out), np.stack([values[:2].max(0), values[2:].max(0)]))
    np.save(tmp_path / "u.npy", np.full((1, 6, 7), 5, np.int16))
    scatter = "scatter-slices", path, str(tmp_path / "u.npy"), "--values", "1", "-o", out
    assert run(*scatter).endswith("are not packed again; --no-decode takes the stored numbers\n")
    run(*scatter, "--no-decode")
    assert np.load(out)[1].tolist() == np.full((6, 7), 5).tolist()


@pytest.mark.frameworks
def test_a_run_on_a_cluster(cube: Any, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason=MISSING.format("distributed"))
    from gatherum.dask.graph.execute import at_once
    from gatherum.dask.outputs import ClusterCall

    path, table, decoded = cube
    out, axis = str(tmp_path / "o.zarr"), {"axis": 0}
    for values, decode in ((decoded, True), (table, False)):
        call = ClusterCall("gather", path, (np.array([3, 0]),), out, axis, decode=decode)
        call.run(at_once)
        assert same(zarr.open_array(out)[...], values[[3, 0]])
    updates = str(tmp_path / "u.npy")
    np.save(updates, np.full((1, 6, 7), 5, np.int16))
    call = ClusterCall("scatter_slices", path, (np.array([1]), updates), out, axis)
    with pytest.raises(ValueError, match=r"cannot be written, it is packed"):
        call.run(at_once)
    ClusterCall("scatter_slices", path, call.operands, out, axis, decode=False).run(at_once)
    assert zarr.open_array(out)[1].tolist() == np.full((6, 7), 5).tolist()
