"""Operands, which are paths or arrays."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.array_likes import is_masked, is_plain, levels_of
from gatherum._arguments.conversion import as_array, as_indices, as_updates
from gatherum._arguments.weak_values import is_weak
from gatherum._frameworks import registry
from gatherum._model.call import ArraySpec
from gatherum.files import errors
from gatherum.files.durable.journal import check_readable
from gatherum.files.formats import locate
from gatherum.files.formats.decoding import decoded
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import BoxStorage, FlatStorage, Opened, Source
from gatherum.files.resources.disk import MemoryFile
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import SlicedArray
from gatherum.files.row_access.dimension_names import Names, names_in

from .origins import files_of
from .tensors import array_of

Path = str | os.PathLike[str]
Operand = Any  # a path, an operand of the functions on arrays, or an array object of Zarr or h5py
CHUNK = 64 << 10  # an array without chunks is read in pieces of this many bytes
STORED = {"zarr": "Array", "h5py": "Dataset"}


@dataclass(frozen=True)
class ArrayOperand:
    """The location of an operand that is an array passed to the call."""

    role: str
    array: Any
    names: Names = tuple
    path: str = ""
    member: str | None = None

    def __str__(self) -> str:
        return f"the {self.role}"


def files_under(where: Location | ArrayOperand) -> list[str]:
    """Return the absolute paths of the files from which an operand is read."""
    return files_of(where.array) if isinstance(where, ArrayOperand) else [where.resolved]


def find_operand(role: str, operand: Operand, op: str = "gather") -> Location | ArrayOperand:
    """Locate an operand without opening it.

    Lists, numbers, tensors in CPU memory and other objects that NumPy converts to an array are
    operands, as for the operator `op`. Updates without a dtype are later given the dtype of the
    table. Raise TypeError if the operand is neither a path nor an array.
    """
    if isinstance(operand, (str, os.PathLike, Location)):
        return locate(operand)
    if is_plain(operand):
        return ArrayOperand(role, operand)
    names = names_in(operand)
    if _is_stored(operand):
        return ArrayOperand(role, operand, names)
    if _has_paths(operand):
        raise errors.several_operands(op, role, operand)
    if is_masked(operand):
        raise errors.masked_operand(op, role)
    name = "data" if role == "table" else role
    array = registry.spec(op, name, operand)
    if isinstance(array, ArraySpec):
        array = array_of(operand, array)
    if array is None or isinstance(array, (bytes, bytearray)):
        raise errors.neither_path_nor_array(op, role, operand)
    if role == "updates" and is_weak(array):
        return ArrayOperand(role, Weak(op, array))
    if role in ("indices", "groups"):
        return ArrayOperand(role, as_indices(op, array, name))
    return ArrayOperand(role, as_array(op, name, array), names)


def _has_paths(operand: object) -> bool:
    """Return True if a list or tuple contains a string or a path, at any depth of nesting."""
    return any(
        issubclass(item_type, (str, bytes, os.PathLike))
        for _, types in levels_of(operand)
        for item_type in types
    )


@dataclass(frozen=True)
class Weak:
    """Python scalars or lists, which get the dtype of the table."""

    op: str
    values: Any


def _is_stored(operand: object) -> bool:
    """Return True for a Zarr or h5py array object, without importing either package."""
    return any(
        isinstance(operand, item_type)
        for package, name in STORED.items()
        if (module := sys.modules.get(package))
        if isinstance(item_type := getattr(module, name, None), type)
    )


def open_all(
    operands: dict[str, Location | ArrayOperand],
    resources: Resources,
    *,
    in_place: bool = False,
    table: Source | None = None,
) -> dict[str, Source]:
    """Open operands and check their headers without reading an element.

    `in_place` is True if the table will be changed. `table` is the table if it is already open.
    """
    sources: dict[str, Source] = {} if table is None else {"table": table}
    for role, where in operands.items():
        operand = where
        if isinstance(where, ArrayOperand) and isinstance(weak := where.array, Weak):
            updates = as_updates(weak.op, weak.values, sources["table"].dtype)
            operand = ArrayOperand(role, updates)
        sources[role] = _open(operand, resources, role, written=in_place and role == "table")
    return sources


def _open(
    where: Location | ArrayOperand, resources: Resources, role: str, *, written: bool
) -> Source:
    if isinstance(where, ArrayOperand):
        source = _open_held(where, resources)
    else:
        if not written:
            check_readable(where.resolved)
        source = where.format.open(where, resources)
        if resources.decode and source.attributes is not None:
            source = decoded(source, resources.budget, role)
    resources.budget.check_item(where, source.dtype.itemsize)
    return source


def _open_held(where: ArrayOperand, resources: Resources) -> Source:
    if is_plain(where.array):
        return _open_plain(where, np.asarray(where.array), resources.meter)
    boxes = SlicedArray(str(where), where.array, resources.meter, CHUNK)
    resources.budget.check_chunk(where, math.prod(boxes.chunks) * boxes.dtype.itemsize)
    storage = BoxStorage(boxes)
    return Source(where, boxes.shape, boxes.dtype, storage, UNWATCHED, names=where.names)


def _open_plain(where: ArrayOperand, array: NDArray[Any], meter: Meter) -> Source:
    """Open an array in memory without copying it."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    plain = not array.dtype.hasobject and array.dtype.kind != "T"  # other values raise later
    if plain and (array.flags.c_contiguous or fortran):
        file = MemoryFile(array.T if fortran else array, meter)
        flat = FlatStorage.of(file, 0, array.shape, array.dtype, fortran)
        return Source(where, array.shape, array.dtype, flat, UNWATCHED, names=where.names)
    boxes = BoxStorage(SlicedArray(str(where), array, meter, CHUNK))
    return Source(where, array.shape, array.dtype, boxes, UNWATCHED, names=where.names)


class Unwatched(Opened):
    """An array that the caller owns. The caller may change it, so it has no journal."""


UNWATCHED = Unwatched()
