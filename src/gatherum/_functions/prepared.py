"""Prepared calls: indices are checked and sorted once for many runs."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, Unpack, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, xarray_labels
from gatherum._arguments.indices import resolve
from gatherum._edges import sparse_edges
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._model import errors, nests
from gatherum._model.call import Array, ArraySpec, Attributes, Call, is_spec
from gatherum._model.call_types import OperatorName, PrepareAttributes
from gatherum._model.errors import edges as edge_errors
from gatherum._model.modes import FILLING
from gatherum._model.nests import Loop
from gatherum._model.operators import Operator, find_operator
from gatherum._model.shape_limits import OperandLayout
from gatherum._plans.index_errors import find_refusal
from gatherum._plans.overlap import check_out_memory
from gatherum._plans.plans import apply, planned
from gatherum._system import native

NAME = "prepare"
# Shorter rows are folded faster in the order of the updates, because a list would be as large as
# the rows.
SHORTEST_ROW = 32
# Items have lists only for at least FEWEST_ITEMS updates, at least one update for each destination,
# and at least FEWEST_BYTES of results. Below these limits one thread is as fast as two. A list
# covers about BLOCK_BYTES of results, so that their accumulators fit a core's private cache.
FEWEST_ITEMS = 1 << 16
FEWEST_BYTES = 32 << 10
BLOCK_BYTES = 1 << 20


@public
class Prepared:
    """A call of an operator with known indices, as `gatherum.prepare` returns it.

    Attributes
    ----------
    op : str
        The operator's name.
    shape : tuple of int
        The result's shape.
    dtype : numpy.dtype
        The dtype of the data and of the result.
    indices : numpy.ndarray
        The indices after `mode` and `negative` are applied, read-only and of the same shape. A
        dropped or filled entry is -1.
    nbytes : int
        The memory that the prepared call holds.
    """

    def __init__(self, call: Call, indices: Array, named: Any = None) -> None:
        self._call = call
        self._named = named  # a DataArray of the indices, for the names of a result
        self.op, self.dtype = call.op, call.data.dtype
        self.indices = indices
        operator, axis = call.operator, call.resolved_axis
        self._moved = operator.moved(call.data.shape, indices.shape, axis)
        self.shape = call.data.shape if operator.scatters else self._moved
        self._rows = _row_lists(call, indices, axis)
        self._runners: dict[type, Callable[..., Any]] = {}

    def _runner_of(self, kind: type) -> Callable[..., Any] | None:
        """Return the function that runs the call on a framework's array type, None for NumPy."""
        adapter = registry.adapter_of(kind)
        prepared = getattr(adapter, "prepared", None)
        if prepared is not None and kind not in self._runners:
            like = self._call.data
            runner = prepared(self._resolved, like, self.indices, self._on_arrays)
            self._runners |= dict.fromkeys((kind, *getattr(adapter, "kinds", ())), runner)
        return self._runners.get(kind)

    @property
    def _resolved(self) -> Attributes:
        """The attributes of a call with the checked indices."""
        call = self._call
        mode = call.mode if call.mode in FILLING else "raise"
        return call.attributes._replace(mode=mode, negative=False)

    @property
    def nbytes(self) -> int:
        """The memory of the indices and their order, in bytes, without copies on devices."""
        return int(self.indices.nbytes) + (0 if self._rows is None else self._rows.lists.nbytes)

    def __call__(
        self,
        data: ArrayLike,
        updates: ArrayLike | None = None,
        *,
        out: NDArray[Any] | None = None,
        fill_value: object = 0,
    ) -> NDArray[Any]:
        """Run the call on data and, for a scatter, on updates.

        Parameters
        ----------
        data : array_like
            Of the shape and dtype that the call was prepared for, with any strides.
        updates : array_like, optional
            For scatters, as in the operator.
        out : numpy.ndarray, optional
            As in the operator.
        fill_value : object
            For gathers, as in the operator.

        Returns
        -------
        numpy.ndarray
            Bit-for-bit equal to the operator's result for the prepared indices.

        Raises
        ------
        TypeError, ValueError
            In the same cases as the operator, and if `data` does not have the shape and dtype of
            the prepared call. Indices are already checked.
        """
        kind = type(data)
        run = self._runners.get(kind)
        if run is None and kind not in registry.COMMON:
            if xarray_labels.has_labels(data):
                labelled: NDArray[Any] = self._on_labels(data, updates, out, fill_value)
                return labelled
            run = self._runner_of(kind)
        if run is None:
            return self._on_arrays(data, updates, out=out, fill_value=fill_value)
        result: NDArray[Any] = run(data, updates, out, fill_value)
        return result

    def _on_arrays(
        self, data: ArrayLike, updates: object = None, *, out: Any = None, fill_value: object = 0
    ) -> NDArray[Any]:
        """Run the call on NumPy arrays."""
        call = self._call
        data = conversion.as_array(call.op, "data", data)
        self._check_data(data)
        updates = xarray_labels.plain_array(updates)
        if self._rows is not None and updates is not None and self._pays(self._rows):
            done = self._folded(self._rows, data, updates, out)
            if done is not None:
                return done
        operands = data, self.indices, updates
        return apply(call.op, *operands, out=out, fill_value=fill_value, **self._resolved.keywords)

    def _on_labels(self, data: Any, updates: Any, out: object, fill_value: object) -> Any:
        """Run the call on a DataArray."""
        self._check_data(data)
        indices = self.indices if self._named is None else self._named

        def call(data: Any, updates: Any) -> Any:
            return self(data, updates, fill_value=fill_value)

        arguments = data, indices, updates, fill_value, out
        return xarray_labels.run(self._resolved, *arguments, call)

    def _check_data(self, data: Any) -> None:
        """Raise unless data have the shape and dtype of the prepared call."""
        call = self._call
        if data.shape != call.data.shape:
            raise errors.other_prepared_shape(call.op, call.data.shape, data.shape)
        if data.dtype != call.data.dtype:
            raise errors.other_prepared_dtype(call.op, call.data.dtype, data.dtype)

    def __reduce__(self) -> tuple[Callable[..., Prepared], tuple[object, ...]]:
        """Pickle the arguments of `prepare`; unpickling checks the indices again."""
        call = self._call
        like = call.data.shape, call.data.dtype
        attributes = call.attributes.keywords | {"negative": False}
        indices = self.indices if self._named is None else self._named
        return _prepared_again, (call.op, like, indices, attributes)

    def _pays(self, rows: _Rows) -> bool:
        """Whether a scatter is faster if the updates are sorted.

        On one thread, adding them in the original order is often faster.
        """
        call = self._call
        fresh = call.attributes.fold.needs_accumulator(call.data.dtype)
        return native.get_num_threads() > 1 or (fresh and rows.block == 1)

    def _folded(self, rows: _Rows, data: Array, updates: object, out: object) -> Array | None:
        """Fold updates by the lists; None if the updates or the result cannot be viewed as rows."""
        call = self._call
        values = conversion.as_updates(call.op, updates, data.dtype)
        if values.shape != self._moved or values.dtype != data.dtype:
            return None  # the operator broadcasts the updates, or raises
        plain_out = None
        if out is not None:
            plain_out = conversion.as_plain_out(call.op, out, data.shape, data.dtype)
            check_out_memory(call.op, data, self.indices, values, plain_out)
        source = rows.of_updates(values)
        result: Array = (
            native.new_result(data.dtype, data.shape) if plain_out is None else plain_out
        )
        target, start = rows.of_data(result), rows.of_data(data)
        if source is None or target is None or start is None or start.strides != target.strides:
            return None
        pins = conversion.pinned(values, data, plain_out)
        program = rows.edges.row_program(source, target, call.attributes.fold)
        rows.lists.fold(program, source, None, start, np.zeros((), data.dtype), target, out is None)
        del pins
        return result if out is None else out  # type: ignore[return-value]  # as_out has checked it

    def __repr__(self) -> str:
        data = self._call.data
        prepared = f"Prepared {self._call.op} on {data.dtype} {data.shape}"
        return f"<{prepared}, indices {self.indices.shape}>"


class _Rows(NamedTuple):
    """The updates of a scatter, sorted by destination or by block of destinations."""

    lists: native.RowLists
    edges: EdgeLoops
    block: int
    keyed: int  # the number of leading dimensions of the data that indices address
    entries: int  # the number of leading dimensions of the updates that have an index

    def of_data(self, array: Array) -> Array | None:
        return _rows_of(array, self.keyed)

    def of_updates(self, array: Array) -> Array | None:
        return _rows_of(array, self.entries)


def _rows_of(array: Array, leading: int) -> Array | None:
    """View the leading dimensions as one; None if their strides do not allow it."""
    steps = zip(array.shape[:leading], array.strides[:leading], strict=True)
    merged = nests.collapse(Loop(n, step, 0, 0) for n, step in steps) or [nests.ONCE]
    if len(merged) > 1:
        return None
    shape = (prod(array.shape[:leading]), *array.shape[leading:])
    return as_strided(array, shape, (merged[0].data, *array.strides[leading:]))


def _row_lists(call: Call, indices: Array, axis: int) -> _Rows | None:
    """Return the lists of a scatter that reduces along the first dimensions, else None."""
    if call.updates is None or call.reduction == "none" or axis != 0:
        return None
    dimensions = call.operator.dimensions(len(call.data.shape), indices.shape, axis)
    if dimensions.shared:
        return None
    keyed = dimensions.addressed.stop
    row = prod(call.data.shape[keyed:]) * call.data.dtype.itemsize
    sizes = call.data.shape[:keyed]
    entries = call.operator.entries(OperandLayout(indices.shape, indices.strides)).shape
    if keyed == 0 or 0 in sizes or 0 in entries:
        return None
    block = 1 if row >= SHORTEST_ROW else _block(call, prod(sizes), prod(entries))
    if block == 0:
        return None
    element_numbers = indices
    if call.operator.takes_tuples:
        within = np.zeros(indices.shape[:-1], np.int64)
        for component, size in zip(np.moveaxis(indices, -1, 0), sizes, strict=True):
            within = within * size + component.astype(np.int64)
        element_numbers = np.where((indices < 0).any(-1), -1, within)
    end = EdgeEnd("indices", np.ascontiguousarray(element_numbers).reshape(-1), prod(sizes))
    edges = EdgeLoops.of(end.indices, end.indices, (0,))
    lists = edges.make_lists(call.op, end, None, False, "drop", False, block)
    return _Rows(lists, edges, block, keyed, len(entries))


def _block(call: Call, destinations: int, updates: int) -> int:
    """Return the number of destinations that share a list, 0 if lists would not be faster.

    With lists, each thread reads only the updates of the destinations that it writes, and only one
    thread reads the indices.
    """
    threads, result = native.get_num_threads(), destinations * call.data.dtype.itemsize
    items = prod(call.data.shape) == destinations
    if not items or threads == 1 or result < FEWEST_BYTES:
        return 0
    if updates < max(FEWEST_ITEMS, destinations):
        return 0
    blocks = max(threads, -(-result // BLOCK_BYTES))
    return -(-destinations // blocks)


def prepare(
    op: OperatorName | Callable[..., Any],
    data_like: object,
    indices: ArrayLike | None,
    /,
    **attributes: Unpack[PrepareAttributes],
) -> Prepared:
    """Prepare a call of an operator for many runs with the same indices.

    ``prepare(op, data_like, indices, ...)(data, updates)`` is bit-for-bit equal to
    ``op(data, indices, updates, ...)``.

    Parameters
    ----------
    op : str or callable
        The name of an operator (``"scatter_nd"``, or ``"scatter-nd"`` as on the command line), or
        the function itself.
    data_like : array_like or (shape, dtype)
        The data's shape and dtype, or an array, tensor or JAX array that has them.
    indices : array_like of int
        The indices of the call. If they are an ``xarray.DataArray``, the result for a DataArray has
        their names, as in the operator. They are copied, so later changes of the array have no
        effect.
    **attributes
        The operator's other arguments, except `out` and `fill_value`, which are arguments of the
        runs. `gather` and `scatter_slices` accept `indptr` if `indices` is None: entries
        ``indptr[i]`` up to ``indptr[i + 1]`` have index i, as in a CSR matrix.

    Returns
    -------
    Prepared
        A callable that runs the call.

    Raises
    ------
    TypeError, ValueError, IndexError
        As the operator.

    See Also
    --------
    plan : A call without its data and indices.
    aggregate : Gather and scatter in one pass.

    Notes
    -----
    A prepared call also runs on tensors and JAX arrays, with the operator's derivatives, and on
    arrays on a CUDA device. To trace it with ``torch.compile``, prepare it from a tensor. On a CUDA
    device, the first run on a stream copies the indices there. The first scatter and the first
    gradient that sort also keep the order, in 8 bytes for each index, and later runs do not sort.

    Indices are checked here and stored as 32-bit integers if they fit. If a scatter reduces rows of
    at least 32 bytes along the first dimensions, their order by destination is stored as well, in 4
    bytes for each index and 4 for each destination. Each row of the result is then written once,
    after a fold in registers. If a scatter reduces many items on several threads, 4 or 6 bytes for
    each index store the thread that folds it, for the current number of threads. Threads may share
    a prepared call.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> add = gatherum.prepare("scatter_slices", ((3, 2), "f4"), [2, 0, 2], reduction="add")
    >>> add(np.zeros((3, 2), "f4"), np.ones((3, 2), "f4"))
    array([[1., 1.],
           [0., 0.],
           [2., 2.]], dtype=float32)
    """
    operator = find_operator(op, NAME)
    data_like, named = xarray_labels.plain_array(data_like), cast(Any, indices)
    indices = xarray_labels.plain_array(indices)
    for name in ("out", "fill_value"):
        if name in attributes:
            raise errors.unknown_attribute(NAME, name, tuple(Attributes(operator.name).keywords))
    keywords = {**attributes}
    segments = -1
    if (indptr := keywords.pop("indptr", None)) is not None:
        indices, segments = _pointed(operator, indices, indptr)
    described = registry.spec(operator.name, "indices", indices)
    plain = conversion.as_indices(operator.name, indices if is_spec(described) else described)
    plan = planned(operator, data_like, plain, _updates_like(operator, data_like), keywords)
    size = plan.call.data.shape[plan.call.resolved_axis] if segments >= 0 else -1
    if segments != size:
        raise errors.other_shape(operator.name, "indptr", (size + 1,), (segments + 1,))
    frozen = _frozen(plan.call, plain)
    result = Prepared(plan.call, frozen)
    if xarray_labels.has_labels(named):
        result = Prepared(plan.call, frozen, named.copy(data=frozen))
    if not is_spec(data_like):
        result._runner_of(type(data_like))  # for a graph that is traced later
    return result


def _pointed(operator: Operator, indices: object, indptr: object) -> tuple[Array, int]:
    """Expand `indptr` to the index of each entry. Return the indices and the number of segments."""
    if operator.name not in ("gather", "scatter_slices"):
        raise errors.unknown_attribute(NAME, "indptr", tuple(Attributes(operator.name).keywords))
    if indices is not None:
        raise edge_errors.two_destinations(operator.name, "indices")
    return sparse_edges.all_segments(operator.name, indptr)


def _prepared_again(
    op: Any, data_like: object, indices: Array, attributes: PrepareAttributes
) -> Prepared:
    """Unpickle a prepared call."""
    return prepare(op, data_like, indices, **attributes)


def _updates_like(operator: Operator, data_like: object) -> object:
    """Return updates that broadcast to any shape, of the data's dtype."""
    if not operator.scatters:
        return None
    if is_spec(data_like):
        return (), data_like[1]  # type: ignore[index]  # it is a tuple
    described: Any = registry.spec(operator.name, "data", data_like)
    if not is_spec(described):
        described = conversion.as_array(operator.name, "data", described)
    return ArraySpec.contiguous((), described.dtype)


def _frozen(call: Call, indices: Array) -> Array:
    """Return a read-only copy of the indices, resolved, or raise IndexError for an invalid one."""
    if refusal := find_refusal(call, indices):
        raise refusal
    sizes = [call.data.shape[d] for d in call.operator.indexed(indices.shape, call.resolved_axis)]
    narrow = np.int32 if max(sizes, default=0) <= np.iinfo(np.int32).max else np.int64
    kept = np.empty(indices.shape, narrow)
    for c, size in enumerate(sizes):
        component = (..., c) if call.operator.takes_tuples else ...
        positions, invalid = resolve(indices[component], size, call.mode, call.negative)
        kept[component] = positions if invalid is None else np.where(invalid, -1, positions)
    kept.flags.writeable = False
    return kept
