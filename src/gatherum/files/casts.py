"""Convert an array in a file to another dtype, or to text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gatherum._model.narrow_floats import FORMATS, rounded, widened
from gatherum._system import native
from gatherum.files.arguments.operands import Path, open_all
from gatherum.files.formats import locate
from gatherum.files.formats.dtypes import is_added, is_bytes, name_of
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import Source
from gatherum.files.gathers import gather_nd_file
from gatherum.files.resources.resources import Budget, Resources
from gatherum.files.resources.stats import size_text

STEP = 1 << 16  # elements that are converted together
PRINTED_WHOLE = 1000  # maximum number of elements of an array that NumPy prints in full
PRINTED_EDGE = 3  # elements printed at each end of a longer array


def cast_copy(
    where: Path | Location, like: np.dtype[Any], dtype: np.dtype[Any], folder: str, name: str,
    *, decode: bool = True,
) -> Location:  # fmt: skip
    """Convert a file's array to another dtype, in a new file in a folder. Return its location.

    `like` is the dtype of the elements if they are plain bytes. `name` is the beginning of the new
    file's name. Raise ValueError if `dtype` cannot represent a value.
    """
    suffix = "safetensors:cast" if is_added(dtype) else "npy"
    location = locate(os.path.join(folder, f"{name}.{suffix}"))
    with _opened(where, folder, decode) as (source, resources), open(location.file, "wb") as file:
        stored = _dtype_of(source, like)
        check_cast(where, stored, dtype)
        array = source.storage.flat(replace(resources, budget=Budget(64 << 20))).array
        file.write(location.format.checked_header(location, source.shape, dtype))
        for start in range(0, array.size, STEP):
            values = array.read(start, min(start + STEP, array.size))
            file.write(_converted(where, values, stored, dtype).tobytes())
    return location


def stored_dtype(where: Path | Location, folder: str, *, decode: bool = True) -> np.dtype[Any]:
    """Return the dtype of a file's array."""
    with _opened(where, folder, decode) as (source, _):
        return source.dtype


def description(where: Path | Location, folder: str) -> str:
    """Return the dtype, the shape and the size of a file's array, as it is stored."""
    with _opened(where, folder, False) as (source, _):
        return f"{name_of(source.dtype)} {source.shape}, {size_text(source.nbytes)}"


def check_cast(where: object, stored: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    """Raise ValueError if elements of one dtype cannot be converted to another."""
    source, target = (
        np.dtype(np.float64) if name_of(one_dtype) in FORMATS else one_dtype
        for one_dtype in (stored, dtype)
    )
    numeric = source.kind in "biufc" and target.kind in "biufc"
    if not numeric or not np.can_cast(source, target, "same_kind"):
        values_text = f"values of dtype {name_of(stored)}"
        raise ValueError(f"{where}: {values_text} do not become {name_of(dtype)}")


def copy_array(where: Location, out: Path | Location, **options: Any) -> None:
    """Write a file's array to another file, in any format that can be written."""
    gather_nd_file(where, np.zeros(0, np.int64), cast(Path, out), **options)


def array_text(
    where: Path | Location, like: np.dtype[Any], folder: str, *, decode: bool = True
) -> str:
    """Return the array in a file as NumPy prints it. Only the printed part of a long array is read.

    `like` is the dtype of the elements if they are plain bytes.
    """
    with _opened(where, folder, decode) as (source, _):
        stored, shape = _dtype_of(source, like), source.shape
    whole = math.prod(shape) <= PRINTED_WHOLE
    indices = np.zeros(0, np.int64)
    if not whole:
        edges = [_edges(size) for size in shape]
        indices = np.stack(np.meshgrid(*edges, indexing="ij"), -1)
    values = gather_nd_file(where, indices, decode=decode)
    with np.printoptions(threshold=PRINTED_WHOLE if whole else 0, edgeitems=PRINTED_EDGE):
        return str(_decoded(values, stored))


def _edges(size: int) -> NDArray[np.int64]:
    """Return the positions to print along a dimension, and one of the omitted positions."""
    return (
        np.arange(size)
        if size <= 2 * PRINTED_EDGE
        else np.r_[: PRINTED_EDGE + 1, size - PRINTED_EDGE : size]
    )


@contextmanager
def _opened(
    where: Path | Location, folder: str, decode: bool
) -> Iterator[tuple[Source, Resources]]:
    with ExitStack() as stack:
        resources = Resources.of("cast", stack, spill_dir=folder, decode=decode)
        yield open_all({"table": locate(where)}, resources)["table"], resources


def _dtype_of(source: Source, like: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a file, or `like` if its elements are plain bytes of the same size."""
    takes_like = is_added(like) and is_bytes(source.dtype, like.itemsize)
    return like if takes_like else source.dtype


def _decoded(values: NDArray[Any], stored: np.dtype[Any]) -> NDArray[Any]:
    """Convert values to a NumPy dtype."""
    name = name_of(stored)
    return widened(values.view(FORMATS[name].code_type), name) if name in FORMATS else values


def _converted(
    where: object, values: NDArray[Any], stored: np.dtype[Any], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Convert values to another dtype. Raise ValueError if the dtype cannot represent a value."""
    values, name = _decoded(values, stored), name_of(dtype)
    if name in FORMATS:
        rounding = rounded(values.astype(np.float64), name)
        fits, result = rounding.stay_finite and rounding.have_codes, rounding.codes
    else:
        with np.errstate(all="ignore"), native.FloatMode():
            result = values.astype(dtype)
        if dtype.kind in "fc":
            fits = bool((np.isfinite(result) | ~np.isfinite(values)).all())
        else:
            fits = bool((result == values).all())
    if not fits:
        raise ValueError(f"{where}: has values that {name} cannot represent")
    return result
