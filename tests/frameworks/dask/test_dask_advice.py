"""Every advice of a message about Dask or xarray arrays is followed, and the call succeeds."""

import numpy as np
import pytest

from advised import follow

da = pytest.importorskip("dask.array", reason="install dask to test its arrays")

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
TABLE = da.from_array(VALUES, chunks=2)
CASES = {
    "unknown chunks": (
        {"data": TABLE[TABLE[:, 0] > 2]},
        "gatherum.gather(data, [0])",
        "; write data.compute_chunk_sizes()",
        "gatherum.gather(data.compute_chunk_sizes(), [0]).compute()",
    ),
    "unknown size": (
        {"values": TABLE, "groups": da.from_array(np.array([0, 1, 1, 0]))},
        "gatherum.groups.reduce(values, groups)",
        "; write size=int(groups.max()) + 1",
        "gatherum.groups.reduce(values, groups, size=int(groups.max()) + 1).compute()",
    ),
    "floats": (
        {"data": TABLE, "indices": TABLE[:2, 0]},
        "gatherum.gather(data, indices)",
        "; write indices.astype(np.int64)",
        "gatherum.gather(data, indices.astype(np.int64) % 4).compute()",
    ),
    "updates": (
        {"data": TABLE, "updates": np.ones((1, 3))},
        "gatherum.scatter_slices(data, [0], updates)",
        "; write updates.astype(data.dtype)",
        "gatherum.scatter_slices(data, [0], updates.astype(data.dtype)).compute()",
    ),
    "indices of NumPy's call": (
        {"data": VALUES, "indices": da.from_array(np.array([1, 2]))},
        "gatherum.gather(data, indices)",
        "; write indices.compute()",
        "gatherum.gather(data, indices.compute())",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_advice_of_arrays_of_dask(name):
    operands, call, advice, advised = CASES[name]
    follow(call, advice, advised, {"np": np, **operands})


def test_advice_of_arrays_of_xarray():
    xarray = pytest.importorskip("xarray", reason="install xarray to test its arrays")
    data = xarray.DataArray(VALUES, dims=("row", "column"))
    for call, advice, advised in (
        (
            "gatherum.scatter_slices(data, [0], 1, out=out)",
            "; write data.data to call on the array that it holds",
            "gatherum.scatter_slices(data.data, [0], 1, out=out)",
        ),
        (
            "gatherum.gather(data, indices)",
            "; write data.data for a result without names",
            "gatherum.gather(data.data, indices)",
        ),
    ):
        names = {"data": data, "out": np.empty((4, 3), np.float32), "indices": np.array([[0, 1]])}
        follow(call, advice, advised, names)
