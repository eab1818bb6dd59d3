"""The six operator descs have DirectML's fields, in DirectML's order."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self, TypeAlias

from . import shape_rules
from .tensors import BufferTensorDesc, as_integer, set_field
from .violations import TENSOR_PAGE, Inspection, listing


@dataclass(frozen=True)
class OperatorDesc:
    """The base of the six operator descs; DirectML's C API has no such type."""

    operator: ClassVar[str]

    input_tensor: BufferTensorDesc
    indices_tensor: BufferTensorDesc

    def __post_init__(self) -> None:
        where = type(self).__name__
        for field in fields(self):
            value = getattr(self, field.name)
            if not field.name.endswith("_tensor"):
                set_field(self, field.name, as_integer(where, field.name, value))
            elif not isinstance(value, BufferTensorDesc) and (
                value is not None or field.name != "output_tensor"
            ):
                raise TypeError(
                    f"{where}: `{field.name}` must be a BufferTensorDesc, "
                    f"got {type(value).__name__}"
                )

    @classmethod
    @cache
    def field_names(cls) -> dict[str, str]:
        """DirectML's name of each field, in DirectML's order, with its name here."""
        return {
            "".join(part.capitalize() for part in field.name.split("_")): field.name
            for field in fields(cls)
        }

    @cached_property
    def tensors(self) -> dict[str, BufferTensorDesc]:
        """The tensors that are there, by DirectML's names in DirectML's order."""
        return {
            name: getattr(self, attribute)
            for name, attribute in self.field_names().items()
            if attribute.endswith("_tensor") and getattr(self, attribute) is not None
        }

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Check attributes and sizes, and return the sizes that the output must have.

        None where no such sizes follow; then ``inspection`` has the reasons. All tensors must
        have one DimensionCount of at least 1.
        """
        raise TypeError(f"{type(self).__name__} is not an operator: use one of the six")

    def infer_output_sizes(self) -> tuple[int, ...]:
        """Return the Sizes that OutputTensor must have; ``output_tensor`` may be None.

        Returns
        -------
        tuple of int

        Raises
        ------
        ValueError
            If the sizes and attributes fit no output, with every reason.

        Examples
        --------
        >>> from gatherum.directml import BufferTensorDesc, GatherOperatorDesc
        >>> data = BufferTensorDesc("FLOAT32", (1, 3, 2))
        >>> indices = BufferTensorDesc("UINT32", (1, 2, 2))
        >>> GatherOperatorDesc(data, indices, None, 1, 2).infer_output_sizes()
        (2, 2, 2)
        """
        inspection = Inspection(self.operator)
        d, field = self.input_tensor.dimension_count, "InputTensor.DimensionCount"
        sizes = None
        if inspection.require(
            d >= 1, field, "be at least 1", d, f"{TENSOR_PAGE}, DimensionCount"
        ) and has_one_dimension_count(self, inspection):
            sizes = self.inspect_sizes(inspection)
        if sizes is None or inspection.violations:
            raise ValueError("\n".join(v.message for v in inspection.violations))
        return sizes

    def with_inferred_output(self) -> Self:
        """Return this desc with a packed output tensor of the sizes and type it must have."""
        output = BufferTensorDesc(self.input_tensor.data_type, self.infer_output_sizes())
        changes: dict[str, Any] = {"output_tensor": output}  # a field of all six, not of the base
        return replace(self, **changes)


@dataclass(frozen=True)
class GatherOperatorDesc(OperatorDesc):
    """``DML_GATHER_OPERATOR_DESC``: ``output[...] = input[..., indices[...], ...]``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    axis : int
        Dimension of the input to gather on.
    index_dimensions : int
        Number of trailing dimensions of the indices that mean something; 0 for one index.
    """

    operator: ClassVar[str] = "GATHER"

    output_tensor: BufferTensorDesc | None
    axis: int
    index_dimensions: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Put the indices in the place of the axis, and crop leading ones so that they fit."""
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        n = self.index_dimensions
        return shape_rules.gather_sizes(sizes, indices, self.axis, n, inspection)


@dataclass(frozen=True)
class GatherElementsOperatorDesc(OperatorDesc):
    """``DML_GATHER_ELEMENTS_OPERATOR_DESC``: ``output[i,j] = input[indices[i,j], j]`` (axis 0).

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    axis : int
        Dimension of the input to gather along.
    """

    operator: ClassVar[str] = "GATHER_ELEMENTS"

    output_tensor: BufferTensorDesc | None
    axis: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Require the input's sizes off the axis; the output has those of the indices."""
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        return shape_rules.elements_sizes(sizes, indices, self.axis, inspection)


@dataclass(frozen=True)
class GatherNdOperatorDesc(OperatorDesc):
    """``DML_GATHER_ND_OPERATOR_DESC``: ``output[...] = input[indices[...]]``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    input_dimension_count, indices_dimension_count : int
        Number of trailing dimensions that mean something.
    """

    operator: ClassVar[str] = "GATHER_ND"

    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Do as GATHER_ND1 without batches."""
        return _nd_sizes(self, inspection)


@dataclass(frozen=True)
class GatherNd1OperatorDesc(OperatorDesc):
    """``DML_GATHER_ND1_OPERATOR_DESC``: ``output[b, ...] = input[b, indices[b, ...], ...]``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    input_dimension_count, indices_dimension_count : int
        Number of trailing dimensions that mean something.
    batch_dimension_count : int
        How many of these, from the left, are independent batches.
    """

    operator: ClassVar[str] = "GATHER_ND1"

    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int
    batch_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Join the array of tuples and the input's sizes that no tuple addresses."""
        return _nd_sizes(self, inspection)


@dataclass(frozen=True)
class ScatterOperatorDesc(OperatorDesc):
    """``DML_SCATTER_OPERATOR_DESC``: ``output[indices[i,j], j] = updates[i,j]`` (axis 0).

    Parameters
    ----------
    input_tensor, indices_tensor, updates_tensor, output_tensor : BufferTensorDesc
        The output starts as a copy of the input; ``output_tensor`` may be None until its
        sizes are known.
    axis : int
        Dimension of the output to scatter along.
    """

    operator: ClassVar[str] = "SCATTER"

    updates_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc | None
    axis: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Require indices and updates as GATHER_ELEMENTS would; the output is as the input."""
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        expected = shape_rules.elements_sizes(sizes, indices, self.axis, inspection)
        _require_updates(self.updates_tensor, expected, "IndicesTensor.Sizes", inspection)
        return sizes


ScatterElementsOperatorDesc = ScatterOperatorDesc


@dataclass(frozen=True)
class ScatterNdOperatorDesc(OperatorDesc):
    """``DML_SCATTER_ND_OPERATOR_DESC``: ``output[indices[...]] = updates[...]``.

    Parameters
    ----------
    input_tensor, indices_tensor, updates_tensor, output_tensor : BufferTensorDesc
        The output starts as a copy of the input; ``output_tensor`` may be None until its
        sizes are known.
    input_dimension_count, indices_dimension_count : int
        Number of trailing dimensions that mean something.
    """

    operator: ClassVar[str] = "SCATTER_ND"

    updates_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Require updates as GATHER_ND would return them; the output is as the input."""
        expected = _nd_sizes(self, inspection)
        formula = "the indices' array of tuples, then the input's sizes after D - R + k"
        _require_updates(self.updates_tensor, expected, formula, inspection, "; erratum 9")
        return self.input_tensor.sizes


NdOperatorDesc: TypeAlias = GatherNdOperatorDesc | GatherNd1OperatorDesc | ScatterNdOperatorDesc

DESCS: dict[str, type[OperatorDesc]] = {
    desc.operator: desc
    for desc in (
        GatherOperatorDesc,
        GatherElementsOperatorDesc,
        GatherNdOperatorDesc,
        GatherNd1OperatorDesc,
        ScatterOperatorDesc,
        ScatterNdOperatorDesc,
    )
}


def has_one_dimension_count(desc: OperatorDesc, inspection: Inspection) -> bool:
    """Record every tensor whose DimensionCount differs from the input's."""
    d = desc.input_tensor.dimension_count
    rule = f"{inspection.page}, Tensor constraints"
    expected = f"equal InputTensor.DimensionCount = {d}"
    same = True
    for name, tensor in desc.tensors.items():
        count = tensor.dimension_count
        same &= inspection.require(count == d, f"{name}.DimensionCount", expected, count, rule)
    return same


def nd_counts(desc: NdOperatorDesc) -> shape_rules.NdCounts:
    """Return how many dimensions of input, indices and batches mean something."""
    batches = desc.batch_dimension_count if isinstance(desc, GatherNd1OperatorDesc) else 0
    return shape_rules.NdCounts(desc.input_dimension_count, desc.indices_dimension_count, batches)


def nd_result(desc: NdOperatorDesc) -> str:
    """Return which tensor has the sizes that GATHER_ND's output has."""
    return "UpdatesTensor" if isinstance(desc, ScatterNdOperatorDesc) else "OutputTensor"


def _nd_sizes(desc: NdOperatorDesc, inspection: Inspection) -> tuple[int, ...] | None:
    sizes, indices = desc.input_tensor.sizes, desc.indices_tensor.sizes
    return shape_rules.nd_sizes(sizes, indices, nd_counts(desc), nd_result(desc), inspection)


def _require_updates(
    updates: BufferTensorDesc,
    expected: tuple[int, ...] | None,
    formula: str,
    inspection: Inspection,
    erratum: str = "",
) -> None:
    if expected is not None:
        inspection.require(
            updates.sizes == expected,
            "UpdatesTensor.Sizes",
            f"be {listing(expected)} ({formula})",
            listing(updates.sizes),
            f"{inspection.page}, UpdatesTensor{erratum}",
        )
