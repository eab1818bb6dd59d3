"""The names of an array's dimensions, as stored by xarray and netCDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from gatherum._arguments.xarray_labels import has_labels

# A function that reads the names of each dimension when it is called. A dimension may have several
# names.
Names = Callable[[], tuple[tuple[str, ...], ...]]
DAMAGED = (OSError, RuntimeError, KeyError, TypeError, ValueError)  # errors of a damaged file


def names_in(array: Any) -> Names:
    """Return a function that finds the dimension names of a Zarr, h5py or xarray array.

    Each dimension has a tuple of names, which may be empty. The result is () if the array stores no
    names.
    """
    if has_labels(array):
        return partial(_of_each, array.dims)
    return partial(_of_scales if hasattr(array, "dims") else _of_zarr, array)


def _of_each(names: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names of dimensions with at most one name each. Ignore names that are not str."""
    return tuple((name,) if name and isinstance(name, str) else () for name in names)


def _of_zarr(array: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names in the metadata of an array. In format 2, xarray writes them."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    if names is None:
        names = dict(getattr(array, "attrs", {})).get("_ARRAY_DIMENSIONS")
    if not isinstance(names, (list, tuple)) or len(names) != len(array.shape):
        return ()
    return _of_each(names)


def _of_scales(dataset: Any) -> tuple[tuple[str, ...], ...]:
    """Return the labels of a dataset's dimensions, and the names of their scales."""
    own_names: list[str | None] = [None] * dataset.ndim
    with suppress(*DAMAGED):
        own_names = _of_scale(dataset) if dataset.is_scale else own_names
    return tuple(
        tuple(dict.fromkeys(_of_dimension(dimension, name)))
        for dimension, name in zip(dataset.dims, own_names, strict=True)
    )


def _of_dimension(dimension: Any, own_name: str | None) -> Iterator[str]:
    """Yield the names of a dimension. `own_name` is the name if the dataset itself is its scale."""
    with suppress(*DAMAGED):
        yield from filter(None, (dimension.label, own_name))
        yield from filter(None, map(_last_part, dimension.values()))


def _of_scale(scale: Any) -> list[str | None]:
    """Return the names of a scale's dimensions, to which HDF5 attaches no scale.

    For several dimensions, netCDF stores the numbers of their scales. These scales are in the same
    group or in a parent group.
    """
    if scale.ndim == 1:
        return [_last_part(scale)]
    dimension_numbers = [int(dimension) for dimension in scale.attrs["_Netcdf4Coordinates"]]
    names: dict[int, str] = {}
    group = scale.parent
    while not names.keys() >= set(dimension_numbers):
        for key in filter(partial(is_hard, group), group):
            if (
                getattr(scale_dataset := group[key], "is_scale", False)
                and "_Netcdf4Dimid" in scale_dataset.attrs
            ):
                names.setdefault(int(scale_dataset.attrs["_Netcdf4Dimid"]), key)
        if group.name == "/":
            break
        group = group.parent
    return [names.get(dimension_numbers[i]) for i in range(scale.ndim)]


def is_hard(group: Any, key: str) -> bool:
    """Return True if a member of an HDF5 group is in the same file; links may lead to any file."""
    return type(group.get(key, getlink=True)).__name__ == "HardLink"


def _last_part(dataset: Any) -> str:
    return (dataset.name or "").rpartition("/")[2]
