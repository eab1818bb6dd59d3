"""Prepared calls: indices are checked and sorted once for many runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, xarray_labels
from gatherum._arguments.indices import resolve
from gatherum._edges import sparse_edges
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes, Call, is_spec
from gatherum._model.call_types import OperatorName, PrepareAttributes
from gatherum._model.dtypes import narrow_index_dtype
from gatherum._model.errors import edges as edge_errors
from gatherum._model.modes import FILLING
from gatherum._model.operators import Operator, find_operator
from gatherum._plans.index_errors import find_refusal
from gatherum._plans.plans import apply, planned

from .prepared_adapters import check_data
from .sorted_updates import sort_updates

NAME = "prepare"


@public
class Prepared:
    """A call to an operator with known indices, as returned by `gatherum.prepare`.

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

    def __init__(self, call: Call, indices: NumpyArray, named: Any = None) -> None:
        self._call = call
        self._named = named  # a DataArray of the indices, for the names of a result
        self.op, self.dtype = call.op, call.data.dtype
        self.indices = indices
        moved_shape = call.operator.moved_shape(call.data.shape, indices.shape, call.resolved_axis)
        self.shape = call.data.shape if call.operator.scatters else moved_shape
        self._sorted = sort_updates(call, indices)
        self._runners: dict[type, Callable[..., Any]] = {}

    def _runner_of(self, array_type: type) -> Callable[..., Any] | None:
        """Return the function that runs the call on a framework's array type, None for NumPy."""
        adapter = registry.adapter_of(array_type)
        prepared = getattr(adapter, "prepared", None)
        if prepared is not None and array_type not in self._runners:
            like = self._call.data
            runner = prepared(self._resolved, like, self.indices, self._on_arrays)
            self._runners |= dict.fromkeys(
                (array_type, *getattr(adapter, "array_types", ())), runner
            )
        return self._runners.get(array_type)

    @property
    def _resolved(self) -> Attributes:
        """The attributes of a call with the checked indices."""
        call = self._call
        mode = call.mode if call.mode in FILLING else "raise"
        return call.attributes._replace(mode=mode, negative=False)

    @property
    def nbytes(self) -> int:
        """The bytes of memory used by the indices and their order, without copies on devices."""
        return int(self.indices.nbytes) + (0 if self._sorted is None else self._sorted.lists.nbytes)

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
        array_type = type(data)
        run = self._runners.get(array_type)
        if run is None and array_type not in registry.COMMON:
            if xarray_labels.has_labels(data):
                labelled: NDArray[Any] = self._on_labels(data, updates, out, fill_value)
                return labelled
            run = self._runner_of(array_type)
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
        check_data(call.op, call.data, data.shape, data.dtype)
        updates = xarray_labels.plain_array(updates)
        if self._sorted is not None and updates is not None and self._sorted.is_faster():
            result = self._sorted.fold(data, self.indices, updates, out)
            if result is not None:
                return result
        operands = data, self.indices, updates
        return apply(call.op, *operands, out=out, fill_value=fill_value, **self._resolved.keywords)

    def _on_labels(self, data: Any, updates: Any, out: object, fill_value: object) -> Any:
        """Run the call on a DataArray."""
        check_data(self.op, self._call.data, data.shape, data.dtype)
        indices = self.indices if self._named is None else self._named

        def call(data: Any, updates: Any) -> Any:
            return self(data, updates, fill_value=fill_value)

        arguments = data, indices, updates, fill_value, out
        return xarray_labels.run(self._resolved, *arguments, call)

    def __reduce__(self) -> tuple[Callable[..., Prepared], tuple[object, ...]]:
        """Pickle the arguments of `prepare`; unpickling checks the indices again."""
        call = self._call
        like = call.data.shape, call.data.dtype
        attributes = call.attributes.keywords | {"negative": False}
        indices = self.indices if self._named is None else self._named
        return _prepared_again, (call.op, like, indices, attributes)

    def __repr__(self) -> str:
        data = self._call.data
        prepared = f"Prepared {self._call.op} on {data.dtype} {data.shape}"
        return f"<{prepared}, indices {self.indices.shape}>"


def prepare(
    op: OperatorName | Callable[..., Any],
    data_like: object,
    indices: ArrayLike | None,
    /,
    **attributes: Unpack[PrepareAttributes],
) -> Prepared:
    """Prepare a call to an operator for many runs with the same indices.

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
        The indices of the call. If they are an ``xarray.DataArray``, the result for a DataArray
        gets their dimension names, as in the operator. They are copied, so later changes of the
        array have no effect.
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
    gradient that sort the indices also keep the sorted order, in 8 bytes for each index, so that
    later runs do not sort.

    Indices are checked here and stored as 32-bit integers if they fit. If a scatter reduces rows of
    at least 32 bytes along the first dimensions, their order by destination is stored as well, in 4
    bytes for each index and 4 for each destination. Each row of the result is then written once,
    after a fold in registers. If a scatter reduces many items on several threads, 4 or 6 bytes for
    each index record the thread that folds it, for the current number of threads. Threads may share
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
        indices, segments = _expand_pointer(operator, indices, indptr)
    described = registry.spec(operator.name, "indices", indices)
    index_array = conversion.as_indices(operator.name, indices if is_spec(described) else described)
    plan = planned(operator, data_like, index_array, _updates_like(operator, data_like), keywords)
    size = plan.call.data.shape[plan.call.resolved_axis] if segments >= 0 else -1
    if segments != size:
        raise errors.other_shape(operator.name, "indptr", (size + 1,), (segments + 1,))
    frozen = _resolved_copy(plan.call, index_array)
    result = Prepared(plan.call, frozen)
    if xarray_labels.has_labels(named):
        result = Prepared(plan.call, frozen, named.copy(data=frozen))
    if not is_spec(data_like):
        result._runner_of(type(data_like))  # for a graph that is traced later
    return result


def _expand_pointer(operator: Operator, indices: object, indptr: object) -> tuple[NumpyArray, int]:
    """Expand `indptr` to the index of each entry. Return the indices and the number of segments."""
    if operator.name not in ("gather", "scatter_slices"):
        raise errors.unknown_attribute(NAME, "indptr", tuple(Attributes(operator.name).keywords))
    if indices is not None:
        raise edge_errors.two_destinations(operator.name, "indices")
    return sparse_edges.all_segments(operator.name, indptr)


def _prepared_again(
    op: Any, data_like: object, indices: NumpyArray, attributes: PrepareAttributes
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


def _resolved_copy(call: Call, indices: NumpyArray) -> NumpyArray:
    """Return a read-only copy of the indices, resolved, or raise IndexError for an invalid one."""
    if refusal := find_refusal(call, indices):
        raise refusal
    sizes = [call.data.shape[d] for d in call.operator.indexed(indices.shape, call.resolved_axis)]
    resolved = np.empty(indices.shape, narrow_index_dtype(max(sizes, default=0)))
    for component, size in enumerate(sizes):
        selected = (..., component) if call.operator.takes_tuples else ...
        positions, invalid = resolve(indices[selected], size, call.mode, call.negative)
        resolved[selected] = positions if invalid is None else np.where(invalid, -1, positions)
    resolved.flags.writeable = False
    return resolved
