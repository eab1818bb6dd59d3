"""The six operator descs, with DirectML's fields in DirectML's order."""

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
        """Return a map from DirectML's field names, in DirectML's order, to the attributes."""
        return {
            "".join(part.capitalize() for part in field.name.split("_")): field.name
            for field in fields(cls)
        }

    @cached_property
    def tensors(self) -> dict[str, BufferTensorDesc]:
        """The tensors that are not None, by DirectML's names in DirectML's order."""
        return {
            name: getattr(self, attribute)
            for name, attribute in self.field_names().items()
            if attribute.endswith("_tensor") and getattr(self, attribute) is not None
        }

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Check attributes and sizes, and return the required sizes of the output.

        Return None if the sizes are undetermined; ``inspection`` then contains the reasons. All
        tensors must have the same DimensionCount of at least 1.
        """
        raise TypeError(f"{type(self).__name__} is not an operator: use one of the six")

    def infer_output_sizes(self) -> tuple[int, ...]:
        """Return the required Sizes of OutputTensor; ``output_tensor`` may be None.

        Returns
        -------
        tuple of int

        Raises
        ------
        ValueError
            If the sizes and attributes are invalid; the message lists every reason.

        Examples
        --------
        >>> from gatherum.directml import BufferTensorDesc, GatherOperatorDesc
        >>> data = BufferTensorDesc("FLOAT32", (1, 3, 2))
        >>> indices = BufferTensorDesc("UINT32", (1, 2, 2))
        >>> GatherOperatorDesc(data, indices, None, 1, 2).infer_output_sizes()
        (2, 2, 2)
        """
        inspection = Inspection(self.operator)
        dimension_count, field = self.input_tensor.dimension_count, "InputTensor.DimensionCount"
        sizes = None
        if inspection.require(
            dimension_count >= 1,
            field,
            "be at least 1",
            dimension_count,
            f"{TENSOR_PAGE}, DimensionCount",
        ) and has_one_dimension_count(self, inspection):
            sizes = self.inspect_sizes(inspection)
        if sizes is None or inspection.violations:
            raise ValueError("\n".join(v.message for v in inspection.violations))
        return sizes

    def with_inferred_output(self) -> Self:
        """Return a copy of this desc with a packed output tensor of the required sizes and type."""
        output = BufferTensorDesc(self.input_tensor.data_type, self.infer_output_sizes())
        changes: dict[str, Any] = {"output_tensor": output}  # the base lacks the field
        return replace(self, **changes)


@dataclass(frozen=True)
class GatherOperatorDesc(OperatorDesc):
    """``DML_GATHER_OPERATOR_DESC``: ``output[...] = input[..., indices[...], ...]``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    axis : int
        Dimension of the input to gather along.
    index_dimensions : int
        Number of trailing dimensions of the indices that are meaningful; 0 for one index.
    """

    operator: ClassVar[str] = "GATHER"

    output_tensor: BufferTensorDesc | None
    axis: int
    index_dimensions: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Replace the axis with the indices' sizes, and crop leading 1s so that the sizes fit."""
        sizes, indices = self.input_tensor.sizes, self.indices_tensor.sizes
        return shape_rules.gather_sizes(
            sizes, indices, self.axis, self.index_dimensions, inspection
        )


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
        """Require the input's sizes except along the axis; the output has the indices' sizes."""
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
        Number of trailing dimensions that are meaningful.
    """

    operator: ClassVar[str] = "GATHER_ND"

    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Apply the rules of GATHER_ND1 without batches."""
        return _nd_sizes(self, inspection)


@dataclass(frozen=True)
class GatherNd1OperatorDesc(OperatorDesc):
    """``DML_GATHER_ND1_OPERATOR_DESC``: ``output[b, ...] = input[b, indices[b, ...], ...]``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor : BufferTensorDesc
        ``output_tensor`` may be None until its sizes are known.
    input_dimension_count, indices_dimension_count : int
        Number of trailing dimensions that are meaningful.
    batch_dimension_count : int
        Number of leading meaningful dimensions that are independent batches.
    """

    operator: ClassVar[str] = "GATHER_ND1"

    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int
    batch_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Return the sizes of the array of tuples, then those that the tuples do not address."""
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
        """Require indices as GATHER_ELEMENTS does, and updates of the same sizes as the indices.

        The output has the input's sizes.
        """
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
        Number of trailing dimensions that are meaningful.
    """

    operator: ClassVar[str] = "SCATTER_ND"

    updates_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def inspect_sizes(self, inspection: Inspection) -> tuple[int, ...] | None:
        """Require updates with the sizes of GATHER_ND's output. Return the sizes of the input."""
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
    """Return True if all DimensionCounts equal the input's, and record those that do not."""
    input_count = desc.input_tensor.dimension_count
    rule = f"{inspection.page}, Tensor constraints"
    expected = f"equal InputTensor.DimensionCount = {input_count}"
    all_equal = True
    for name, tensor in desc.tensors.items():
        count = tensor.dimension_count
        all_equal &= inspection.require(
            count == input_count, f"{name}.DimensionCount", expected, count, rule
        )
    return all_equal


def nd_counts(desc: NdOperatorDesc) -> shape_rules.NdCounts:
    """Return how many dimensions of the input, the indices and the batches are meaningful."""
    batches = desc.batch_dimension_count if isinstance(desc, GatherNd1OperatorDesc) else 0
    return shape_rules.NdCounts(desc.input_dimension_count, desc.indices_dimension_count, batches)


def nd_result(desc: NdOperatorDesc) -> str:
    """Return the name of the tensor whose sizes are those of GATHER_ND's output."""
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
