"""The table of operators: one row for each, with everything that differs between them.

Two things make an operator: what its indices address (`Addressing`), and whether it reads or
writes there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from . import errors, lowering, shapes
from .errors import Shape
from .lowering import Component, Loop
from .names import OperatorName
from .shapes import Layout

Nested: TypeAlias = tuple[list[Loop], list[Component]]


class Addressing(NamedTuple):
    """What indices address, for a gather and for its inverse alike.

    Attributes
    ----------
    name : str
        What one index, or one tuple of them, stands for.
    attribute : str
        The dimension attribute: ``"axis"`` or ``"batch_dims"``.
    tuples : bool
        Whether the last dimension of `indices` is the tuple; otherwise each index stands alone.
    resolve : callable
        Takes the operator's name, the shapes of data and indices, and the attribute. Returns the
        attribute counted from the front, or raises ValueError.
    moved : callable
        Takes the same, with the attribute counted from the front. Returns the shape of a gather's
        result and of a scatter's updates, or raises ValueError where the shapes do not fit.
    loops : callable
        Takes the layouts of data, indices and what moves, and the attribute. Returns the nest.
    space : callable
        Takes the shapes of data and indices, and the attribute. Returns the dimensions of the data
        that distinguish destinations, and the attribute counted among them.
    """

    name: str
    attribute: str
    tuples: bool
    resolve: Callable[[str, Shape, Shape, int], int]
    moved: Callable[[str, Shape, Shape, int], Shape]
    loops: Callable[[Layout, Layout, Layout, int], Nested]
    space: Callable[[Shape, Shape, int], tuple[Shape, int]]


class Operator(NamedTuple):
    """One operator.

    Attributes
    ----------
    name : str
        The function's name.
    scatters : bool
        Whether it writes updates to where the indices point; otherwise it reads from there.
    addressing : Addressing
        What the indices address.
    onnx : str or None
        The ONNX operator of the same meaning.
    directml : tuple of str
        The DirectML operators of the same meaning.
    """

    name: OperatorName
    scatters: bool
    addressing: Addressing
    onnx: str | None = None
    directml: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """``"gather"`` or ``"scatter"``."""
        return "scatter" if self.scatters else "gather"

    @property
    def command(self) -> str:
        """The name on the command line."""
        return self.name.replace("_", "-")

    @property
    def attribute(self) -> str:
        """The dimension attribute: ``"axis"`` or ``"batch_dims"``."""
        return self.addressing.attribute

    @property
    def tuples(self) -> bool:
        """Whether the last dimension of `indices` is a tuple."""
        return self.addressing.tuples

    @property
    def slices(self) -> bool:
        """Whether every index addresses a slice of the data across one axis."""
        return self.addressing is SLICES

    @property
    def elements(self) -> bool:
        """Whether every element has an index of its own."""
        return self.addressing is ELEMENTS

    def resolve(self, data: Shape, indices: Shape, value: int) -> int:
        """Return the dimension attribute counted from the front, or raise ValueError."""
        return self.addressing.resolve(self.name, data, indices, value)

    def moved(self, data: Shape, indices: Shape, axis: int) -> Shape:
        """Return the shape that moves, or raise ValueError: a gather's result, a scatter's
        updates.
        """
        return self.addressing.moved(self.name, data, indices, axis)

    def loops(self, data: Layout, indices: Layout, other: Layout, axis: int) -> Nested:
        """Return the nest of a call: see `lowering`."""
        return self.addressing.loops(data, indices, other, axis)

    def space(self, data: Shape, indices: Shape, axis: int) -> tuple[Shape, int]:
        """Return the dimensions of the data that distinguish destinations, and `axis` in them."""
        return self.addressing.space(data, indices, axis)

    def entries(self, indices: Layout) -> Layout:
        """Return shape and strides of the entries: those of `indices`, less the tuple dimension."""
        if not self.tuples:
            return indices
        return Layout(indices.shape[:-1], indices.strides[:-1])

    def indexed(self, indices: Shape, axis: int) -> range:
        """Return the dimensions of the data that index values count along, one per component."""
        return range(axis, axis + (indices[-1] if self.tuples else 1))

    def keyed(self, data: Shape, indices: Shape, axis: int) -> int:
        """Return how many leading dimensions of the data are addressed, by an index or by its
        position; the others move whole.
        """
        return len(data) if self.elements else self.indexed(indices, axis).stop


def _resolve_axis(op: str, data: Shape, _: Shape, axis: int) -> int:
    return shapes.resolve_axis(op, data, axis)


def _resolve_batch_dims(op: str, _: Shape, indices: Shape, batch_dims: int) -> int:
    return shapes.check_batch_dims(op, indices, batch_dims)


def _slices_moved(_: str, data: Shape, indices: Shape, axis: int) -> Shape:
    return shapes.slices_shape(data, indices, axis)


def _slices_space(data: Shape, _: Shape, axis: int) -> tuple[Shape, int]:
    return data[axis : axis + 1], 0


def _elements_space(data: Shape, _: Shape, axis: int) -> tuple[Shape, int]:
    return data, axis


def _nd_space(data: Shape, indices: Shape, batch_dims: int) -> tuple[Shape, int]:
    return data[: batch_dims + indices[-1]], batch_dims


SLICES = Addressing(
    "a slice",
    "axis",
    False,
    _resolve_axis,
    _slices_moved,
    lowering.slices_loops,
    _slices_space,
)
ELEMENTS = Addressing(
    "an element",
    "axis",
    False,
    _resolve_axis,
    shapes.elements_shape,
    lowering.elements_loops,
    _elements_space,
)
TUPLES = Addressing(
    "what a tuple names",
    "batch_dims",
    True,
    _resolve_batch_dims,
    shapes.nd_shape,
    lowering.nd_loops,
    _nd_space,
)

_ROWS = (
    Operator("gather", False, SLICES, "Gather", ("GATHER",)),
    Operator("gather_elements", False, ELEMENTS, "GatherElements", ("GATHER_ELEMENTS",)),
    Operator("gather_nd", False, TUPLES, "GatherND", ("GATHER_ND", "GATHER_ND1")),
    Operator("scatter_slices", True, SLICES),
    Operator("scatter_elements", True, ELEMENTS, "ScatterElements", ("SCATTER",)),
    Operator("scatter_nd", True, TUPLES, "ScatterND", ("SCATTER_ND",)),
)
OPERATORS: dict[str, Operator] = {row.name: row for row in _ROWS}
GATHERS = tuple(row.name for row in _ROWS if not row.scatters)
SCATTERS = tuple(row.name for row in _ROWS if row.scatters)
_INVERSE = {
    row.name: other
    for row in _ROWS
    for other in _ROWS
    if other.addressing is row.addressing and other.scatters is not row.scatters
}


def inverse(operator: Operator) -> Operator:
    """Return the operator of the same indices in the opposite direction."""
    return _INVERSE[operator.name]


def find(op: object, caller: str = "plan") -> Operator:
    """Return an operator by its name, as Python or as the command line spells it, or by its
    function; or raise ValueError.
    """
    if isinstance(op, str):
        row = OPERATORS.get(op.replace("-", "_"))
    else:
        package, _, _ = str(getattr(op, "__module__", "")).partition(".")
        ours = callable(op) and package == __package__
        row = OPERATORS.get(str(getattr(op, "__name__", ""))) if ours else None
    if row is None:
        raise errors.unknown_operator(op, tuple(OPERATORS), caller)
    return row
