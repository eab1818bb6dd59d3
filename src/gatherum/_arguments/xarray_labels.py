"""Run calls on xarray objects that hold NumPy or Dask arrays, keeping the names of dimensions.

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
    array_type = type(inner := held_by_xarray(value))
    if array_type is np.ndarray or isinstance(inner, sys.modules["pandas"].Index):  # of labels
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
    plain = plain_array(indices)
    shape = np.shape(plain)
    axis = operator.resolve(data.shape, shape, attributes.axis)
    dimensions = operator.dimensions(data.ndim, shape, axis)
    names = _names(op, data, indices, dimensions)
    if operator.scatters:
        _check_updates(op, updates, names)
    elif None in names:
        raise framework_errors.no_names(op, len(dimensions.entries))
    elif len(set(names)) < len(names):
        raise framework_errors.equal_names(op, names)
    arrays = data.data, plain_array(updates)
    if call is None:
        arguments = *attributes.positional, fill_value, None
        result = native.dispatch_call(op, arrays[0], plain, arrays[1], *arguments)
    else:
        result = call(*arrays)
    if operator.scatters:
        return data.copy(deep=False, data=result)
    labelled = type(data)(result, dims=names, name=data.name, attrs=data.attrs)
    return _with_coordinates(attributes, data, indices, labelled, dimensions, op)


def plain_array(value: Any) -> Any:
    """Return the array in a DataArray; return any other value unchanged."""
    return value.data if has_labels(value) else value


def check_no_out(op: str, out: object) -> None:
    """Raise TypeError if `out` is not None, because the result is a new DataArray."""
    if out is not None:
        raise framework_errors.no_out_with_labels(op)


def refuse_labels(op: str, instead: str = "", **operands: object) -> None:
    """Raise TypeError for a DataArray in a function whose result cannot keep its names."""
    for operand, value in operands.items():
        if has_labels(value):
            raise framework_errors.loses_names(op, operand, instead)


def gathered(
    op: str, attributes: Attributes, data: Labelled, indices: Any, call: Callable[[Any, Any], Any]
) -> Labelled:
    """Run a call that selects slices as a gather with these attributes does.

    Return its result with names and coordinates.
    """
    plain = plain_array(indices)
    resolved = attributes.operator.resolve(data.shape, np.shape(plain), attributes.axis)
    dimensions = attributes.operator.dimensions(data.ndim, np.shape(plain), resolved)
    names = _names(op, data, indices, dimensions)
    if None in names:
        raise framework_errors.no_names(op, len(dimensions.entries))
    if len(set(names)) < len(names):
        raise framework_errors.equal_names(op, names)
    result = call(data.data, plain)
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
    op: str, operand: str, data: Labelled, axis: int, indices: Any, new: str,
    call: Callable[[], Any],
) -> Labelled:  # fmt: skip
    """Run a call whose result has new positions along an axis of the data.

    The dimension gets the name of `indices` if they are a DataArray with a name, otherwise `new`.
    Coordinates of other dimensions are kept.
    """
    own = indices.name if has_labels(indices) else None
    dim, name = data.dims[axis], new if own is None else own
    names = tuple(name if d == axis else other for d, other in enumerate(data.dims))
    if len(set(names)) < len(names):
        raise framework_errors.equal_names(op, names, f"`{operand}`")
    kept = _along(data, set(data.dims) - {dim}).coords
    if name in kept:
        raise framework_errors.named_as_dimension(op, name)
    labelled = type(data)(call(), dims=names, name=data.name, attrs=data.attrs)
    return labelled.assign_coords(kept)


def _names(op: str, data: Labelled, indices: Any, dimensions: Dimensions) -> Names:
    """Return the names of the moved dimensions; an unknown name is None.

    A single entry dimension without a name gets the name of the indexed dimension of the data.
    """
    known = indices.dims if has_labels(indices) else None
    alone = len(dimensions.entries) == len(dimensions.indexed) == 1
    names: list[Any] = []
    for d, e in dimensions.moved_dimensions:
        own = None if known is None or e is None else known[e]
        if d is None:
            names.append(own if known or not alone else data.dims[dimensions.indexed.start])
            continue
        if own not in (None, data.dims[d]):
            raise framework_errors.other_name(op, "indices", e, data.dims[d], own)
        names.append(data.dims[d])
    return tuple(names)


def _check_updates(op: str, updates: Any, names: Names) -> None:
    """Raise ValueError if updates have other dimension names than the moved dimensions."""
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
    entries, kept = set(), set()
    for moved_dimension, (d, _) in enumerate(dimensions.moved_dimensions):
        if d is None:
            entries.add(labelled.dims[moved_dimension])
        elif data.shape[d] == labelled.shape[moved_dimension]:
            kept.add(data.dims[d])
    if (picked := _picked(attributes, data.shape, indices)) is None:
        coordinates = _along(data, kept)
    else:
        dim = data.dims[dimensions.indexed.start]
        names = tuple(name for name in labelled.dims if name in entries)
        coordinates = _along(data, kept | {dim}).isel({dim: (names, picked)}, missing_dims="ignore")
    labelled = labelled.assign_coords(coordinates.coords)
    if has_labels(indices):
        own = _along(indices, entries)
        for name in entries & set(own.coords):
            if name in labelled.coords and not labelled.coords[name].equals(own.coords[name]):
                raise framework_errors.two_coordinates(op, name)
        known = [name for name in own.coords if name in labelled.coords]
        labelled = labelled.assign_coords(own.drop_vars(known).coords)
    return labelled


def _along(array: Labelled, names: set[Any]) -> Any:
    """Return the coordinates whose dimensions are all in `names`."""
    coordinates = array.coords.to_dataset()
    return coordinates.drop_vars(
        [name for name, coordinate in array.coords.items() if not names.issuperset(coordinate.dims)]
    )


def _picked(attributes: Attributes, shape: Shape, indices: Any) -> Any:
    """Return the numbers of the slices that a gather selected.

    Return None if it does not select slices, if some are filled, or if the indices are not in
    memory.
    """
    plain, op = plain_array(indices), attributes.op
    if op != "gather" or attributes.fills or adapter_of(type(plain)):
        return None
    arguments = *attributes._replace(axis=0).positional, 0, None
    return native.dispatch_call(op, np.arange(shape[attributes.axis]), plain, None, *arguments)
