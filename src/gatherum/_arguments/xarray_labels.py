"""Run calls on xarray objects that hold NumPy or Dask arrays, and keep the dimension names.

Operators address dimensions by position and never align them by name. Objects that hold other
arrays, or that have not been read from a file, raise the same error as in all other functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gatherum._frameworks.refusals import held_by_xarray
from gatherum._frameworks.registry import adapter_of
from gatherum._model.call import Attributes
from gatherum._model.dimensions import Dimensions
from gatherum._model.errors import Shape
from gatherum._model.errors import frameworks as framework_errors
from gatherum._system import native

Labelled = Any  # a DataArray of xarray
Names = tuple[Any, ...]


def has_labels(value: object) -> bool:
    """Return True for a DataArray that holds a NumPy or Dask array."""
    xarray = sys.modules.get("xarray")
    if xarray is None or not isinstance(value, xarray.DataArray):
        return False
    array_type = type(held := held_by_xarray(value))
    if array_type is np.ndarray or isinstance(held, sys.modules["pandas"].Index):  # of labels
        return True
    return (adapter := adapter_of(array_type)) is not None and adapter.name == "dask"


def run(
    attributes: Attributes,
    data: Labelled,
    indices: Any,
    updates: Any,
    fill_value: object,
    out: object,
    call: Callable[[Any, Any], Any] | None = None,
) -> Labelled:
    """Run a call on a DataArray and return a DataArray.

    If `call` is given, it runs the call on the arrays of the data and of the updates.
    """
    op, operator = attributes.op, attributes.operator
    check_no_out(op, out)
    update_array = plain_array(updates)

    def run_on_arrays(table: Any, entries: Any) -> Any:
        if call is not None:
            return call(table, update_array)
        arguments = *attributes.positional, fill_value, None
        return native.dispatch_call(op, table, entries, update_array, *arguments)

    if not operator.scatters:
        return gathered(op, attributes, data, indices, run_on_arrays)
    entries = plain_array(indices)
    axis = operator.resolve(data.shape, np.shape(entries), attributes.axis)
    dimensions = operator.dimensions(data.ndim, np.shape(entries), axis)
    _check_updates(op, updates, _moved_names(op, data, indices, dimensions))
    return data.copy(deep=False, data=run_on_arrays(data.data, entries))


def plain_array(value: Any) -> Any:
    """Return the array in a DataArray; return any other value unchanged."""
    return value.data if has_labels(value) else value


def check_no_out(op: str, out: object) -> None:
    """Raise TypeError if `out` is not None, because the result is a new DataArray."""
    if out is not None:
        raise framework_errors.no_out_with_labels(op)


def refuse_labels(op: str, instead: str = "", **operands: object) -> None:
    """Raise TypeError for a DataArray if the result cannot keep its dimension names."""
    for operand, value in operands.items():
        if has_labels(value):
            raise framework_errors.loses_names(op, operand, instead)


def gathered(
    op: str, attributes: Attributes, data: Labelled, indices: Any, call: Callable[[Any, Any], Any]
) -> Labelled:
    """Run a call that selects slices in the same way as a gather with these attributes.

    Return the result of the call with names and coordinates.
    """
    entries = plain_array(indices)
    resolved = attributes.operator.resolve(data.shape, np.shape(entries), attributes.axis)
    dimensions = attributes.operator.dimensions(data.ndim, np.shape(entries), resolved)
    names = _moved_names(op, data, indices, dimensions)
    if None in names:
        raise framework_errors.no_names(op, len(dimensions.entries))
    if len(set(names)) < len(names):
        raise framework_errors.equal_names(op, names)
    result = call(data.data, entries)
    labelled = type(data)(result, dims=names, name=data.name, attrs=data.attrs)
    resolved_attributes = attributes._replace(axis=resolved)
    return _with_coordinates(resolved_attributes, data, indices, labelled, dimensions, op)


def check_groups(op: str, operand: str, data: Labelled, axis: int, groups: Any) -> None:
    """Raise ValueError if the names of `groups` differ from the names of the data.

    If the array of groups has one dimension, its name is compared with the name of one axis;
    otherwise, all dimension names are compared.
    """
    if not has_labels(groups):
        return
    expected = data.dims if groups.ndim > 1 else (data.dims[axis],)
    for i, (name, actual) in enumerate(zip(expected, groups.dims, strict=False)):
        if name != actual:
            raise framework_errors.other_name(op, operand, i, name, actual)


def renumbered(
    op: str, operand: str, data: Labelled, axis: int, indices: Any, default_name: str,
    call: Callable[[], Any],
) -> Labelled:  # fmt: skip
    """Run a call whose result has new positions along an axis of the data.

    The dimension gets the name of `indices` if they are a DataArray with a name, otherwise
    `default_name`. Coordinates of other dimensions are kept.
    """
    indices_name = indices.name if has_labels(indices) else None
    dim, name = data.dims[axis], default_name if indices_name is None else indices_name
    names = tuple(name if d == axis else other_name for d, other_name in enumerate(data.dims))
    if len(set(names)) < len(names):
        raise framework_errors.equal_names(op, names, f"`{operand}`")
    kept_coordinates = _coordinates_along(data, set(data.dims) - {dim}).coords
    if name in kept_coordinates:
        raise framework_errors.named_as_dimension(op, name)
    labelled = type(data)(call(), dims=names, name=data.name, attrs=data.attrs)
    return labelled.assign_coords(kept_coordinates)


def _moved_names(op: str, data: Labelled, indices: Any, dimensions: Dimensions) -> Names:
    """Return the names of the moved dimensions; an unknown name is None.

    If the entries have only one dimension and it has no name, it gets the name of the indexed
    dimension of the data.
    """
    index_names = indices.dims if has_labels(indices) else None
    is_single_dimension = len(dimensions.entries) == len(dimensions.indexed) == 1
    names: list[Any] = []
    for data_dimension, entry_dimension in dimensions.moved_dimensions:
        index_name = None
        if index_names is not None and entry_dimension is not None:
            index_name = index_names[entry_dimension]
        if data_dimension is None:
            names.append(
                index_name
                if index_names or not is_single_dimension
                else data.dims[dimensions.indexed.start]
            )
            continue
        data_name = data.dims[data_dimension]
        if index_name not in (None, data_name):
            raise framework_errors.other_name(op, "indices", entry_dimension, data_name, index_name)
        names.append(data_name)
    return tuple(names)


def _check_updates(op: str, updates: Any, names: Names) -> None:
    """Raise ValueError if the dimension names of updates differ from the moved dimensions."""
    if has_labels(updates):
        expected = names[len(names) - min(updates.ndim, len(names)) :]
        for i, (name, actual) in enumerate(zip(expected, updates.dims, strict=False)):
            if name not in (None, actual):
                raise framework_errors.other_name(op, "updates", i, name, actual)


def _with_coordinates(
    attributes: Attributes,
    data: Labelled,
    indices: Any,
    labelled: Labelled,
    dimensions: Dimensions,
    op: str,
) -> Labelled:
    """Return a gather's result with the known coordinates of its dimensions."""
    entry_dims, kept_dims = set(), set()
    for moved_dimension, (data_dimension, _) in enumerate(dimensions.moved_dimensions):
        if data_dimension is None:
            entry_dims.add(labelled.dims[moved_dimension])
        elif data.shape[data_dimension] == labelled.shape[moved_dimension]:
            kept_dims.add(data.dims[data_dimension])
    if (slice_numbers := _slice_numbers(attributes, data.shape, indices)) is None:
        coordinates = _coordinates_along(data, kept_dims)
    else:
        dim = data.dims[dimensions.indexed.start]
        names = tuple(name for name in labelled.dims if name in entry_dims)
        coordinates = _coordinates_along(data, kept_dims | {dim}).isel(
            {dim: (names, slice_numbers)}, missing_dims="ignore"
        )
    labelled = labelled.assign_coords(coordinates.coords)
    if has_labels(indices):
        index_coordinates = _coordinates_along(indices, entry_dims)
        for name in entry_dims & set(index_coordinates.coords):
            if name in labelled.coords and not labelled.coords[name].equals(
                index_coordinates.coords[name]
            ):
                raise framework_errors.two_coordinates(op, name)
        existing = [name for name in index_coordinates.coords if name in labelled.coords]
        labelled = labelled.assign_coords(index_coordinates.drop_vars(existing).coords)
    return labelled


def _coordinates_along(array: Labelled, names: set[Any]) -> Any:
    """Return the coordinates whose dimensions are all in `names`."""
    coordinates = array.coords.to_dataset()
    return coordinates.drop_vars(
        [name for name, coordinate in array.coords.items() if not names.issuperset(coordinate.dims)]
    )


def _slice_numbers(attributes: Attributes, shape: Shape, indices: Any) -> Any:
    """Return the numbers of the slices that a gather selected.

    Return None if it does not select slices, if some are filled, or if the indices are not in
    memory.
    """
    plain, op = plain_array(indices), attributes.op
    if op != "gather" or attributes.fills or adapter_of(type(plain)):
        return None
    arguments = *attributes._replace(axis=0).positional, 0, None
    return native.dispatch_call(op, np.arange(shape[attributes.axis]), plain, None, *arguments)
