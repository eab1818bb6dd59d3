"""A labelled array of three dimensions. Needs xarray."""

import numpy as np
import pytest
import xarray as xr

VALUES = np.arange(24.0).reshape(2, 3, 4)
CUBE = xr.DataArray(
    VALUES,
    dims=("time", "lat", "lon"),
    coords={
        "time": [2001, 2002], "lat": [50.0, 51.0, 52.0], "lon": [5.0, 6.0, 7.0, 8.0],
        "height": ("lat", [1, 2, 3]), "area": (("lat", "lon"), VALUES[0]), "run": "a",
    },
    name="t", attrs={"units": "K"},
)  # fmt: skip


def as_kind(cube, kind):
    """Return the array itself, or as chunks of Dask."""
    if kind == "numpy":
        return cube
    pytest.importorskip("dask.array", reason="install dask")
    return cube.chunk(time=1, lon=2)
