"""An ONNX node is mapped to a DirectML operator desc.

ONNX gives each tensor its own rank; DirectML gives all tensors of an operator one DimensionCount.
Shapes are padded with leading ones to the least count that holds them and that the level takes.
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
    """A node reduced to what DirectML needs of it. `axis` is the operator's dimension attribute."""

    op: str
    axis: int
    types: Mapping[str, TensorDataType]
    shapes: Mapping[str, Shape]
    least_rank: int = 1

    def moved_shape(self) -> Shape:
        """Return a gather's result shape or a scatter's updates shape; ValueError if none fits."""
        data, indices = self.shapes["data"], self.shapes["indices"]
        operator = OPERATORS[self.op]
        return operator.moved(data, indices, operator.resolve(data, indices, self.axis))

    @property
    def desc_type(self) -> type[OperatorDesc]:
        """The operator desc that the node becomes."""
        operator = OPERATORS[self.op]
        batched = operator.tuples and self.axis > 0  # the last of the names takes batches
        return DESCS[operator.directml[-1 if batched else 0]]


def desc_of(call: NodeCall, level: FeatureLevel) -> OperatorDesc:
    """Return the operator desc of a call for a feature level, without its output."""
    data, indices = call.shapes["data"], call.shapes["indices"]
    rank = max(len(call.moved_shape()), *map(len, call.shapes.values()), call.least_rank)
    d = _dimension_count(call, level, rank)
    tensors = [
        BufferTensorDesc(call.types[name], (1,) * (d - len(call.shapes[name])) + call.shapes[name])
        for name in ("data", "indices", "updates")
        if name in call.shapes
    ]
    numbers: tuple[int, ...]
    if OPERATORS[call.op].tuples:
        numbers = len(data), len(indices), *((call.axis,) if call.axis else ())
    else:
        axis = call.axis % len(data) + d - len(data)
        numbers = (axis, len(indices)) if call.op == "gather" else (axis,)
    make: Callable[..., OperatorDesc] = call.desc_type
    return make(*tensors, None, *numbers)


def _dimension_count(call: NodeCall, level: FeatureLevel, rank: int) -> int:
    """Return the least DimensionCount that a level takes and that holds a rank, or the rank."""
    operator = LISTED[call.desc_type.operator]
    row = SUPPORT[max(level, operator.introduced), operator.name, "InputTensor"]
    return next((count for count in sorted(row.dimension_counts) if count >= rank), rank)


def objections(call: NodeCall, level: FeatureLevel) -> list[str]:
    """Return a feature level's reasons against a call, empty if it takes it."""
    desc = desc_of(call, level)
    violations = [v for v in check(desc, level) if v.field != "OutputTensor"]
    if not violations:
        violations = check(desc.with_inferred_output(), level)
    return [v.message.removeprefix(f"{desc.operator}: ") for v in violations]


def settle(op: str, axis: int, known: Mapping[str, PartialShape | None]) -> dict[str, Shape] | None:
    """Return sizes for the unknown ones such that as few rules as possible are broken.

    A size that must equal a known one takes it, any other is 1. A rule that is still broken then is
    broken for all unknown sizes. None if a rank, or the tuples' length, is unknown.
    """
    sizes = {name: None if shape is None else list(shape) for name, shape in known.items()}
    lists = {name: shape for name, shape in sizes.items() if shape is not None}
    if len(lists) < len(sizes):
        return None
    if OPERATORS[op].tuples and lists["indices"] and not isinstance(lists["indices"][-1], int):
        return None
    for group in _equal_sizes(op, axis, lists):
        places = [(lists[name], d) for name, d in group if 0 <= d < len(lists[name])]
        value = next((s[d] for s, d in places if isinstance(s[d], int)), 1)
        for s, d in places:
            if not isinstance(s[d], int):
                s[d] = value
    return {
        name: tuple(size if isinstance(size, int) else 1 for size in shape)
        for name, shape in lists.items()
    }


def _equal_sizes(
    op: str, axis: int, lists: Mapping[str, list[Dimension]]
) -> Iterator[list[tuple[str, int]]]:
    """Yield the places, as (operand, dimension), whose sizes must be equal for DirectML."""
    operator, rank, indices = OPERATORS[op], len(lists["data"]), tuple(lists["indices"])
    if operator.tuples and not indices:
        return
    axis = min(max(axis + rank if axis < 0 else axis, 0), rank)  # one out of range is refused later
    dimensions = operator.dimensions(rank, indices, axis)  # type: ignore[arg-type]  # see `settle`
    for n, (d, e) in enumerate(dimensions.moved):
        places = [("indices", e), ("updates", n), ("data", d)]
        yield [(name, at) for name, at in places if at is not None and name in lists]
