"""Every dtype in Zarr arrays that tasks write: zarr reads the values back, or the call raises."""

import os

import numpy as np
import pytest

pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
zarr = pytest.importorskip("zarr", reason="install zarr")
import gatherum.dask  # noqa: E402
from files.kinds import DTYPES, filled, values  # noqa: E402
from gatherum import files  # noqa: E402
from gatherum.dask.graph.execute import at_once  # noqa: E402
from gatherum.dask.outputs import ClusterCall  # noqa: E402

pytestmark = pytest.mark.slow
PICKED = np.array([4, 0, 0])


def npy(path, array):
    """Write an array as NumPy without ml_dtypes stores it; return None if it has no such file."""
    try:
        np.save(path, array)
        np.load(path)
    except ValueError:
        return None
    return os.fspath(path)


@pytest.mark.parametrize("name", DTYPES)
def test_outputs_and_arrays_changed_in_place(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    dtype = DTYPES[name]
    table, updates = (filled(dtype, shape, seed) for seed, shape in enumerate([(6, 2), (3, 2)]))
    path, other = npy(tmp_path / "t.npy", table), npy(tmp_path / "u.npy", updates)
    if path is None or dtype.itemsize == 0:
        return
    kept = np.load(path)  # ml_dtypes are plain bytes here
    expected = kept.copy()
    for row, position in enumerate(PICKED):
        expected[position] = np.load(other)[row]
    out = tmp_path / "o.zarr"
    calls = ("gather", (PICKED,), kept[PICKED]), ("scatter_slices", (PICKED, other), expected)
    for op, operands, wanted in calls:
        call = ClusterCall(op, path, operands, os.fspath(out), {"axis": 0})
        try:
            call.run(at_once)
        except ValueError as error:
            assert str(error) == f"{out}: a Zarr array cannot hold elements of dtype {kept.dtype}"
            with pytest.raises(ValueError, match="a Zarr array cannot hold elements of dtype"):
                files.gather_file(path, PICKED, out)
            assert not [each for each in os.listdir(tmp_path) if "zarr" in each]
            return
        assert values(zarr.open_array(out, mode="r")[...]) == values(wanted)
    stored = zarr.open_array(out, mode="r")[...]
    gatherum.dask.scatter_slices_into(out, [1], stored[:1])
    wanted = stored.copy()
    wanted[1] = stored[0]
    assert values(zarr.open_array(out, mode="r")[...]) == values(wanted)
    assert values(gatherum.dask.from_file(out).compute()) == values(wanted)
