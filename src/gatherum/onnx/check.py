"""`check_model` reports which gather and scatter nodes a DirectML feature level supports."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import onnx

from gatherum._model.callers import renamed
from gatherum._model.operators import OPERATORS
from gatherum.directml import FeatureLevel, TensorDataType
from gatherum.directml.types import LATEST, LevelLike

from .directml_descs import NodeCall, objections, replace_unknown_sizes
from .graphs import Occurrence, Operand, load, occurrences
from .operators import attribute_faults
from .reference_ops import FAMILY
from .report import NodeReport

# All other types have the same name in DirectML and ONNX.
_RENAMED = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}

# Types that every level supports, to replace unknown types.
_ANY_DATA = TensorDataType.FLOAT32
_ANY_INDICES = TensorDataType.UINT32

# More batch dimensions than any level supports.
_TOO_MANY_BATCH_DIMENSIONS = 8


def check_model(
    model_or_path: onnx.ModelProto | bytes | str | PathLike[str],
    feature_level: LevelLike = LATEST,
    *,
    sizes: Mapping[str, int] | None = None,
) -> list[NodeReport]:
    """Report for every gather and scatter node whether a DirectML feature level supports it.

    Shapes are inferred first. Nodes in the bodies of If, Loop and Scan are included. Nodes in local
    functions are included once for each call of the function.

    Parameters
    ----------
    model_or_path : ModelProto, bytes or path-like
        The model. Weights in other files are not read.
    feature_level : FeatureLevel, str or int, optional
        The feature level. The default is the latest.
    sizes : mapping of str to int, optional
        Sizes for the model's symbolic dimensions, such as ``{"batch": 8}``.

    Returns
    -------
    list of NodeReport
        The reports in the order of the graph. `accepted` is None if the result depends on an
        unknown type, shape or size.

    Raises
    ------
    OSError
        If the file cannot be read, is not a regular file, or is 2 GiB or larger.
    ValueError
        If `model_or_path` is not an ONNX model, if ONNX cannot infer the model's shapes, if `sizes`
        contains a name that is not in the model, or if the feature level does not exist.

    Examples
    --------
    >>> import onnx.parser
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 18]>
    ...     g (int64[5,3] table, int64[2] ids) => (y) { [lookup] y = Gather(table, ids) }''')
    >>> print(check_model(model, "3_0")[0])
    rejected by 3_0, first accepted by 4_1: Gather 'lookup' as GATHER (graph)
        `InputTensor.DataType` must be one of FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, \
UINT16, UINT8 at feature level 3_0, got INT64; first accepted at 4_1
    """
    level = FeatureLevel.of(feature_level)
    model = load(model_or_path)
    return [_node_report(occurrence, level) for occurrence in occurrences(model, sizes or {})]


def _node_report(occurrence: Occurrence, level: FeatureLevel) -> NodeReport:
    node = occurrence.node
    unknown = _unknowns(occurrence)
    final = [f"no valid ONNX: {fault}" for fault in _faults(occurrence)]
    call = None if final else _call(occurrence)
    if call is not None:
        try:
            call.moved_shape()
        except ValueError as error:
            final.append(str(renamed(error, "no valid ONNX", {})))
            call = None
    final += _objections_of_all_levels(occurrence)
    reasons = final + (_worded(objections(call, level), unknown) if call else [])
    first_level = None
    if call and not final:
        first_level = next((level for level in FeatureLevel if not objections(call, level)), None)
    return NodeReport(
        name=_text(node.name),
        op_type=node.op_type,
        path=occurrence.path,
        output=_text(node.output[0]) if node.output else "",
        opset=occurrence.opset,
        operator=call.desc_type.operator if call else "",
        feature_level=level,
        accepted=False if reasons else None if unknown else True,
        reasons=tuple(reasons or unknown),
        first_level=first_level,
    )


def _text(name: str | bytes) -> str:
    """Return a name of the model as str; protobuf returns bytes for names that are not UTF-8."""
    return name if isinstance(name, str) else name.decode(errors="replace")


def _faults(occurrence: Occurrence) -> list[str]:
    """Return the ONNX rules that a node violates. Rules about shapes are not checked here."""
    name, opset = occurrence.node.op_type, occurrence.opset
    begins = min(FAMILY[name].versions())
    if opset < begins:
        return [f"{name} begins with opset {begins}, opset {opset} is imported"]
    schema = onnx.defs.get_schema(name, min(opset, onnx.defs.onnx_opset_version()), "")
    faults = attribute_faults(occurrence.node, schema)
    faults += [
        f"`{attribute.name}` refers to an attribute of a function, and there is none around it"
        for attribute in occurrence.node.attribute
        if attribute.ref_attr_name
    ]
    formal = [parameter.name for parameter in schema.inputs]
    if len([operand for operand in occurrence.operands if operand.value]) != len(formal):
        faults.append(f"the inputs must be {', '.join(formal)}")
    return faults


def _objections_of_all_levels(occurrence: Occurrence) -> list[str]:
    reduction = _attribute(occurrence, "reduction", b"none")
    reasons = []
    if reduction != b"none":
        name = reduction.decode(errors="replace") if isinstance(reduction, bytes) else reduction
        reasons.append(f"DirectML's scatter operators have no reduction, the node's is {name!r}")
    for operand in occurrence.operands:
        if operand.element_type is not None and _data_type(operand.element_type) is None:
            type_name = _type_name(operand.element_type)
            reasons.append(f"{operand} is {type_name}, a type that DirectML does not have")
    return reasons


def _attribute(occurrence: Occurrence, name: str, default: Any) -> Any:
    for attribute in occurrence.node.attribute:
        if attribute.name == name and not attribute.ref_attr_name:
            return onnx.helper.get_attribute_value(attribute)
    return default


def _unknowns(occurrence: Occurrence) -> list[str]:
    unknowns = []
    for operand in occurrence.operands:
        if operand.element_type is None:
            unknowns.append(f"unknown: the type of {operand}")
        if operand.shape is None:
            unknowns.append(f"unknown: the shape of {operand}")
            continue
        for d, size in enumerate(operand.shape):
            if not isinstance(size, int):
                name = f", {size!r}" if size else ""
                unknowns.append(f"unknown: the size of {operand} on dimension {d}{name}")
    return unknowns


def _call(occurrence: Occurrence) -> NodeCall:
    """Return the node's DirectML call. Replace unknown types and sizes with permissive guesses."""
    op, operands = FAMILY[occurrence.node.op_type].op, occurrence.operands
    operator = OPERATORS[op]
    no_batches = operator.takes_tuples and operator.scatters  # ONNX's ScatterND has none
    axis = 0 if no_batches else _attribute(occurrence, operator.attribute, 0)
    types = _types(operands)
    shapes = replace_unknown_sizes(op, axis, {operand.name: operand.shape for operand in operands})
    if shapes is not None:
        return NodeCall(op, axis, types, shapes)
    # Sizes of 1 satisfy every rule, so that only types, ranks and the level are checked.
    ranks = [len(operand.shape) for operand in operands if operand.shape is not None]
    batches = min(axis, _TOO_MANY_BATCH_DIMENSIONS) if operator.takes_tuples and axis > 0 else 0
    ones = {operand.name: (1,) * (batches + 1) for operand in operands}
    if no_batches:
        ones["updates"] = ()
    return NodeCall(op, batches, types, ones, max(ranks, default=1))


def _types(operands: tuple[Operand, ...]) -> dict[str, TensorDataType]:
    types = {"data": _ANY_DATA, "indices": _ANY_INDICES, "updates": _ANY_DATA}
    for operand in operands:
        data_type = None if operand.element_type is None else _data_type(operand.element_type)
        if data_type is not None:
            types[operand.name] = data_type
    element_types = {operand.name: operand.element_type for operand in operands}
    for name, other_name in (("data", "updates"), ("updates", "data")):
        if element_types.get(name) is None or _data_type(element_types[name] or 0) is None:
            types[name] = types[other_name]
    return types


def _data_type(element_type: int) -> TensorDataType | None:
    """Return DirectML's type for an ONNX type, or None if DirectML has no such type."""
    name = _type_name(element_type)
    return TensorDataType.__members__.get(_RENAMED.get(name, name))


def _type_name(element_type: int) -> str:
    onnx_types = onnx.TensorProto.DataType
    return (
        onnx_types.Name(element_type)
        if element_type in onnx_types.values()
        else f"type {element_type}"
    )


def _worded(reasons: list[str], unknown: list[str]) -> list[str]:
    """Mark the reasons that are about guessed sizes."""
    if not unknown:
        return reasons
    return [
        f"{reason} (unknown sizes count as 1)" if ".Sizes" in reason else reason
        for reason in reasons
    ]
