"""Report the invalid entries and repeated destinations of a call's indices without running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, plain_values
from gatherum._arguments.checks import check_range
from gatherum._arguments.indices import number_entries
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, is_spec
from gatherum._model.call_types import IndexAttributes, OperatorName
from gatherum._model.dtypes import is_index
from gatherum._model.errors import Shape
from gatherum._model.errors import frameworks as framework_errors
from gatherum._model.modes import MOVING
from gatherum._model.operators import Operator, find_operator
from gatherum._model.shape_limits import OperandLayout, coordinates_of


@public
class IndexReport(NamedTuple):
    """The result of `index_report` for the indices of a call.

    An entry is one index, or one index tuple of the ``*_nd`` operators. Positions refer to
    `indices` without the tuple dimension.

    Attributes
    ----------
    entries : int
        The number of entries.
    invalid : int
        The number of entries that are out of bounds.
    duplicates : int
        The number of entries whose destination is also addressed by an earlier entry in row-major
        order.
    first_invalid, first_duplicate : tuple of int or None
        The position of the first invalid and of the first duplicate entry.
    """

    entries: int
    invalid: int
    duplicates: int
    first_invalid: Shape | None
    first_duplicate: Shape | None

    def __str__(self) -> str:
        return (
            f"{self.entries} entries, {_counted(self.invalid, 'invalid', self.first_invalid)}, "
            f"{_counted(self.duplicates, 'duplicate', self.first_duplicate)}"
        )


def _counted(count: int, adjective: str, first: Shape | None) -> str:
    return f"{count} {adjective}" + ("" if first is None else f" (first at {list(first)})")


def index_report(
    op: OperatorName | Callable[..., Any],
    data: object,
    indices: ArrayLike,
    /,
    **attributes: Unpack[IndexAttributes],
) -> IndexReport:
    """Count the invalid and the duplicate entries of a call's indices, and locate the first ones.

    Parameters
    ----------
    op : str or callable
        The name of an operator (``"gather_nd"``, or ``"gather-nd"`` as on the command line), or the
        function itself.
    data : array_like, tensor, tuple of int, or (shape, dtype)
        The data of the call: an array, its shape, or a description as in `gatherum.plan`. Only the
        shape matters.
    indices : array_like of int or tensor
        The indices of the call.
    **attributes
        `axis` or `batch_dims`, `mode`, `negative` and, for a gather, `fill_value`, as in the
        operator; `fill_value` has no effect. With the modes ``"clip"`` and ``"wrap"`` an invalid
        entry still counts as invalid, and addresses the destination that the mode moves it to.

    Returns
    -------
    IndexReport
        An immutable report that prints as one line.

    Raises
    ------
    TypeError, ValueError
        As the operator.

    Examples
    --------
    >>> report = gatherum.index_report("gather", (3, 4), [0, 2, 0, 7])
    >>> report.invalid, report.first_duplicate
    (1, (2,))
    >>> print(report)
    4 entries, 1 invalid (first at [3]), 1 duplicate (first at [2])
    """
    operator = find_operator(op, "index_report")
    return reported(operator, _shape(operator.name, data), indices, dict(attributes))


def _shape(op: str, value: object) -> Iterable[int]:
    data: Any = registry.spec(op, "data", value)
    if is_spec(data):
        shape: Iterable[int] = data.shape if isinstance(data, ArraySpec) else data[0]
        return shape
    return data if isinstance(data, tuple) else conversion.as_array(op, "data", data).shape


def reported(
    operator: Operator,
    data_shape: Iterable[int],
    indices: ArrayLike,
    attributes: dict[str, object],
) -> IndexReport:
    """Return the report of `index_report` for a row of the operator table."""
    fill = () if operator.scatters else ("fill_value",)
    names = operator.attribute, "mode", "negative", *fill
    checked = plain_values.attributes_from(operator.name, attributes, names)
    shape = plain_values.as_shape(operator.name, "data", data_shape)
    spec: Any = registry.spec(operator.name, "indices", indices)
    if spec is not indices and is_spec(spec):
        framework = registry.foreign_type(type(indices))
        raise framework_errors.without_values(
            operator.name, "indices", framework.name if framework else "description"
        )
    array = conversion.as_indices(operator.name, spec)
    pins = conversion.pinned(array)
    check_range(operator, shape, array.shape, checked.axis)
    if not is_index(array.dtype):
        raise errors.not_an_index_dtype(operator.name, array.dtype, operator.takes_tuples)
    axis = operator.resolve(shape, array.shape, checked.axis)
    space, axis = _numbered_space(operator, shape, array, axis)
    entries = operator.entries(OperandLayout(array.shape, array.strides)).shape
    element_numbers = number_entries(operator, space, array, axis, "drop", checked.negative)
    invalid = element_numbers < 0
    if checked.mode in MOVING and invalid.any():
        element_numbers = number_entries(
            operator, space, array, axis, checked.mode, checked.negative
        )
    del pins
    duplicates = _duplicates(element_numbers)
    return IndexReport(
        entries=element_numbers.size,
        invalid=int(np.count_nonzero(invalid)),
        duplicates=duplicates.size,
        first_invalid=coordinates_of(int(invalid.argmax()), entries) if invalid.any() else None,
        first_duplicate=coordinates_of(int(duplicates.min()), entries) if duplicates.size else None,
    )


def _numbered_space(
    operator: Operator, data: Shape, indices: NumpyArray, axis: int
) -> tuple[Shape, int]:
    """Check the shapes. Return the sizes of the data's dimensions that distinguish destinations,
    and the position of `axis` among them.
    """
    op = operator.name
    shape_limits.check_rank(op, "`data`", len(data))
    shape_limits.check_rank(op, "`indices`", indices.ndim)
    moved_shape = operator.moved_shape(data, indices.shape, axis)
    operand = "`updates`" if operator.scatters else "the result"
    shape_limits.check_rank(op, operand, len(moved_shape))
    space, axis = operator.space(data, indices.shape, axis)
    shape_limits.check_size(op, "data", space, 0)
    return space, axis


def _duplicates(element_numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the numbers that occurred before, ignoring -1."""
    order = np.argsort(element_numbers, kind="stable")
    ordered = element_numbers[order]
    repeated: NDArray[np.int64] = order[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)]
    return repeated
