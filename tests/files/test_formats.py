"""Files without a known suffix: their first bytes or ``--format`` determine the format."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, bits, get, put, refused
from gatherum import files
from gatherum.files.formats import FORMATS, locate

TABLE = np.arange(24, dtype=np.float32).reshape(8, 3)
ROWS = np.array([7, 2, 0, 7])
FORMS = ("npy", "fortran", "npz", "deflated", "safetensors", "hdf5", "hdf5 chunks")


def renamed(path: str, name: str) -> str:
    """Rename a file, and return the path of its array."""
    file, _, member = path.partition(":")
    other = Path(file).with_name(name)
    os.rename(file, other)
    return f"{other}:{member}" if member else str(other)


@pytest.mark.parametrize("name", ["t", "t.bin", "t.nc", "a:b", "t.npy.1", "a.h5.dat"])
@pytest.mark.parametrize("file_format", FORMS)
def test_content_decides_where_the_suffix_says_nothing(
    tmp_path: Path, file_format: str, name: str
) -> None:
    path = renamed(put(tmp_path, "t", TABLE, file_format), name)
    assert bits(files.gather_file(path, ROWS)) == bits(TABLE[ROWS])
    if file_format in ("npy", "safetensors", "hdf5"):
        files.scatter_slices_file(path, np.array([0]), TABLE[:1] + 9, path, in_place=True)
        assert files.gather_file(path, np.array([0])).tolist() == (TABLE[:1] + 9).tolist()


@pytest.mark.frameworks
@pytest.mark.parametrize("name", ["t.pq", "t.parq", "t.ipc", "t"])
@pytest.mark.parametrize("format_name", ["parquet", "feather", "stream"])
def test_columns(tmp_path: Path, format_name: str, name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason=MISSING.format("pyarrow"))
    table, path = pyarrow.table({"x": ROWS}), tmp_path / name
    if format_name == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif format_name == "feather":
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    assert files.gather_file(f"{path}:x", np.array([1, 0])).tolist() == [2, 7]
    assert files.gather_file(path, np.array([1, 0])).tolist() == [2, 7]


@pytest.mark.parametrize("userblock", [0, 512, 4096, 32768])
@pytest.mark.parametrize("name", ["t.h5ad", "t.he5", "t.hdf", "t.nc4", "t.mat"])
def test_files_of_hdf5_by_other_names(tmp_path: Path, name: str, userblock: int) -> None:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    path = tmp_path / name
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file["obs/x"] = TABLE
    assert bits(files.gather_file(f"{path}:obs/x", ROWS)) == bits(TABLE[ROWS])


@pytest.mark.frameworks
def test_a_file_of_netcdf(tmp_path: Path) -> None:
    package = pytest.importorskip("netCDF4", reason=MISSING.format("netCDF4"))
    for file_format in ("NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"):
        path = tmp_path / f"{file_format}.nc"
        with package.Dataset(path, "w", format=file_format) as file:
            file.createDimension("rows", 8)
            file.createDimension("columns", 3)
            file.createVariable("x", "f4", ("rows", "columns"))[...] = TABLE
        if file_format == "NETCDF4":
            assert bits(files.gather_file(f"{path}:x", ROWS)) == bits(TABLE[ROWS])
        else:
            assert refused(tmp_path, f"{path}:x") == (
                f"{path.name}: must be a file of netCDF 4, got netCDF 3; nccopy -k nc4 converts it"
            )


EXPECTED = "expected 'x.npy', 'x.npz:name', "
UNKNOWN = f"is not a known kind of file, by its name or its first bytes: {EXPECTED}"


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("t.hdf", b"\x0e\x03\x13\x01" + bytes(60), "t.hdf: must be a file of HDF5, got HDF4; "),
        ("t.txt", b"1 2 3", f"'t.txt' {UNKNOWN}"),
        ("t", b"", f"'t' {UNKNOWN}"),
        ("t", struct.pack("<Q", 1 << 40) + b"{}", f"'t' {UNKNOWN}"),
        ("t", b"PK\5\6" + bytes(18), "t: the file holds no arrays"),
        ("t", b"\x89HDF\r\n\x1a\n" + bytes(60), "t: cannot be read as HDF5: "),
        ("t", b"\xff\xff\xff\xff" + bytes(60), "t: cannot be read: "),
    ],
)  # fmt: skip
def test_invalid_files_raise_one_line(tmp_path: Path, name: str, content: bytes, line: str) -> None:
    for package in ("h5py", "pyarrow"):
        pytest.importorskip(package, reason=MISSING.format(package))
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path, str(tmp_path / name)).startswith(line)
    assert refused(tmp_path, f"{tmp_path / name}:x").replace(":x", "", 1).startswith(line)


def test_missing_files_and_directories_raise(tmp_path: Path) -> None:
    line = refused(tmp_path, str(tmp_path / "t.nc:x"))
    assert line.startswith(f"'t.nc:x' is not there, nor a known kind of file: {EXPECTED}")
    os.mkfifo(tmp_path / "t.nc")
    assert refused(tmp_path, str(tmp_path / "t.nc:x"), OSError) == (
        "t.nc: is a FIFO, not a regular file"
    )
    os.rename(put(tmp_path, "t", TABLE), tmp_path / "t.bin")
    assert refused(tmp_path, f"{tmp_path}/t.bin:x") == (
        "t.bin: expected 'x.npy' alone, got ':x' behind it"
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    cli = pytest.importorskip(
        "gatherum._command.cli", reason="install click: pip install click rich"
    )
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str]:
        status = cli.run(arguments)
        return status, capfd.readouterr().err

    return call


@pytest.mark.parametrize("file_format", FORMS)
def test_the_command_overrules_the_name(run: Any, file_format: str) -> None:
    name = {"fortran": "npy", "deflated": "npz", "hdf5 chunks": "hdf5"}.get(
        file_format, file_format
    )
    path = os.path.relpath(renamed(put(Path.cwd(), "t", TABLE, file_format), "t.parquet"))
    line = "gather", path, "--values", "7,2", "-o", "o.npy"
    assert run(*line)[0] == 1
    assert run(*line, "--format", name) == (0, "")
    assert np.load("o.npy").tolist() == TABLE[[7, 2]].tolist()
    if file_format in ("npy", "safetensors", "hdf5"):
        np.save("u.npy", TABLE[:1])
        line = "scatter-slices", path, "u.npy", "--values", "7", "--in-place", "--format", name
        assert run(*line) == (0, "")
        assert run("gather", path, "--values", "7", "-o", "o.npy", "--format", name) == (0, "")
        assert np.load("o.npy").tolist() == TABLE[:1].tolist()


def test_formats_that_the_command_does_not_know(run: Any) -> None:
    np.save("t.npy", TABLE)
    line = "gather", "t.npy", "--values", "0", "-o", "o.npy", "--format"
    names = ", ".join(file_format.name for file_format in FORMATS)
    status, error = run(*line, "csv")
    assert (status, f"must be one of {names}, got 'csv'." in error) == (2, True)
    assert run(*line, "hdf5")[0] == 1
    status, error = run(*line, "npy", "--workers", "2")
    assert (status, "--workers does not go with --format" in error) == (2, True)


def test_the_help_names_every_format() -> None:
    commands = pytest.importorskip(
        "gatherum._command.cli.files", reason="install click: pip install click rich"
    )
    option = next(each for each in commands.gather.params if each.name == "format")
    *names, last = (file_format.name for file_format in FORMATS)
    assert option.help.endswith(f": {', '.join(names)} or {last}.")


def test_a_url_whose_format_is_given() -> None:
    result = locate("https://user:secret@host/download?id=7#wte", "safetensors")
    assert (result.file, result.member, str(result)) == (
        "https://host/download", "wte", "https://host/download:wte",
    )  # fmt: skip
    assert locate("https://host/array/", "zarr").file == "https://host/array"
    with pytest.raises(ValueError, match=r"expected 'x\.npy' alone, got '#wte' behind it"):
        locate("https://host/download#wte", "npy")
    with pytest.raises(ValueError, match="is not a known kind of file: expected"):
        locate("https://host/download#wte")


@pytest.mark.parametrize(
    ("path", "name", "file"),
    [
        ("d.npy", "zarr", "d.npy"),
        ("a.zarr/x.npy", "zarr", "a.zarr/x.npy"),
        ("A.ZARR/x.h5/", "zarr", "A.ZARR/x.h5"),
        ("https://host/a.zarr/x.npy", "zarr", "https://host/a.zarr/x.npy"),
        ("a.zarr/x.npz:b", "npz", "a.zarr/x.npz"),
    ],
)
def test_directories_and_paths_in_zarr_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, name: str, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.npy").mkdir()
    location = locate(path)
    assert (location.format.name, location.file) == (name, file)


def test_outputs_keep_to_their_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"o.bin' names no kind of output: expected 'x.npy', "):
        files.gather_file(TABLE, ROWS, tmp_path / "o.bin")
    path = put(tmp_path, "t", TABLE)
    files.gather_file(path, ROWS, tmp_path / "o.npy")
    assert bits(get(f"{tmp_path}/o.npy")) == bits(TABLE[ROWS])
