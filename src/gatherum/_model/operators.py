"""The table of operators. Each row contains all properties that distinguish an operator.

An operator is defined by the elements that its indices address (`Addressing`) and by the direction:
it reads or writes them.
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
    """Return the roles of dimensions from the core. In traced graphs, the roles are constants."""
    moved_dimensions, *ranges = _core.find_roles(facts, rank, indices_rank, components, axis)
    return Dimensions(moved_dimensions, *(range(*bounds) for bounds in ranges))


class Addressing(NamedTuple):
    """The elements that indices address, the same for a gather and its inverse.

    The three booleans determine the roles of all dimensions (see `dimensions`).

    Attributes
    ----------
    name : str
        A phrase for the target of one index, or of one tuple of indices.
    attribute : str
        The dimension attribute: ``"axis"`` or ``"batch_dims"``.
    takes_tuples : bool
        Whether the last dimension of `indices` is a tuple; otherwise each index is a scalar.
    shares_front : bool
        Whether the dimensions before the attribute are shared. Otherwise they are free: the same
        scalar indices apply at every position along them and address slices.
    shares_back : bool
        Whether the dimensions after the indexed ones are shared, so that there is a single entry
        dimension. Otherwise they are free.
    """

    name: str
    attribute: str
    takes_tuples: bool
    shares_front: bool
    shares_back: bool

    @property
    def shape_flags(self) -> tuple[bool, bool, bool]:
        """The three booleans as a tuple, for the shape rules of the core."""
        return self.takes_tuples, self.shares_front, self.shares_back

    @property
    def has_supported_roles(self) -> bool:
        """Whether the core finds the roles of all dimensions.

        It supports tuples, or shared dimensions after the indexed ones, or free dimensions before
        the attribute, but not two of them together.
        """
        return self.takes_tuples + self.shares_back + (not self.shares_front) <= 1

    def dimensions(self, rank: int, indices: Shape, axis: int) -> Dimensions:
        """Return the roles of dimensions for data of a rank and indices of a shape."""
        components = int(indices[-1]) if self.takes_tuples else 1
        return find_roles(self.shape_flags, rank, len(indices), components, axis)

    def moved_shape(self, op: str, data: Shape, indices: Shape, axis: int) -> Shape:
        """Return the shape of a gather's result and of a scatter's updates.

        `axis` must be nonnegative; sizes may be symbols. Raise ValueError if the shapes do not fit.
        """
        fault = _core.find_misfit(self.shape_flags, data, indices, axis, shape_limits.holds)
        if fault is not None:
            raise shape_limits.misfit(op, fault, data, indices)
        return self.dimensions(len(data), indices, axis).choose(data, indices)


class Operator(NamedTuple):
    """One operator.

    Attributes
    ----------
    name : str
        The function's name.
    scatters : bool
        Whether the operator writes updates to the addressed elements; otherwise it reads them.
    addressing : Addressing
        The elements that indices address.
    onnx : str or None
        The ONNX operator with the same meaning.
    directml : tuple of str
        The DirectML operators with the same meaning.
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
        """Whether the dimension attribute counts dimensions of the indices and must be nonnegative.

        Otherwise it counts dimensions of the data and may be negative.
        """
        return self.takes_tuples

    @property
    def takes_tuples(self) -> bool:
        """Whether the last dimension of `indices` is a tuple."""
        return self.addressing.takes_tuples

    def resolve(self, data: Shape, indices: Shape, value: int) -> int:
        """Return the dimension attribute as a nonnegative number, or raise ValueError."""
        if self.counts_indices:
            return shape_limits.check_batch_dims(self.name, indices, value)
        return shape_limits.resolve_axis(self.name, data, value)

    def moved_shape(self, data: Shape, indices: Shape, axis: int) -> Shape:
        """Return the shape of a gather's result or of a scatter's updates, or raise ValueError."""
        return self.addressing.moved_shape(self.name, data, indices, axis)

    def dimensions(self, rank: int, indices: Shape, axis: int) -> Dimensions:
        """Return the roles of dimensions for data of a rank and indices of a shape."""
        return self.addressing.dimensions(rank, indices, axis)

    def space(self, data: Shape, indices: Shape, axis: int) -> tuple[Shape, int]:
        """Return the sizes of the addressed dimensions of the data, and `axis` relative to them."""
        addressed = self.dimensions(len(data), indices, axis).addressed
        return data[addressed.start : addressed.stop], axis - addressed.start

    def entries(self, indices: OperandLayout) -> OperandLayout:
        """Return the layout of the entries, which is `indices` without the tuple dimension."""
        if not self.takes_tuples:
            return indices
        return OperandLayout(indices.shape[:-1], indices.strides[:-1])

    def indexed(self, indices: Shape, axis: int) -> range:
        """Return the data dimension that each component of the indices addresses."""
        return range(axis, axis + (indices[-1] if self.takes_tuples else 1))


# The core's rows of the operators that it plans without Python, by name: whether the operator
# scatters, its dimension attribute, and the flags of its addressing.
_CORE_ROWS = _core.operator_rows()


def _addressing_of(op: OperatorName, name: str) -> Addressing:
    _, attribute, flags = _CORE_ROWS[op]
    return Addressing(name, attribute, *flags)


SLICES = _addressing_of("gather", "a slice")
ELEMENTS = _addressing_of("gather_elements", "an element")
TUPLES = _addressing_of("gather_nd", "the element or slice of a tuple")


def _core_operator(
    name: OperatorName, onnx: str | None = None, directml: tuple[str, ...] = ()
) -> Operator:
    scatters, _, flags = _CORE_ROWS[name]
    (addressing,) = (
        candidate for candidate in (SLICES, ELEMENTS, TUPLES) if candidate.shape_flags == flags
    )
    return Operator(name, scatters, addressing, onnx, directml)


_ROWS = (
    _core_operator("gather", "Gather", ("GATHER",)),
    _core_operator("gather_elements", "GatherElements", ("GATHER_ELEMENTS",)),
    _core_operator("gather_nd", "GatherND", ("GATHER_ND", "GATHER_ND1")),
    _core_operator("scatter_slices"),
    _core_operator("scatter_elements", "ScatterElements", ("SCATTER",)),
    _core_operator("scatter_nd", "ScatterND", ("SCATTER_ND",)),
)
for _row in _ROWS:
    if not _row.addressing.has_supported_roles:
        raise ValueError(
            f"{_row.name}: the roles of the dimensions of its addressing are not supported"
        )
    if (_row.attribute == "batch_dims") is not _row.takes_tuples:
        raise ValueError(f"{_row.name}: only an operator that takes tuples has `batch_dims`")
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _ROWS}
GATHERS = tuple(operator.name for operator in _ROWS if not operator.scatters)
SCATTERS = tuple(operator.name for operator in _ROWS if operator.scatters)
_INVERSE = {
    operator.name: other
    for operator in _ROWS
    for other in _ROWS
    if other.addressing is operator.addressing and other.scatters is not operator.scatters
}


def inverse(operator: Operator) -> Operator:
    """Return the operator with the same indices and the opposite direction."""
    if operator.name not in _INVERSE:
        raise errors.no_inverse(operator.name)
    return _INVERSE[operator.name]


def find_operator(op: object, caller: str = "plan") -> Operator:
    """Find an operator by its function, its name in Python, or its name on the command line.

    Raise ValueError if it is unknown.
    """
    if isinstance(op, str):
        operator = OPERATORS.get(op.replace("-", "_"))
    else:
        package, _, _ = str(getattr(op, "__module__", "")).partition(".")
        is_function_here = callable(op) and package == "gatherum"
        operator = OPERATORS.get(str(getattr(op, "__name__", ""))) if is_function_here else None
    if operator is None:
        raise errors.unknown_operator(op, tuple(OPERATORS), caller)
    return operator
