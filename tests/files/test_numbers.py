"""bfloat16 and float8 in files: moved without ml_dtypes, shown as numbers, converted."""

import struct
import subprocess
import sys

import numpy as np
import pytest

from files.storage import put
from gatherum import files
from gatherum._model import narrow_floats
from gatherum._model.dtype_rows import ROWS
from gatherum.files.formats import dtypes, npy
from gatherum.files.formats.safetensors import CODES, write_header

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes: pip install ml_dtypes")
NAMES = [name for name in narrow_floats.FORMATS if hasattr(ml_dtypes, name)]


@pytest.fixture(params=[True, False], ids=["ml_dtypes", "alone"])
def installed(request, monkeypatch):
    if not request.param:
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    return request.param


def put_numbers(path, array):
    """Write a tensor, with or without ml_dtypes."""
    start = write_header("a", array.shape, array.dtype)
    path.write_bytes(start + array.tobytes())
    return f"{path}:a"


def numbers(name, count=24):
    codes = np.arange(count).astype(narrow_floats.FORMATS[name].code_type)
    return codes.view(getattr(ml_dtypes, name)).reshape(-1, 3)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_has_its_number(name):
    codes = narrow_floats.FORMATS[name].code_type
    every = np.arange(1 << 8 * np.dtype(codes).itemsize).astype(codes)
    result, expected = (
        narrow_floats.widened(every, name),
        every.view(getattr(ml_dtypes, name)).astype("f4"),
    )
    known = ~np.isnan(expected)
    assert (np.isnan(result) == ~known).all()
    assert result[known].tobytes() == expected[known].tobytes()


def test_every_type_of_safetensors_has_a_format():
    assert {name for name in CODES if not ROWS[name].is_of_numpy} == set(narrow_floats.FORMATS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file_format", ["o.safetensors:x", "o.npy"])
def test_a_gather_moves_bytes(tmp_path, installed, name, file_format):
    table = numbers(name)
    path, indices = (
        put_numbers(tmp_path / "t.safetensors", table),
        put(tmp_path, "i", np.array([1, 7])),
    )
    files.gather_file(path, indices, f"{tmp_path}/{file_format}")
    file = tmp_path / file_format.partition(":")[0]
    assert file.read_bytes().endswith(table[[1, 7]].tobytes())
    if file_format == "o.npy":
        assert np.load(file).dtype == f"V{table.itemsize}"
    else:
        assert f'"{CODES[name]}"'.encode() in file.read_bytes()


@pytest.mark.parametrize("value", [0, -1.5, float("nan")])
def test_a_fill_value_is_rounded_as_with_ml_dtypes(tmp_path, installed, value):
    path = put_numbers(tmp_path / "t.safetensors", numbers("bfloat16"))
    result = files.gather_file(
        path, put(tmp_path, "i", np.array([99])), mode="fill", fill_value=value
    )
    assert result.tobytes() == np.full(3, value, ml_dtypes.bfloat16).tobytes()


@pytest.mark.parametrize("file_format", ["npy", "h5:x"])
def test_a_result_in_bytes_comes_back_as_updates(tmp_path, installed, file_format):
    if file_format != "npy":
        pytest.importorskip("h5py", reason="install h5py: pip install h5py")
    table = numbers("bfloat16")
    path, indices = (
        put_numbers(tmp_path / "t.safetensors", table),
        put(tmp_path, "i", np.array([1, 7])),
    )
    places = put(tmp_path, "p", np.array([0, 3]))
    picked, out = f"{tmp_path}/u.{file_format}", f"{tmp_path}/o.safetensors:a"
    files.gather_file(path, indices, picked)
    files.scatter_slices_file(path, places, picked, out)
    expected = table.copy()
    expected[[0, 3]] = table[[1, 7]]
    assert (tmp_path / "o.safetensors").read_bytes().endswith(expected.tobytes())
    if installed:
        files.scatter_slices_file(path, places, picked, out, reduction="add")
        expected[[0, 3]] = table[[0, 3]] + table[[1, 7]]
        assert (tmp_path / "o.safetensors").read_bytes().endswith(expected.tobytes())
    else:
        with pytest.raises(ImportError, match="scatter_slices: bfloat16 needs ml_dtypes: pip"):
            files.scatter_slices_file(path, places, picked, out, reduction="add")


def test_bytes_of_another_size_are_rejected_as_updates(tmp_path):
    path = put_numbers(tmp_path / "t.safetensors", numbers("bfloat16"))
    updates = put(tmp_path, "u", np.zeros((1, 3), "V4"))
    with pytest.raises(TypeError, match="must have the dtype of `data`, bfloat16, got"):
        files.scatter_slices_file(path, put(tmp_path, "i", np.array([1])), updates)


def test_zarr_has_no_such_numbers(tmp_path, installed):
    pytest.importorskip("zarr", reason="install zarr: pip install zarr")
    path = put_numbers(tmp_path / "t.safetensors", numbers("bfloat16"))
    with pytest.raises(ValueError, match="cannot hold elements of dtype bfloat16"):
        files.gather_file(path, put(tmp_path, "i", np.array([1])), tmp_path / "o.zarr")


def test_names_of_bytes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtype = dtypes.number_type("float8_e5m2")
    assert (dtype.kind, dtype.itemsize, dtypes.name_of(dtype)) == ("V", 1, "float8_e5m2")
    assert dtypes.is_added(dtype)
    assert not dtypes.is_bytes(dtype, 1)
    assert dtypes.is_bytes(np.dtype("V1"), 1)


# ------------------------------------------------------------------------------ the command


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    cli = pytest.importorskip(
        "gatherum._command.cli", reason="install click: pip install click rich"
    )
    monkeypatch.chdir(tmp_path)
    put_numbers(tmp_path / "t.safetensors", np.arange(12).astype(ml_dtypes.bfloat16).reshape(4, 3))
    np.save("table.npy", np.arange(12.0).reshape(4, 3))
    np.save("rows.npy", np.array([2, 0]))

    def call(line):
        status = cli.run(line.split())
        return status, *capfd.readouterr()

    return call


PICKED = "[[6. 7. 8.]\n [0. 1. 2.]]\n"


@pytest.mark.parametrize("cast", ["", " --cast float32", " --cast float8_e4m3fn"])
@pytest.mark.parametrize("out", ["o.npy", "o.safetensors:x", "o.h5:x", "o.zarr", "-"])
def test_print_shows_numbers_of_every_format(run, installed, out, cast):
    for file_format, package in (("h5", "h5py"), ("zarr", "zarr")):
        if file_format in out:
            pytest.importorskip(package, reason=f"install {package}: pip install {package}")
    status, text, _ = run(f"gather t.safetensors:a rows.npy -o {out} --print{cast}")
    if out == "o.zarr" and cast != " --cast float32":
        assert status == 1
    else:
        assert (status, text) == (0, PICKED)


def test_a_long_result_is_shown_as_numpy_shows_it(run):
    for shape in ((2000,), (3, 700), (2, 40, 41), (7, 1, 500)):
        array = np.arange(np.prod(shape)).reshape(shape)
        np.save("long.npy", array)
        every = ",".join(map(str, range(shape[0])))
        assert run(f"gather long.npy --values {every} -o o.npy --print") == (0, f"{array}\n", "")


def test_a_long_dimension_is_not_listed(tmp_path):
    from gatherum.files import casts

    start, size = npy.write_header((1 << 37,), np.dtype(np.int8)), 1 << 37
    with open(tmp_path / "long.npy", "wb") as file:  # which is sparse
        file.write(start + b"\1\0\2")
        file.seek(len(start) + size - 1)
        file.write(b"\3")
    shown = casts.array_text(tmp_path / "long.npy", np.dtype(np.int8), str(tmp_path))
    assert shown == "[1 0 2 ... 0 0 3]"


def test_cast_of_a_gather(run, installed, tmp_path):
    assert run("gather t.safetensors:a rows.npy -o o.npy --cast float32")[0] == 0
    assert np.load("o.npy").dtype == np.float32
    assert np.load("o.npy").tolist() == [[6, 7, 8], [0, 1, 2]]
    assert run("gather o.npy --values 0 -o b.safetensors:x --cast bfloat16")[0] == 0
    picked = struct.pack("<3H", 0x40C0, 0x40E0, 0x4100)
    assert (tmp_path / "b.safetensors").read_bytes().endswith(picked)


def test_cast_of_a_scatter_reduces_in_the_new_dtype(run, installed):
    run("gather t.safetensors:a rows.npy -o u.npy")
    scatter = "scatter-slices t.safetensors:a rows.npy u.npy --reduction add -o o.npy"
    assert run(f"{scatter} --cast float32")[0] == 0
    assert np.load("o.npy").dtype == np.float32
    assert np.load("o.npy").tolist() == [[0, 2, 4], [3, 4, 5], [12, 14, 16], [9, 10, 11]]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("gather table.npy rows.npy --cast int32", 1,
         "table.npy: values of dtype float64 do not become int32"),
        ("gather rows.npy rows.npy --mode clip --cast datetime64[s]", 1,
         "rows.npy: values of dtype int64 do not become datetime64[s]"),
        ("gather big.npy rows.npy --cast float16", 1, "has values that float16 cannot represent"),
        ("gather big.npy rows.npy --cast float8_e5m2", 1,
         "has values that float8_e5m2 cannot represent"),
        ("gather wide.npy rows.npy --cast int32", 1, "has values that int32 cannot represent"),
        ("gather table.npy rows.npy --cast float9", 2,
         "Invalid value for '--cast': must be a dtype such as float32, got 'float9'."),
        ("gather table.npy rows.npy --cast float32 --resume", 2,
         "--cast does not go with --resume."),
        ("gather table.npy rows.npy --cast float32 --workers 2", 2,
         "--cast does not go with --workers."),
    ],
)  # fmt: skip
def test_casts_that_are_refused(run, line, status, message):
    np.save("big.npy", np.full((3, 1), 1e9))
    np.save("wide.npy", np.full(3, 2**40))
    result = run(f"{line} -o o.npy")
    assert result[:2] == (status, "")
    assert message in result[2]


def test_not_in_place(run):
    line = "scatter-slices table.npy rows.npy table.npy --in-place --cast float32"
    assert "--cast does not go with --in-place." in run(line)[2]


def test_no_warning_without_ml_dtypes(tmp_path):
    put_numbers(tmp_path / "t.safetensors", numbers("bfloat16"))
    code = (
        "import sys, numpy; sys.modules['ml_dtypes'] = None\n"
        "from gatherum import files\n"
        "print(files.gather_file('t.safetensors:a', numpy.array([1])).dtype)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
