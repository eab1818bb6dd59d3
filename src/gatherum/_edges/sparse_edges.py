"""Convert a CSR pointer or a sparse matrix to two indices for each edge.

A matrix is recognized by its attributes; neither SciPy nor torch is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from gatherum._arguments import conversion, plain_values
from gatherum._frameworks import registry
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import is_spec
from gatherum._model.callers import renamed
from gatherum._model.dtypes import is_index, narrow_index_dtype
from gatherum._model.errors import edges as edge_errors

from .edge_reductions import NAME, Pointer

GATHER, SCATTER, POINTER = "gather_indices", "scatter_indices", "indptr"


class Matrix(NamedTuple):
    """The arrays of a sparse matrix, before their conversion.

    If `rows` or `columns` is a pointer array, `pointer_operand` is the name of that
    operand; otherwise it is "". `names` maps operands to attributes of the matrix, for messages.
    """

    shape: tuple[int, ...]
    rows: Any
    columns: Any
    values: Any
    pointer_operand: str
    names: dict[str, str]


class Edges(NamedTuple):
    """Edges as arguments of `aggregate`, and a context that renames operands in messages."""

    sources: Any
    targets: Any
    size: Any
    weights: Any
    renaming: AbstractContextManager[None]

    @property
    def ends(self) -> tuple[Any, Any, Any]:
        """The two indices of each edge, and the number of destinations."""
        return self.sources, self.targets, self.size


def list_edges(
    data: Any, sources: object, targets: object, size: object, weights: object, indptr: object,
    axis: int = 0,
) -> Edges:  # fmt: skip
    """Convert edges given by a CSR pointer or a sparse matrix to two indices for each edge."""
    matrix = _matrix_of(sources)
    if targets is not None and indptr is not None:
        raise edge_errors.two_destinations(NAME, SCATTER)
    if targets is not None and matrix is not None:
        raise edge_errors.destinations_twice(NAME, SCATTER)
    if targets is not None:
        raise errors.not_an_integer(NAME, "size", size)
    if indptr is not None:
        if matrix is not None:
            raise edge_errors.destinations_twice(NAME, POINTER)
        target_numbers, rows = _segments_or_pointer(data, POINTER, indptr, GATHER, sources)
        return Edges(
            sources, target_numbers, _checked_size(size, rows, POINTER), weights, nullcontext()
        )
    if matrix is None:
        raise edge_errors.no_destinations(NAME)
    if weights is not None:
        raise edge_errors.weights_twice(NAME)
    if len(matrix.shape) != 2:
        raise edge_errors.not_of_rank(NAME, GATHER, 2, len(matrix.shape))
    owner = registry.adapter_of(type(sources))
    if owner is not None and owner is not registry.adapter_of(type(data)):
        raise edge_errors.data_not_a_tensor(NAME, GATHER, type(data).__name__)
    size = _checked_size(size, matrix.shape[0], GATHER)
    if registry.adapter_member(NAME, {"data": data}) is None:
        data = conversion.as_array(NAME, "data", data)
    rows = data.shape[shape_limits.resolve_axis(NAME, tuple(data.shape), axis)]
    if rows != matrix.shape[1]:
        raise edge_errors.other_columns(NAME, rows, matrix.shape[1])
    cast = _cast_expression(data, matrix)
    with _renaming(matrix.names, cast):
        ends = _sources_and_targets(data, matrix)
        count, values_shape = tuple(np.shape(ends[0])), tuple(np.shape(matrix.values))
        if values_shape != count:  # a single weight for all edges is not a matrix
            raise errors.other_shape(NAME, "weights", count, values_shape)
    return Edges(*ends, size, matrix.values, _renaming(matrix.names, cast))


def _cast_expression(data: Any, matrix: Matrix) -> str:
    """Return the expression that converts the whole matrix to the dtype of the data."""
    if matrix.names["weights"] == "values()":
        return f"{GATHER}.to(data.dtype)"
    if isinstance(data.dtype, np.dtype):
        return f"{GATHER}.astype(data.dtype)"
    return f"{GATHER}.astype({str(data.dtype).removeprefix('torch.')!r})"


def _sources_and_targets(data: Any, matrix: Matrix) -> tuple[Any, Any]:
    """Return the columns and rows of a matrix, which are the sources and targets of its edges."""
    rows, columns = matrix.rows, matrix.columns
    if matrix.pointer_operand == GATHER:
        columns = _segments_or_pointer(data, GATHER, columns, SCATTER, rows, matrix.shape[1])[0]
    elif matrix.pointer_operand == SCATTER:
        rows = _segments_or_pointer(data, SCATTER, rows, GATHER, columns, matrix.shape[0])[0]
    return columns, rows


def _checked_size(size: object, count: int, operand: str) -> int:
    if size is not None and plain_values.as_size(NAME, "size", size) != count:
        raise edge_errors.other_size(NAME, count, operand, size)
    return count


def _segments_or_pointer(
    data: Any,
    operand: str,
    indptr: object,
    other_operand: str,
    edges: object,
    size: int | None = None,
) -> tuple[Any, int]:
    """Return the segment of each edge according to `indptr`, and the number of segments.

    `edges` has the other end of each edge; `other_operand` is the name of that operand. If the
    core can use the pointer directly to reduce the rows, return the pointer as a `Pointer`.
    """
    xp = registry.adapter_member(NAME, {"data": data, operand: indptr, other_operand: edges})
    if xp is None or not xp.traces_pointers:
        pointer_array: Any = conversion.as_indices(NAME, indptr, operand)
        ends = conversion.as_indices(NAME, edges, other_operand)
        count = _checked_edge_count(
            operand, pointer_array.dtype, pointer_array.shape, other_operand, ends, size
        )
        if other_operand == GATHER and xp is None:
            return _nonempty_pointer(operand, pointer_array), len(pointer_array) - 1
        return segment_numbers(NAME, operand, pointer_array, count), len(pointer_array) - 1
    pointer = xp.as_groups(NAME, operand, indptr, data)
    other_ends = xp.as_groups(NAME, other_operand, edges, data)
    count = _checked_edge_count(
        operand, xp.plan_dtype(pointer), tuple(pointer.shape), other_operand, other_ends, size
    )
    if (segments := xp.traced_segments(NAME, operand, pointer, other_ends)) is None:
        if other_operand == GATHER:
            return _nonempty_pointer(operand, pointer), pointer.shape[0] - 1
        segments = segment_numbers(NAME, operand, xp.to_numpy(pointer), count)
    return segments, pointer.shape[0] - 1


def _nonempty_pointer(operand: str, indptr: Any) -> Pointer:
    if len(indptr) == 0:
        raise edge_errors.empty_pointer(NAME, operand)
    return Pointer(operand, indptr)


def _checked_edge_count(
    operand: str,
    dtype: Any,
    shape: tuple[int, ...],
    other_operand: str,
    edges: Any,
    size: int | None,
) -> int:
    """Return the number of edges.

    Raise an error if the CSR pointer has an invalid dtype or shape, or if the array of edges is not
    one-dimensional.
    """
    _check_pointer(NAME, operand, dtype, shape, size)
    if len(edges.shape) != 1:
        raise edge_errors.not_of_rank(NAME, other_operand, 1, len(edges.shape))
    count: int = edges.shape[0]  # or a symbol of a graph
    return count


def _check_pointer(
    op: str, operand: str, dtype: Any, shape: tuple[int, ...], size: int | None
) -> None:
    if not is_index(dtype):
        raise errors.not_an_index_dtype(op, dtype, False, operand)
    if len(shape) != 1:
        raise edge_errors.not_of_rank(op, operand, 1, len(shape))
    if size is not None and shape != (size + 1,):
        raise errors.other_shape(op, operand, (size + 1,), shape)


def all_segments(op: str, indptr: object) -> tuple[NumpyArray, int]:
    """Return the segment of each entry, and the number of segments.

    The last value of `indptr` is the number of entries.
    """
    described = registry.spec(op, POINTER, indptr)
    pointer = conversion.as_indices(op, indptr if is_spec(described) else described, POINTER)
    _check_pointer(op, POINTER, pointer.dtype, pointer.shape, None)
    end = int(pointer[-1]) if len(pointer) else 0
    if end >= 2**63:
        raise errors.too_wide_index(op, POINTER, end, (len(pointer) - 1,))
    shape_limits.check_result(op, (end,), np.dtype(np.int64))
    return segment_numbers(op, POINTER, pointer, end), len(pointer) - 1


def segment_numbers(op: str, operand: str, indptr: NumpyArray, edges: int) -> NumpyArray:
    """Return the segment of each edge, or raise ValueError for an invalid CSR pointer."""
    if len(indptr) == 0:
        raise edge_errors.empty_pointer(op, operand)
    pointer = np.array(indptr, indptr.dtype.newbyteorder("="))  # a copy: safe from other threads
    if pointer[0] != 0:
        raise edge_errors.pointer_begins(op, operand, int(pointer[0]))
    if (decreases := pointer[1:] < pointer[:-1]).any():
        position = int(decreases.argmax())
        raise edge_errors.pointer_falls(
            op, operand, int(pointer[position + 1]), int(pointer[position]), position + 1
        )
    if pointer[-1] != edges:
        raise edge_errors.pointer_ends(op, operand, edges, int(pointer[-1]))
    ends = pointer.astype(np.int64)
    sizes = ends[1:] - ends[:-1]
    return np.repeat(np.arange(len(sizes), dtype=narrow_index_dtype(len(sizes))), sizes)


def _matrix_of(value: object) -> Matrix | None:
    """Return the arrays of a sparse matrix, or None for any other value."""
    matrix_class = type(value)
    if hasattr(matrix_class, "tocsr") and hasattr(matrix_class, "format"):
        return _of_scipy(value)
    layout = str(getattr(value, "layout", ""))
    if layout.startswith("torch.sparse"):
        return _of_torch(value, layout.removeprefix("torch."))
    return None


def _of_scipy(value: Any) -> Matrix:
    """Read a SciPy matrix or array. SciPy ignores entries beyond the end of `indptr`."""
    layout, names = value.format, {"weights": "data"}
    if layout == "coo":
        rows, columns = (value.row, value.col) if len(value.shape) == 2 else (None, None)
        names |= {SCATTER: "row", GATHER: "col"}
        return Matrix(value.shape, rows, columns, value.data, "", names)
    if layout not in ("csr", "csc"):
        raise edge_errors.other_format(NAME, GATHER, layout, "write {}.tocsr()")
    indptr, indices, values = value.indptr, value.indices, value.data
    if all(
        isinstance(array, np.ndarray) and array.ndim == 1 for array in (indptr, indices, values)
    ):
        end = int(indptr[-1]) if indptr.size and is_index(indptr.dtype) else -1
        if len(indices) < end <= len(values):  # the pointer and the values agree
            raise errors.other_shape(NAME, f"{GATHER}.indices", (end,), indices.shape)
        if 0 <= end <= min(len(indices), len(values)):
            indices, values = indices[:end], values[:end]
    return _compressed(value.shape, indptr, indices, values, layout == "csr",
                       names, "indptr", "indices")  # fmt: skip


def _of_torch(value: Any, layout: str) -> Matrix:
    """Read a sparse tensor, whose values may require gradients."""
    names = {"weights": "values()"}
    if layout == "sparse_csr":
        arrays = value.crow_indices(), value.col_indices(), value.values()
        return _compressed(value.shape, *arrays, True, names, "crow_indices()", "col_indices()")
    if layout == "sparse_csc":
        arrays = value.ccol_indices(), value.row_indices(), value.values()
        return _compressed(value.shape, *arrays, False, names, "ccol_indices()", "row_indices()")
    if layout != "sparse_coo":
        raise edge_errors.other_format(NAME, GATHER, layout, "write {}.to_dense().to_sparse_csr()")
    if not value.is_coalesced():
        raise edge_errors.other_format(
            NAME, GATHER, "sparse_coo with duplicates", "write {}.coalesce()"
        )
    indices = value.indices()
    rows, columns = (indices[0], indices[1]) if len(indices) == 2 else (None, None)
    names |= {SCATTER: "indices()[0]", GATHER: "indices()[1]"}
    return Matrix(tuple(value.shape), rows, columns, value.values(), "", names)


def _compressed(
    shape: Any, indptr: Any, indices: Any, values: Any, by_row: bool, names: dict[str, str],
    pointer: str, entries: str,
) -> Matrix:  # fmt: skip
    if by_row:
        names |= {SCATTER: pointer, GATHER: entries}
        return Matrix(tuple(shape), indptr, indices, values, SCATTER, names)
    names |= {GATHER: pointer, SCATTER: entries}
    return Matrix(tuple(shape), indices, indptr, values, GATHER, names)


@contextmanager
def _renaming(names: dict[str, str], cast: str) -> Iterator[None]:
    """In error messages, replace the names of operands with the attributes of a matrix.

    Messages about a wrong dtype of the weights suggest `cast`.
    """
    try:
        yield
    except (IndexError, TypeError, ValueError) as error:
        attributes = {name: f"{GATHER}.{names[name]}" for name in (GATHER, SCATTER, "weights")}
        casts = {f"weights.{method}(data.dtype)": cast for method in ("astype", "to")}
        renamed_error = renamed(error, NAME, attributes | casts, of=(NAME,))
        if renamed_error is None:
            raise
        raise renamed_error from None
