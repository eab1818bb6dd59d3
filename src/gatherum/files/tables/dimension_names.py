"""The names of an array's dimensions are found as xarray and netCDF keep them."""

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["Names", "names_in"]

Names = Callable[[], tuple[str | None, ...]]  # they are read when they are asked for


def names_in(dataset: Any) -> Names:
    """Return what finds the names of an array of Zarr's or a dataset of h5py's dimensions.

    One without a name is None; there are none where the array keeps no names.
    """
    return partial(_of_scales if hasattr(dataset, "dims") else _of_zarr, dataset)


def _of_zarr(array: Any) -> tuple[str | None, ...]:
    """Return the names in an array's metadata: those of format 3, or of xarray in format 2."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    if names is None:
        names = dict(getattr(array, "attrs", {})).get("_ARRAY_DIMENSIONS")
    if not isinstance(names, (list, tuple)) or len(names) != len(array.shape):
        return ()
    return tuple(name if isinstance(name, str) else None for name in names)


def _of_scales(dataset: Any) -> tuple[str | None, ...]:
    """Return the labels of a dataset's dimensions, or else the names of their scales."""
    return tuple(_of_dimension(dimension) for dimension in dataset.dims)


def _of_dimension(dimension: Any) -> str | None:
    try:
        name = dimension.label or (dimension[0].name if len(dimension) else None)
    except (OSError, RuntimeError, KeyError, TypeError, ValueError):  # a damaged file
        return None
    return None if name is None else name.rpartition("/")[2]
