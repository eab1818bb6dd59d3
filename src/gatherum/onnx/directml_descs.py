"""Map an ONNX node to a DirectML operator desc.

In ONNX each tensor has its own rank; in DirectML all tensors of an operator have one
DimensionCount. Shapes are padded with leading ones to the smallest sufficient number of dimensions
that the level supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gatherum._model.operators import OPERATORS
from gatherum.directml import BufferTensorDesc, FeatureLevel, OperatorDesc, TensorDataType, check
from gatherum.directml.descs import DESCS
from gatherum.directml.levels import OPERATORS as LISTED
from gatherum.directml.levels import SUPPORT

from .graphs import Dimension

Shape: TypeAlias = tuple[int, ...]
PartialShape: TypeAlias = tuple[Dimension, ...]


@dataclass(frozen=True)
class NodeCall:
    """The properties of a node for DirectML. `axis` is the operator's dimension attribute."""

    op: str
    axis: int
    types: Mapping[str, TensorDataType]
    shapes: Mapping[str, Shape]
    least_rank: int = 1

    def moved_shape(self) -> Shape:
        """Return the shape of a gather's result or of a scatter's updates, or raise ValueError."""
        data, indices = self.shapes["data"], self.shapes["indices"]
        operator = OPERATORS[self.op]
        return operator.moved_shape(data, indices, operator.resolve(data, indices, self.axis))

    @property
    def desc_type(self) -> type[OperatorDesc]:
        """The type of the node's operator desc."""
        operator = OPERATORS[self.op]
        batched = operator.takes_tuples and self.axis > 0  # the last of the names supports batches
        return DESCS[operator.directml[-1 if batched else 0]]


def desc_of(call: NodeCall, level: FeatureLevel) -> OperatorDesc:
    """Return the operator desc of a call for a feature level, without its output."""
    data, indices = call.shapes["data"], call.shapes["indices"]
    rank = max(len(call.moved_shape()), *map(len, call.shapes.values()), call.least_rank)
    dimension_count = _dimension_count(call, level, rank)
    tensors = [
        BufferTensorDesc(
            call.types[name], (1,) * (dimension_count - len(call.shapes[name])) + call.shapes[name]
        )
        for name in ("data", "indices", "updates")
        if name in call.shapes
    ]
    attributes: tuple[int, ...]
    if OPERATORS[call.op].takes_tuples:
        attributes = len(data), len(indices), *((call.axis,) if call.axis else ())
    else:
        axis = call.axis % len(data) + dimension_count - len(data)
        attributes = (axis, len(indices)) if call.op == "gather" else (axis,)
    desc_type: Callable[..., OperatorDesc] = call.desc_type
    return desc_type(*tensors, None, *attributes)


def _dimension_count(call: NodeCall, level: FeatureLevel, rank: int) -> int:
    """Return a level's smallest DimensionCount of at least `rank`, or `rank` if it has none."""
    operator = LISTED[call.desc_type.operator]
    row = SUPPORT[max(level, operator.introduced), operator.name, "InputTensor"]
    return next((count for count in sorted(row.dimension_counts) if count >= rank), rank)


def objections(call: NodeCall, level: FeatureLevel) -> list[str]:
    """Return the reasons why a feature level rejects a call, or none if it supports the call."""
    desc = desc_of(call, level)
    violations = [v for v in check(desc, level) if v.field != "OutputTensor"]
    if not violations:
        violations = check(desc.with_inferred_output(), level)
    return [violation.reason for violation in violations]


def replace_unknown_sizes(
    op: str, axis: int, known_shapes: Mapping[str, PartialShape | None]
) -> dict[str, Shape] | None:
    """Replace unknown sizes so that as few rules as possible are violated.

    A size that must equal a known size gets that size; any other size becomes 1. If a rule is still
    violated here, it is violated for any unknown sizes. Return None if a rank or the
    length of the tuples is unknown.
    """
    sizes_of = {name: list(shape) for name, shape in known_shapes.items() if shape is not None}
    if len(sizes_of) < len(known_shapes):
        return None
    index_sizes = sizes_of["indices"]
    if OPERATORS[op].takes_tuples and index_sizes and not isinstance(index_sizes[-1], int):
        return None
    for equal in _equal_sizes(op, axis, sizes_of):
        places = [
            (sizes_of[name], dimension)
            for name, dimension in equal
            if 0 <= dimension < len(sizes_of[name])
        ]
        known = (sizes[dimension] for sizes, dimension in places)
        value = next((size for size in known if isinstance(size, int)), 1)
        for sizes, dimension in places:
            if not isinstance(sizes[dimension], int):
                sizes[dimension] = value
    return {
        name: tuple(size if isinstance(size, int) else 1 for size in sizes)
        for name, sizes in sizes_of.items()
    }


def _equal_sizes(
    op: str, axis: int, sizes_of: Mapping[str, list[Dimension]]
) -> Iterator[list[tuple[str, int]]]:
    """Yield groups of (operand, dimension) whose sizes must be equal for DirectML."""
    operator, rank, indices = OPERATORS[op], len(sizes_of["data"]), tuple(sizes_of["indices"])
    if operator.takes_tuples and not indices:
        return
    axis = min(max(axis + rank if axis < 0 else axis, 0), rank)  # the range is checked later
    dimensions = operator.dimensions(rank, indices, axis)  # type: ignore[arg-type]  # see `replace_unknown_sizes`
    for moved_dimension, (data_dimension, entry_dimension) in enumerate(
        dimensions.moved_dimensions
    ):
        dimension_of = {
            "indices": entry_dimension, "updates": moved_dimension, "data": data_dimension
        }  # fmt: skip
        yield [
            (name, dimension)
            for name, dimension in dimension_of.items()
            if dimension is not None and name in sizes_of
        ]
