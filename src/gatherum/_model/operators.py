"""The table of operators: one row for each, with everything that differs between them.

Two things make an operator: what its indices address (`Addressing`), and whether it reads or
writes there.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gatherum import _core

from . import errors, shape_limits
from .dimensions import Dimensions
from .errors import Shape
from .shape_limits import OperandLayout

OperatorName: TypeAlias = Literal[
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_slices",
    "scatter_elements",
    "scatter_nd",
    "gather-elements",
    "gather-nd",
    "scatter-slices",
    "scatter-elements",
    "scatter-nd",
]


def find_roles(
    facts: tuple[bool, bool, bool], rank: int, indices_rank: int, components: int, axis: int
) -> Dimensions:
    """Return the roles of dimensions that the core finds: a graph that is traced keeps them."""
    moved, *ranges = _core.find_roles(facts, rank, indices_rank, components, axis)
    return Dimensions(moved, *(range(*each) for each in ranges))


class Addressing(NamedTuple):
    """What indices address, for a gather and for its inverse alike.

    Three facts decide the roles of all dimensions (see `dimensions`), and these all the rest.

    Attributes
    ----------
    name : str
        What one index, or one tuple of them, stands for.
    attribute : str
        The dimension attribute: ``"axis"`` or ``"batch_dims"``.
    tuples : bool
        Whether the last dimension of `indices` is the tuple; otherwise each index stands alone.
    shares_front : bool
        Whether the dimensions in front of the attribute are shared. Otherwise they are free: the
        same indices serve every place along them, stand alone, and address slices.
    shares_back : bool
        Whether the dimensions behind the indexed ones are shared, so that there is one entry
        dimension. Otherwise they are free.
    """

    name: str
    attribute: str
    tuples: bool
    shares_front: bool
    shares_back: bool

    @property
    def facts(self) -> tuple[bool, bool, bool]:
        """The three facts, for the core, which has the rules of shapes."""
        return self.tuples, self.shares_front, self.shares_back

    def dimensions(self, rank: int, indices: Shape, axis: int) -> Dimensions:
        """Return the roles of the dimensions of data of a rank, and of indices of a shape."""
        components = int(indices[-1]) if self.tuples else 1
        return find_roles(self.facts, rank, len(indices), components, axis)

    def moved(self, op: str, data: Shape, indices: Shape, axis: int) -> Shape:
        """Return the shape of a gather's result and of a scatter's updates, or raise ValueError
        where the shapes do not fit. The attribute counts from the front; sizes may be symbols.
        """
        found = _core.find_misfit(self.facts, data, indices, axis, shape_limits.holds)
        if found is not None:
            raise shape_limits.misfit(op, found, data, indices)
        return self.dimensions(len(data), indices, axis).choose(data, indices)


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
    def counts_indices(self) -> bool:
        """Whether the dimension attribute counts dimensions of the indices, from the front alone;
        otherwise those of the data, from either end.
        """
        return self.attribute == "batch_dims"

    @property
    def tuples(self) -> bool:
        """Whether the last dimension of `indices` is a tuple."""
        return self.addressing.tuples

    def resolve(self, data: Shape, indices: Shape, value: int) -> int:
        """Return the dimension attribute counted from the front, or raise ValueError."""
        if self.counts_indices:
            return shape_limits.check_batch_dims(self.name, indices, value)
        return shape_limits.resolve_axis(self.name, data, value)

    def moved(self, data: Shape, indices: Shape, axis: int) -> Shape:
        """Return the shape that moves, or raise ValueError: a gather's result, a scatter's
        updates.
        """
        return self.addressing.moved(self.name, data, indices, axis)

    def dimensions(self, rank: int, indices: Shape, axis: int) -> Dimensions:
        """Return the roles of the dimensions of data of a rank, and of indices of a shape."""
        return self.addressing.dimensions(rank, indices, axis)

    def space(self, data: Shape, indices: Shape, axis: int) -> tuple[Shape, int]:
        """Return the sizes of the addressed dimensions of the data, and `axis` counted in them."""
        addressed = self.dimensions(len(data), indices, axis).addressed
        return data[addressed.start : addressed.stop], axis - addressed.start

    def entries(self, indices: OperandLayout) -> OperandLayout:
        """Return shape and strides of the entries: those of `indices`, less the tuple dimension."""
        if not self.tuples:
            return indices
        return OperandLayout(indices.shape[:-1], indices.strides[:-1])

    def indexed(self, indices: Shape, axis: int) -> range:
        """Return the dimensions of the data that index values count along, one per component."""
        return range(axis, axis + (indices[-1] if self.tuples else 1))


_FACTS = _core.address_kinds()
SLICES = Addressing("a slice", "axis", *_FACTS["slices"])
ELEMENTS = Addressing("an element", "axis", *_FACTS["elements"])
TUPLES = Addressing("what a tuple names", "batch_dims", *_FACTS["tuples"])

_ROWS = (
    Operator("gather", False, SLICES, "Gather", ("GATHER",)),
    Operator("gather_elements", False, ELEMENTS, "GatherElements", ("GATHER_ELEMENTS",)),
    Operator("gather_nd", False, TUPLES, "GatherND", ("GATHER_ND", "GATHER_ND1")),
    Operator("scatter_slices", True, SLICES),
    Operator("scatter_elements", True, ELEMENTS, "ScatterElements", ("SCATTER",)),
    Operator("scatter_nd", True, TUPLES, "ScatterND", ("SCATTER_ND",)),
)
for _row in _ROWS:
    if _row.tuples + _row.addressing.shares_back + (not _row.addressing.shares_front) > 1:
        raise ValueError(
            f"{_row.name}: the dimensions of its addressing have roles of no known form"
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
    if operator.name not in _INVERSE:
        raise errors.no_inverse(operator.name)
    return _INVERSE[operator.name]


def find_operator(op: object, caller: str = "plan") -> Operator:
    """Return an operator by its name, as Python or as the command line spells it, or by its
    function; or raise ValueError.
    """
    if isinstance(op, str):
        row = OPERATORS.get(op.replace("-", "_"))
    else:
        package, _, _ = str(getattr(op, "__module__", "")).partition(".")
        ours = callable(op) and package == "gatherum"
        row = OPERATORS.get(str(getattr(op, "__name__", ""))) if ours else None
    if row is None:
        raise errors.unknown_operator(op, tuple(OPERATORS), caller)
    return row
