"""xarray arrays as operands: results keep the names of their dimensions."""

import numpy as np
import pytest

import gatherum
from gatherum._arguments import xarray_labels

xr = pytest.importorskip("xarray", reason="install xarray")
from labelled import CUBE, VALUES, as_kind  # noqa: E402

pytestmark = pytest.mark.frameworks

NAMES = xr.DataArray([2, 0], dims="station", coords={"station": ["Bonn", "Ulm"]})


@pytest.fixture(params=["numpy", "dask"])
def cube(request):
    return as_kind(CUBE, request.param)


def check(result, cube, expected):
    """Compare with xarray's own indexing, labels included. Lazy arrays stay lazy."""
    assert type(result.data) is type(cube.data)
    xr.testing.assert_identical(result.compute(), expected)


@pytest.mark.parametrize("indices", [[2, -1, 0], np.array([1, 1]), NAMES, xr.zeros_like(NAMES)])
@pytest.mark.parametrize("axis", [1, -2])
def test_gather(cube, indices, axis):
    check(gatherum.gather(cube, indices, axis), cube, CUBE.isel(lat=indices))


def test_gather_one_or_a_table_of_slices(cube):
    check(gatherum.gather(cube, 1, 2), cube, CUBE.isel(lon=1))
    table = xr.DataArray([[0, 1], [2, 2]], dims=("a", "b"))
    check(gatherum.gather(cube, table, 1), cube, CUBE.isel(lat=table))
    clipped = gatherum.gather(cube, [9], 1, mode="clip")
    check(clipped, cube, CUBE.isel(lat=[2]))
    filled = gatherum.gather(cube, [9, 1], 1, mode="fill", fill_value=np.nan)
    check(filled, cube, CUBE.isel(lat=[2, 1]).drop_vars(["lat", "height", "area"])
          .where(xr.DataArray([False, True], dims="lat")))  # fmt: skip


def test_gather_elements(cube):
    order = np.argsort(-VALUES, axis=1)
    for indices in (order, xr.DataArray(order, dims=CUBE.dims)):
        result = gatherum.gather_elements(cube, indices, 1)
        assert result.dims == CUBE.dims
        assert result.compute().values.tolist() == np.take_along_axis(VALUES, order, 1).tolist()
        assert set(result.coords) == {"time", "lon", "run"}


def test_gather_nd(cube):
    places = xr.DataArray([[2, 1], [0, 3]], dims=("station", "place"), coords=NAMES.coords)
    result = gatherum.gather_nd(cube.transpose("lat", "lon", "time"), places)
    assert result.dims == ("station", "time") and result.name == "t" and result.attrs == CUBE.attrs
    assert set(result.coords) == {"station", "time", "run"}
    assert result.sel(station="Bonn").compute().values.tolist() == VALUES[:, 2, 1].tolist()
    result = gatherum.gather_nd(cube, [[1], [0]], 0)
    assert result.dims == CUBE.dims
    every = gatherum.gather_nd(cube, np.zeros((2, 3, 4, 0), int), 3)
    check(every.drop_vars(list(every.coords)), cube, CUBE.drop_vars(list(CUBE.coords)))


@pytest.mark.parametrize("convert", [lambda x, _: x, lambda x, dims: xr.DataArray(x, dims=dims)])
def test_scatters(cube, convert):
    rows = convert(np.array([1, 1]), ("row",))
    ones = convert(np.ones((2, 2, 4)), ("time", "row", "lon"))
    if not isinstance(rows, xr.DataArray):
        ones = np.asarray(ones)
    result = gatherum.scatter_slices(cube, rows, ones, 1, reduction="add")
    expected = CUBE.copy()
    expected[:, 1] += 2
    check(result, cube, expected)
    assert CUBE.values.tolist() == VALUES.tolist()
    result = gatherum.scatter_nd(cube, convert(np.array([[1, 2]]), ("n", "k")), -1.0)
    expected = CUBE.copy()
    expected[1, 2] = -1
    check(result, cube, expected)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gatherum.gather(CUBE, [[0, 1]], 1), ValueError,
         "gather: `indices` must be an xarray.DataArray, whose dimensions give the result 2 names; "
         "write data.data for a result without names"),
        (lambda: gatherum.gather(CUBE, xr.DataArray([0], dims="lon"), 1), ValueError,
         "gather: the result would have two dimensions named 'lon'; rename those of `indices`"),
        (lambda: gatherum.gather(CUBE.assign_coords(k=("lat", range(CUBE.sizes["lat"]))),
                                 xr.DataArray([1, 0], dims="k", coords={"k": [7, 8]}), 1),
         ValueError,
         "gather: `data` and `indices` have different coordinates of the name 'k'; rename one, or "
         "drop it"),
        (lambda: gatherum.gather_elements(CUBE, xr.DataArray(VALUES.astype(int)), 1), ValueError,
         "gather_elements: dimension 0 of `indices` must be named 'time', got 'dim_0'"),
        (lambda: gatherum.scatter_slices(CUBE, NAMES, CUBE.isel(lat=[0, 1]), 1), ValueError,
         "scatter_slices: dimension 1 of `updates` must be named 'station', got 'lat'"),
        (lambda: gatherum.gather(CUBE, [0], out=VALUES[:1]), TypeError,
         "gather: `out` must be None for an array of xarray, since the result is a new one; write "
         "data.data to call on the array that it holds"),
        (lambda: gatherum.gather(CUBE, [2]), IndexError,
         "gather: index 2 is out of bounds for axis 0 of size 2 (indices[0])"),
        (lambda: gatherum.gather(CUBE, [0], 3), ValueError,
         "gather: `axis` must be in [-3, 3), got 3"),
    ],
)  # fmt: skip
def test_invalid_calls_raise(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_nothing_lazy_is_read():
    da = pytest.importorskip("dask.array", reason="install dask")

    def fail(block):
        raise AssertionError("read")

    lazy = CUBE.copy(data=da.from_array(VALUES).map_blocks(fail, dtype=float, meta=VALUES[:0]))
    indices = xr.DataArray(da.from_array(np.array([1, 0]), chunks=1), dims="station")
    for result in (gatherum.gather(lazy, [0], 1), gatherum.gather(lazy, indices, 1)):
        assert result.chunks is not None
    assert set(gatherum.gather(lazy, indices, 1).coords) == {"time", "lon", "run"}
    with pytest.raises(TypeError, match=r"write indices\.data, the array that it holds"):
        gatherum.gather(VALUES, indices)


def test_labels_themselves():
    result = gatherum.gather(CUBE["lat"], [2, 0])
    xr.testing.assert_identical(result, CUBE["lat"].isel(lat=[2, 0]))
    changed = gatherum.scatter_slices(CUBE["lat"], [1], [0.0])
    assert changed.values.tolist() == [50, 0, 52] and changed["lat"].values.tolist() == [50, 51, 52]


def test_labels_of_several_levels():
    stacked = CUBE.stack(cell=("lat", "lon"))
    result = gatherum.gather(stacked, [5, 0], 1)
    xr.testing.assert_identical(result, stacked.isel(cell=[5, 0]))
    assert not xarray_labels.has_labels(CUBE.variable) and not xarray_labels.has_labels(VALUES)
