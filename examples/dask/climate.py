"""Values of a climate cube at stations, and means by region, on a lazy, labelled cube.

The cube is an xarray.DataArray of time, latitude and longitude, in Dask chunks. Data are read only
when the results are computed.
"""

import dask.array as da
import numpy as np
import xarray as xr

import gatherum

DAYS, LATS, LONS, REGIONS = 60, 40, 80, 5


def made_cube() -> xr.DataArray:
    """Return a chunked cube, like xarray.open_zarr."""
    values = np.random.default_rng(0).normal(15, 8, (DAYS, LATS, LONS))
    return xr.DataArray(
        da.from_array(values, chunks=(10, 20, 20)),
        dims=("time", "lat", "lon"),
        coords={
            "time": np.datetime64("2026-01-01") + np.arange(DAYS),
            "lat": np.linspace(45, 55, LATS),
            "lon": np.linspace(0, 20, LONS),
        },
        name="temperature",
        attrs={"units": "degree Celsius"},
    )


def at_stations(cube: xr.DataArray, stations: dict[str, tuple[float, float]]) -> xr.DataArray:
    """Return the values nearest to the given latitudes and longitudes."""
    lat, lon = zip(*stations.values(), strict=True)
    positions = [
        cube.get_index(dim).get_indexer(list(places), method="nearest")
        for dim, places in (("lat", lat), ("lon", lon))
    ]
    indices = xr.DataArray(
        np.stack(positions, axis=-1), dims=("station", "place"), coords={"station": list(stations)}
    )
    return gatherum.gather_nd(cube.transpose("lat", "lon", ...), indices, negative=False)


def by_region(cube: xr.DataArray, regions: np.ndarray) -> xr.DataArray:
    """Return the mean of each day in each region; -1 means no region."""
    cells = cube.stack(cell=("lat", "lon"))
    axis = cells.get_axis_num("cell")
    means = gatherum.groups.reduce(
        cells.data, regions.ravel(), REGIONS, "mean", axis=axis, mode="drop"
    )
    return xr.DataArray(means, dims=("time", "region"), coords={"time": cube.time})


def main() -> None:
    """Compare both results with xarray's own indexing."""
    cube = made_cube()
    stations = {"Bonn": (50.73, 7.10), "Lyon": (45.76, 4.84), "Ulm": (48.40, 9.99)}
    picked = at_stations(cube, stations)
    assert picked.chunks is not None
    print(f"lazy, with the dimensions {picked.dims}")
    for name, (lat, lon) in stations.items():
        expected = cube.sel(lat=lat, lon=lon, method="nearest")
        assert np.array_equal(picked.sel(station=name), expected)
    print(f"{picked.size} values at {len(stations)} stations are those of xarray's sel")

    regions = np.random.default_rng(1).integers(-1, REGIONS, (LATS, LONS))
    means = by_region(cube, regions)
    for region in range(REGIONS):
        expected = cube.where(xr.DataArray(regions == region, dims=("lat", "lon")))
        assert np.allclose(means.sel(region=region), expected.mean(("lat", "lon")))
    print(f"means of {REGIONS} regions are those of xarray's where and mean")


if __name__ == "__main__":
    main()
