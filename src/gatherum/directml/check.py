"""`check` returns every reason why a feature level does not accept an operator desc."""

from __future__ import annotations

import math
from collections.abc import Callable

from gatherum._model.shape_limits import MAX_BYTES, overlaps_itself

from .descs import OperatorDesc, has_one_dimension_count
from .levels import OPERATORS, SUPPORT, SupportRow, first_level
from .sizes import MOST_DIMENSIONS
from .tensors import BufferTensorDesc
from .types import LATEST, UINT32_MAX, UINT64_MAX, FeatureLevel, LevelLike, TensorFlags
from .violations import TENSOR_PAGE, Inspection, Violation, listing, written_integer

#: Tensors whose DataType must be the input's.
_VALUE_TENSORS = ("UpdatesTensor", "OutputTensor")


def check(desc: OperatorDesc, feature_level: LevelLike = LATEST) -> list[Violation]:
    """Return every reason why a feature level does not accept an operator desc.

    Parameters
    ----------
    desc : operator desc
        One of the six; a missing output is a violation.
    feature_level : FeatureLevel, str or int, optional
        The latest by default.

    Returns
    -------
    list of Violation
        Ordered by level, tensors, constraints between them, attributes and sizes, output;
        empty if the desc is accepted.

    Raises
    ------
    TypeError
        If ``desc`` is not an operator desc.
    ValueError
        If the feature level is unknown.

    Examples
    --------
    >>> from gatherum.directml import BufferTensorDesc, GatherOperatorDesc, check
    >>> data = BufferTensorDesc("FLOAT64", (1, 1, 1, 4))
    >>> indices = BufferTensorDesc("UINT32", (1, 1, 1, 5))
    >>> output = BufferTensorDesc("FLOAT64", (1, 1, 1, 5))
    >>> desc = GatherOperatorDesc(data, indices, output, 3, 1)
    >>> check(desc)
    []
    >>> print(check(desc, "1_0")[0].message)
    GATHER: `InputTensor.DataType` must be one of FLOAT32, FLOAT16 at feature level 1_0, \
got FLOAT64; first accepted at 4_1
    """
    level = FeatureLevel.of(feature_level)
    if not isinstance(desc, OperatorDesc) or type(desc) is OperatorDesc:
        raise TypeError(f"check: `desc` must be an operator desc, got {type(desc).__name__}")
    inspection = Inspection(desc.operator)
    _require_operator(level, inspection)
    for name, tensor in desc.tensors.items():
        _require_support(name, tensor, level, inspection)
        _require_layout(name, tensor, inspection)
    _require_one_type(desc, inspection)
    one_count = has_one_dimension_count(desc, inspection)
    expected = None
    if one_count and desc.input_tensor.dimension_count > 0:
        expected = desc.inspect_sizes(inspection)
    _require_output(desc.tensors.get("OutputTensor"), expected, inspection)
    return inspection.violations


def _require_operator(level: FeatureLevel, inspection: Inspection) -> None:
    operator = OPERATORS[inspection.operator]
    first_level = operator.introduced
    inspection.require(
        level >= first_level,
        "Type",
        f"be an operator of feature level {level}",
        f"DML_OPERATOR_{operator.name}",
        operator.introduction,
        first_level=first_level,
        remark=f"; first accepted at {first_level}"
        + (f" ({operator.claim})" if operator.claim else ""),
    )


def _require_support(
    name: str, tensor: BufferTensorDesc, level: FeatureLevel, inspection: Inspection
) -> None:
    """Compare one tensor with the support table.

    Below the level that introduces the operator, the table has no rows, and the rows of that
    level are used.
    """
    operator = inspection.operator
    table_level = max(level, OPERATORS[operator].introduced)
    row = SUPPORT[table_level, operator, name]

    def require(field: str, accepts: Callable[[SupportRow], bool], must: str, got: object) -> None:
        if accepts(row):
            return
        accepting_level = first_level(operator, name, accepts)
        inspection.require(
            False,
            f"{name}.{field}",
            f"{must} at feature level {table_level}",
            got,
            f"{inspection.page}, Tensor support",
            first_level=accepting_level,
            remark=f"; first accepted at {accepting_level}"
            if accepting_level
            else "; no feature level accepts it",
        )

    types = row.data_types
    require(
        "DataType",
        lambda row: tensor.data_type in row.data_types,
        f"be {row.type_names}" if len(types) == 1 else f"be one of {row.type_names}",
        tensor.data_type.name,
    )
    counts = row.dimension_counts
    require(
        "DimensionCount",
        lambda row: tensor.dimension_count in row.dimension_counts,
        f"be {counts[0]}" if len(counts) == 1 else f"be {counts[0]} to {counts[-1]}",
        tensor.dimension_count,
    )


def _require_layout(name: str, tensor: BufferTensorDesc, inspection: Inspection) -> None:
    """Check the rules for a single tensor that do not depend on the operator and level."""
    require, sizes = inspection.require, tensor.sizes
    require(
        all(1 <= size <= UINT32_MAX for size in sizes),
        f"{name}.Sizes",
        f"be sizes of 1 to {UINT32_MAX}",
        listing(sizes),
        f"{TENSOR_PAGE}, Sizes",
    )
    if len(sizes) <= MOST_DIMENSIONS:
        elements = math.prod(sizes)
        require(
            elements <= UINT32_MAX,
            f"{name}.Sizes",
            f"have at most {UINT32_MAX} elements",
            f"{listing(sizes)} with {written_integer(elements)}",
            f"{TENSOR_PAGE}, Sizes",
        )
    if tensor.strides is not None:
        _require_strides(name, tensor, tensor.strides, inspection)
    _require_total(name, tensor, inspection)
    _require_alignment(name, tensor, inspection)


def _require_strides(
    name: str, tensor: BufferTensorDesc, strides: tuple[int, ...], inspection: Inspection
) -> None:
    require, count = inspection.require, tensor.dimension_count
    require(
        len(strides) == count,
        f"{name}.Strides",
        f"have DimensionCount = {count} entries",
        listing(strides),
        f"{TENSOR_PAGE}, Strides",
    )
    require(
        all(0 <= stride <= UINT32_MAX for stride in strides),
        f"{name}.Strides",
        f"be strides of 0 to {UINT32_MAX}",
        listing(strides),
        f"{TENSOR_PAGE}, Strides",
    )
    if tensor.measurable:
        require(
            tensor.addressable,
            f"{name}.Strides",
            f"keep the elements within {MAX_BYTES} bytes, which is all that can be addressed",
            f"{listing(strides)} with {written_integer(tensor.spanned_bytes)}",
            f"{TENSOR_PAGE}, Strides; ruling: tensors can be addressed",
        )


def _require_total(name: str, tensor: BufferTensorDesc, inspection: Inspection) -> None:
    total = tensor.total_tensor_size_in_bytes or 0
    implied = tensor.implied_size
    inspection.require(
        implied <= total <= UINT64_MAX,
        f"{name}.TotalTensorSizeInBytes",
        f"be at least {written_integer(implied)}, the size that Sizes, Strides and DataType imply"
        if total < implied
        else f"be 0 to {UINT64_MAX}",
        total,
        f"{TENSOR_PAGE}, TotalTensorSizeInBytes",
    )


def _require_alignment(name: str, tensor: BufferTensorDesc, inspection: Inspection) -> None:
    alignment = tensor.guaranteed_base_offset_alignment
    element = max(1, tensor.data_type.bits // 8)
    power_of_two = alignment > 0 and alignment & (alignment - 1) == 0
    inspection.require(
        alignment == 0 or (power_of_two and element <= alignment <= UINT32_MAX),
        f"{name}.GuaranteedBaseOffsetAlignment",
        f"be 0 or a power of two of at least {element}, the element size",
        alignment,
        f"{TENSOR_PAGE}, GuaranteedBaseOffsetAlignment",
    )


def _require_one_type(desc: OperatorDesc, inspection: Inspection) -> None:
    input_type = desc.input_tensor.data_type
    for name, tensor in desc.tensors.items():
        if name in _VALUE_TENSORS:
            inspection.require(
                tensor.data_type == input_type,
                f"{name}.DataType",
                f"equal InputTensor.DataType = {input_type.name}",
                tensor.data_type.name,
                f"{inspection.page}, Tensor constraints",
            )


def _require_output(
    output: BufferTensorDesc | None, expected: tuple[int, ...] | None, inspection: Inspection
) -> None:
    sizes = "" if expected is None else f" of sizes {listing(expected)}"
    rule = f"{inspection.page}, OutputTensor"
    if output is None:
        inspection.require(False, "OutputTensor", f"be a tensor{sizes}", None, rule)
        return
    inspection.require(
        expected is None or output.sizes == expected,
        "OutputTensor.Sizes",
        f"be {listing(expected or ())}",
        listing(output.sizes),
        rule,
    )
    inspection.require(
        not output.flags & TensorFlags.OWNED_BY_DML,
        "OutputTensor.Flags",
        "be DML_TENSOR_FLAG_NONE, as only inputs can be OWNED_BY_DML",
        "DML_TENSOR_FLAG_OWNED_BY_DML",
        "DML_TENSOR_FLAGS, OWNED_BY_DML",
    )
    if output.strides is not None and output.addressable:
        inspection.require(
            not overlaps_itself(output.sizes, output.strides, 1),  # in elements, like the strides
            "OutputTensor.Strides",
            f"give every element of sizes {listing(output.sizes)} a place of its own",
            listing(output.strides),
            f"{TENSOR_PAGE}, Strides; ruling: outputs do not overlap",
        )
