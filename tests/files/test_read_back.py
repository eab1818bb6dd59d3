"""Every dtype in every format: the format's own package reads the written values.

Bits are equal, or the call raises a one-line error before it writes an output.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from files.kinds import DTYPES, filled, values
from files.storage import MISSING, get, leftovers, put
from gatherum import files

pytestmark = pytest.mark.usefixtures("quick_sync")
PICKED = np.array([4, 0, 0])
NAMES = {"npy": "o.npy", "safetensors": "o.safetensors:t", "hdf5": "o.h5:t", "zarr3": "o.zarr"}
KINDS = {"npy": "a .npy file", "safetensors": "a safetensors file", "hdf5": "HDF5",
         "zarr3": "a Zarr array"}  # fmt: skip
ADDED = {name for name, dtype in DTYPES.items() if dtype.isbuiltin == 2}
LONG = {name for name, dtype in DTYPES.items() if dtype.char in "gG"}
CODES = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
         "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
         "float8_e8m0fnu": "F8_E8M0"}  # fmt: skip
REFUSED = {
    "npy": {"swapped bfloat16", *(f"records: {name}" for name in (
        "out of order", "overlapping", "empty"))},
    "safetensors": {
        name for name, dtype in DTYPES.items()
        if name not in CODES and (dtype.kind not in "biufc" or name[0] == ">"
                                  or name in ADDED | LONG | {"<c16"})
    },
    "hdf5": {
        "swapped bfloat16", *(name for name, dtype in DTYPES.items() if dtype.kind in "mMU"),
        *(f"records: {name}" for name in ("both orders", "overlapping", "texts",
                                          "titles", "empty")),
    },
    "zarr3": {
        "<M8", *ADDED, *LONG,
        *(f"records: {name}" for name in ("subarrays", "arrays of records", "titles", "longdouble",
                                          "bytes", "added", "empty")),
    },
}  # fmt: skip


def read(path: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read an array by its format's package. Return types that NumPy lacks as bytes."""
    if ".safetensors:" not in path or dtype.name not in CODES:
        return get(path)
    package = pytest.importorskip("safetensors", reason=MISSING.format("safetensors"))
    ((_, result),) = package.deserialize(Path(path.split(":", 1)[0]).read_bytes())
    assert result["dtype"] == CODES[dtype.name]
    return np.frombuffer(result["data"], f"V{dtype.itemsize}").reshape(result["shape"])


def stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that NumPy without ml_dtypes reads for a dtype."""
    if dtype.names is None:
        return np.dtype(f"V{dtype.itemsize}") if dtype.isbuiltin == 2 else dtype
    if any(dtype[name].isbuiltin == 2 for name in dtype.names):
        return np.dtype([(name, stored(dtype[name])) for name in dtype.names])
    return dtype


def check(path: str, expected: NDArray[Any]) -> None:
    """Compare the written array with the results of its format's package and of gatherum."""
    dtype = expected.dtype
    result, own = read(path, dtype), files.gather_file(path, np.arange(len(expected)))
    if path.endswith(".zarr"):  # which has one byte order and no padding
        assert values(result) == values(own) == values(expected)
        return
    assert (result.shape, result.dtype) == (expected.shape, stored(dtype))
    assert result.tobytes() == own.tobytes() == expected.tobytes()
    assert own.dtype == (dtype if ".safetensors:" in path else stored(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("file_format", NAMES)
def test_gathered_scattered_and_changed_in_place(
    tmp_path: Path, file_format: str, name: str
) -> None:
    dtype, out = DTYPES[name], os.fspath(tmp_path / NAMES[file_format])
    table, updates = (filled(dtype, shape, seed) for seed, shape in enumerate([(6, 2), (3, 2)]))
    copies = out.replace("o.", "copy.")
    if name in REFUSED[file_format]:
        line = f"{KINDS[file_format]} cannot hold elements of dtype {dtype}"
        line = line if dtype.itemsize else "elements of dtype [] have no bytes to write"
        for call, operands in (
            (files.gather_file, [out]),
            (files.scatter_slices_file, [updates, out]),
        ):
            with pytest.raises(ValueError) as caught:
                call(table, PICKED, *operands)
            assert str(caught.value) == f"{out}: {line}"
            assert os.listdir(tmp_path) == []
        return
    files.gather_file(table, PICKED, out)
    check(out, bitwise(raw(table), PICKED, table))
    files.scatter_slices_file(table, PICKED, updates, copies)
    check(copies, bitwise(np.concatenate([raw(table), raw(updates)]), [8, 1, 2, 3, 6, 5], table))
    own = files.gather_file(out, np.arange(3))
    files.scatter_slices_file(out, np.array([1]), own[:1], out, in_place=True)
    check(out, bitwise(raw(table), [4, 4, 0], table))
    assert not leftovers(tmp_path)


def raw(array: NDArray[Any]) -> NDArray[Any]:
    """Return rows as bytes: NumPy's own indexing omits padding."""
    return array.reshape(len(array), -1).view(f"V{array.nbytes // len(array)}")


def bitwise(rows: NDArray[Any], picked: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Return rows as an array with the item type of another array."""
    return rows[picked].view(like.dtype).reshape(len(picked), *like.shape[1:])


@pytest.mark.parametrize("name", ["<f4", ">f4", "records: big-endian", "records: padded"])
@pytest.mark.parametrize("file_format", NAMES)
def test_rows_scalars_and_empty_arrays(tmp_path: Path, file_format: str, name: str) -> None:
    if name in REFUSED[file_format]:
        return
    if file_format == "zarr3" and name != "<f4":
        pytest.importorskip("zarr", "3.1", reason="older ones have no such dtypes")
    table, out = filled(DTYPES[name], (6,), 0), os.fspath(tmp_path / NAMES[file_format])
    files.gather_file(table, PICKED, out)
    assert values(get(out)) == values(table[PICKED])
    files.gather_nd_file(table, np.array([3]), out)
    assert values(get(out).reshape(())) == values(table[3:4].reshape(()))
    files.gather_file(table, np.zeros((2, 0), np.int64), out.replace("o.", "empty."))
    assert values(get(out.replace("o.", "empty."))) == values(np.zeros((2, 0), table.dtype))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.itemsize])
@pytest.mark.parametrize("file_format", ["npy", "fortran", "npz", "deflated", "hdf5", "hdf5 chunks",
                                  "zarr2", "zarr3", "shards"])  # fmt: skip
def test_files_written_by_their_own_package(tmp_path: Path, file_format: str, name: str) -> None:
    table = filled(DTYPES[name], (6, 2), 0)
    try:
        path = put(tmp_path, "t", table, file_format)
        expected = get_any(path)
    except Exception:  # the package itself does not read it back
        return
    result = files.gather_file(path, np.arange(6))
    assert result.dtype == expected.dtype
    assert values(result) == values(expected)
    if file_format == "zarr2":
        out = os.fspath(tmp_path / "o.zarr")
        files.gather_file(path, PICKED, out)
        assert values(get(out)) == values(expected[PICKED])
        assert os.path.exists(tmp_path / "o.zarr/.zarray")


def get_any(path: str) -> NDArray[Any]:
    if ".npz:" not in path:
        return get(path)
    file, name = path.split(":")
    with np.load(file) as archive:
        result: NDArray[Any] = archive[name]
    return result


def test_npz_files_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"o.npz:t cannot be written, .npz files are read only"):
        files.gather_file(np.zeros(6), PICKED, tmp_path / "o.npz:t")
