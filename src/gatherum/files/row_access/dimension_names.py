"""The names of an array's dimensions are found as xarray and netCDF keep them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from gatherum._arguments.xarray_labels import has_labels

__all__ = ["DAMAGED", "Names", "is_hard", "names_in"]

# They are read when they are asked for, those of each dimension. A dimension may have several.
Names = Callable[[], tuple[tuple[str, ...], ...]]
DAMAGED = (OSError, RuntimeError, KeyError, TypeError, ValueError)  # what a damaged file raises


def names_in(array: Any) -> Names:
    """Return what finds the names of the dimensions of an array of Zarr, h5py or xarray.

    A dimension without a name has none of them; there are none where the array keeps no names.
    """
    if has_labels(array):
        return partial(_of_each, array.dims)
    return partial(_of_scales if hasattr(array, "dims") else _of_zarr, array)


def _of_each(names: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names of dimensions that have at most one each, which need not be texts."""
    return tuple((name,) if name and isinstance(name, str) else () for name in names)


def _of_zarr(array: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names in an array's metadata: those of format 3, or of xarray in format 2."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    if names is None:
        names = dict(getattr(array, "attrs", {})).get("_ARRAY_DIMENSIONS")
    if not isinstance(names, (list, tuple)) or len(names) != len(array.shape):
        return ()
    return _of_each(names)


def _of_scales(dataset: Any) -> tuple[tuple[str, ...], ...]:
    """Return the labels of a dataset's dimensions, and the names of their scales."""
    own: list[str | None] = [None] * dataset.ndim
    with suppress(*DAMAGED):
        own = _of_scale(dataset) if dataset.is_scale else own
    return tuple(
        tuple(dict.fromkeys(_of_dimension(dimension, name)))
        for dimension, name in zip(dataset.dims, own, strict=True)
    )


def _of_dimension(dimension: Any, own: str | None) -> Iterator[str]:
    """Find the names of a dimension; `own` is that of the scale which the dataset is itself."""
    with suppress(*DAMAGED):
        yield from filter(None, (dimension.label, own))
        yield from filter(None, map(_last_part, dimension.values()))


def _of_scale(scale: Any) -> list[str | None]:
    """Return the names of a scale's dimensions, to which HDF5 attaches no scale. Along several
    dimensions netCDF keeps their numbers, which their scales have in this group or one around it.
    """
    if scale.ndim == 1:
        return [_last_part(scale)]
    wanted = [int(number) for number in scale.attrs["_Netcdf4Coordinates"]]
    found: dict[int, str] = {}
    group = scale.parent
    while not found.keys() >= set(wanted):
        for key in filter(partial(is_hard, group), group):
            if getattr(one := group[key], "is_scale", False) and "_Netcdf4Dimid" in one.attrs:
                found.setdefault(int(one.attrs["_Netcdf4Dimid"]), key)
        if group.name == "/":
            break
        group = group.parent
    return [found.get(wanted[place]) for place in range(scale.ndim)]


def is_hard(group: Any, key: str) -> bool:
    """Whether a member of a group of HDF5 is in the same file: other links may lead to any file."""
    return type(group.get(key, getlink=True)).__name__ == "HardLink"


def _last_part(dataset: Any) -> str:
    return (dataset.name or "").rpartition("/")[2]
