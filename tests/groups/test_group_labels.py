"""Functions over groups keep the dimension names of an xarray DataArray, or raise TypeError."""

import pickle

import numpy as np
import pytest

import gatherum

xr = pytest.importorskip("xarray", reason="install xarray")
from labelled import CUBE, VALUES, as_kind  # noqa: E402

pytestmark = pytest.mark.frameworks

BANDS = np.array([1, 0, 1])
NAMED = xr.DataArray(BANDS, dims="lat", name="band")


@pytest.fixture(params=["numpy", "dask"])
def cube(request):
    return as_kind(CUBE, request.param)


def check(result, values, plain, dims, coords):
    """Compare with the call on the array itself. Lazy arrays stay lazy."""
    assert isinstance(result, xr.DataArray) and type(result.data) is type(values)
    computed = result.compute()
    assert computed.dtype == plain.dtype and computed.values.tobytes() == plain.tobytes()
    assert result.dims == dims and set(result.coords) == set(coords)
    assert result.name == "t" and result.attrs == {"units": "K"}
    for name in coords:
        xr.testing.assert_identical(computed.coords[name].variable, CUBE.coords[name].variable)


@pytest.mark.parametrize("func", ["sum", "mean", "argmax", "first", "count", "nanmax"])
@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize(
    ("groups", "name"),
    [(BANDS, "group"), (NAMED, "band"), (xr.DataArray(BANDS, dims="lat"), "group")],
)
def test_reduce(cube, func, axis, groups, name):
    result = gatherum.groups.reduce(cube, groups, 2, func, axis, fill_value=0)
    plain = gatherum.groups.reduce(VALUES, BANDS, 2, func, axis, fill_value=0)
    check(result, cube.data, plain, ("time", name, "lon"), ["time", "lon", "run"])


@pytest.mark.parametrize("func", ["normalize", "softmax"])
def test_transform(cube, func):
    result = gatherum.groups.transform(cube, NAMED, func, 1, size=2)
    plain = gatherum.groups.transform(VALUES, BANDS, func, 1, size=2)
    check(result, cube.data, plain, CUBE.dims, list(CUBE.coords))


@pytest.mark.parametrize("scatter", [False, True])
@pytest.mark.parametrize("like", [CUBE, VALUES, (VALUES.shape, VALUES.dtype)])
def test_prepare(cube, scatter, like):
    options = {"reduction": "add"} if scatter else {}
    op = gatherum.scatter_slices if scatter else gatherum.gather
    updates = (cube[:, :1],) if scatter else ()
    for indices in (NAMED[:1], BANDS[:1]):
        expected = op(cube, indices, *updates, axis=1, **options)
        prepared = gatherum.prepare(op, like, indices, axis=1, **options)
        for call in (prepared, pickle.loads(pickle.dumps(prepared))):
            result = call(cube, *updates)
            assert type(result.data) is type(cube.data)
            xr.testing.assert_identical(result, expected)
            plain = call(VALUES, *(update.values for update in updates))
            assert type(plain) is np.ndarray and plain.tobytes() == expected.values.tobytes()


def test_aggregate_along_an_axis():
    edges = [0, 2, 1], NAMED, 2, "add"
    plain = gatherum.aggregate(VALUES, [0, 2, 1], BANDS, 2, "add", axis=1)
    result = gatherum.aggregate(CUBE, *edges, axis=-2)
    check(result, VALUES, plain, ("time", "band", "lon"), ["time", "lon", "run"])


def test_a_group_for_each_value():
    each = np.arange(24).reshape(2, 3, 4) % 5
    plain = gatherum.groups.reduce(VALUES, each, func="sum", axis=2)
    for groups in (each, xr.DataArray(each, dims=CUBE.dims)):
        result = gatherum.groups.reduce(CUBE, groups, func="sum", axis=2)
        coords = ["time", "lat", "height", "run"]
        check(result, VALUES, plain, ("time", "lat", "group"), coords)


def test_groups_may_have_the_name_of_their_dimension():
    result = gatherum.groups.reduce(CUBE, NAMED.rename("lat"), 2, "sum", 1)
    assert result.dims == CUBE.dims and "lat" not in result.coords


@pytest.mark.parametrize("scatter", [BANDS, NAMED, xr.DataArray(BANDS, dims="edge", name="node")])
def test_aggregate(scatter):
    rows = CUBE.transpose("lat", "time", "lon")
    name = getattr(scatter, "name", "row")
    result = gatherum.aggregate(rows, [0, 1, 2], scatter, 2, "add", [1.0, 2.0, 3.0])
    plain = gatherum.aggregate(rows.values, [0, 1, 2], BANDS, 2, "add", [1.0, 2.0, 3.0])
    check(result, VALUES, plain, (name, "time", "lon"), ["time", "lon", "run"])
    result = gatherum.aggregate(rows, [0, 1, 2], None, None, "add", indptr=[0, 2, 3])
    plain = gatherum.aggregate(rows.values, [0, 1, 2], None, None, "add", indptr=[0, 2, 3])
    check(result, VALUES, plain, ("row", "time", "lon"), ["time", "lon", "run"])


def test_gather_quantized():
    table = xr.DataArray(
        np.arange(24, dtype=np.int8).reshape(2, 3, 4), dims=CUBE.dims, coords=CUBE.coords,
        name="t", attrs=CUBE.attrs,
    )  # fmt: skip
    scales = np.full((2, 3, 1), 0.5, np.float32)
    result = gatherum.gather_quantized(table, [2, 0], scales, axis=1, block_size=4)
    plain = gatherum.gather_quantized(table.values, [2, 0], scales, axis=1, block_size=4)
    assert result.values.tobytes() == plain.tobytes() and result.dtype == plain.dtype
    assert result.dims == CUBE.dims
    xr.testing.assert_identical(
        result.coords.to_dataset(), CUBE.isel(lat=[2, 0]).coords.to_dataset()
    )
    packed = xr.DataArray(np.full((2, 4), 0x21, np.uint8), dims=("a", "b"), coords={"b": range(4)})
    options = {"axis": 1, "block_size": 8, "bits": 4}
    result = gatherum.gather_quantized(packed, [7, 0], scales[:, 0], **options)
    plain = gatherum.gather_quantized(packed.values, [7, 0], scales[:, 0], **options)
    assert result.values.tobytes() == plain.tobytes()
    assert result.dims == ("a", "b") and not result.coords


LOST = (
    "must not be an xarray.DataArray, whose names would be lost; write {0}.values, or {0}.data for "
    "the array that it holds"
)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gatherum.groups.reduce(CUBE, NAMED, 2, "sum", 2), ValueError,
         "groups.reduce: `groups` must have shape (4,), or that of `values`, (2, 3, 4), got (3,)"),
        (lambda: gatherum.groups.reduce(CUBE, NAMED.rename(lat="row"), 2, "sum", 1), ValueError,
         "groups.reduce: dimension 0 of `groups` must be named 'lat', got 'row'"),
        (lambda: gatherum.groups.reduce(CUBE, NAMED.rename("lon"), 2, "sum", 1), ValueError,
         "groups.reduce: the result would have two dimensions named 'lon'; rename `groups`"),
        (lambda: gatherum.groups.reduce(CUBE, NAMED.rename("run"), 2, "sum", 1), ValueError,
         "groups.reduce: the result would have a dimension and another coordinate of the name "
         "'run'; rename the coordinate, or drop it"),
        (lambda: gatherum.groups.reduce(CUBE, BANDS, 1, "sum", 1), IndexError,
         "groups.reduce: group 1 is not in [0, 1) (groups[0])"),
        (lambda: gatherum.aggregate(CUBE, [0], [0], 1, "add", out=VALUES[:1]), TypeError,
         "aggregate: `out` must be None for an array of xarray, since the result is a new one; "
         "write data.data to call on the array that it holds"),
        (lambda: gatherum.groups.aggregate(BANDS, CUBE, axis=1), TypeError,
         f"groups.aggregate: `a` {LOST.format('a')}; gatherum.groups.reduce keeps names"),
        (lambda: gatherum.groups.aggregate(NAMED, VALUES, axis=1), TypeError,
         f"groups.aggregate: `group_idx` {LOST.format('group_idx')}; gatherum.groups.reduce keeps "
         "names"),
        (lambda: gatherum.Accumulator(CUBE, "add"), TypeError,
         f"Accumulator: `data` {LOST.format('data')}"),
        (lambda: gatherum.Accumulator(VALUES, "add").scatter_slices(NAMED, VALUES, 1), TypeError,
         f"scatter_slices: `indices` {LOST.format('indices')}"),
        (lambda: gatherum.Accumulator(VALUES, "add").scatter_slices([1], CUBE, 1), TypeError,
         f"scatter_slices: `updates` {LOST.format('updates')}"),
        (lambda: gatherum.prepare("gather", CUBE, [1])(CUBE[:1]), ValueError,
         "gather: the call was prepared for `data` of shape (2, 3, 4), got (1, 3, 4)"),
        (lambda: gatherum.prepare("gather", CUBE, [1])(CUBE, out=VALUES[:1]), TypeError,
         "gather: `out` must be None for an array of xarray, since the result is a new one; "
         "write data.data to call on the array that it holds"),
    ],
)  # fmt: skip
def test_invalid_calls_raise(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_lazy_groups_need_lazy_values():
    pytest.importorskip("dask.array", reason="install dask")
    lazy = NAMED.chunk(lat=1)
    result = gatherum.groups.reduce(CUBE.chunk(time=1), lazy, 2, "sum", 1)
    check(result, CUBE.chunk().data, gatherum.groups.reduce(VALUES, BANDS, 2, "sum", 1),
          ("time", "band", "lon"), ["time", "lon", "run"])  # fmt: skip
    with pytest.raises(TypeError, match=r"groups\.reduce: `groups` must be a NumPy array"):
        gatherum.groups.reduce(CUBE, lazy, 2, "sum", 1)


def test_weights_functions_and_quantiles_of_named_values():
    weights = xr.DataArray([1.0, 3.0, 2.0], dims="lat")
    results = gatherum.groups.reduce(CUBE, NAMED, 2, ["sum", "mean"], axis=1, weights=weights)
    for func, result in results.items():
        plain = gatherum.groups.reduce(VALUES, BANDS, 2, func, axis=1, weights=weights.values)
        assert result.dims == ("time", "band", "lon") and np.array_equal(result, plain)
    with pytest.raises(ValueError, match="dimension 0 of `weights` must be named 'lat'"):
        gatherum.groups.reduce(CUBE, BANDS, 2, "sum", axis=1, weights=weights.rename(lat="lon"))
    with pytest.raises(ValueError) as caught:
        gatherum.groups.reduce(CUBE, BANDS, 2, "quantile", axis=1, q=[0.5, 1])
    assert str(caught.value) == (
        "groups.reduce: `q` must be one number for values with names of dimensions"
    )
    ranks = gatherum.groups.transform(CUBE, BANDS, "cumsum", axis=1)
    assert ranks.dims == CUBE.dims and set(ranks.coords) == set(CUBE.coords)
