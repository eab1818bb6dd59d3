"""`check_model`: which gather and scatter nodes of a model a DirectML feature level takes."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

import onnx

from ..directml import FeatureLevel, TensorDataType
from ..directml.types import LATEST, LevelLike
from .graphs import Occurrence, Operand, load, occurrences
from .mapping import Call, objections, settle
from .reference_ops import FAMILY
from .report import NodeReport

# DirectML names every other type as ONNX does.
_RENAMED = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}

# Types that every level takes, in the place of unknown ones.
_ANY_DATA = TensorDataType.FLOAT32
_ANY_INDICES = TensorDataType.UINT32


def check_model(
    model_or_path: onnx.ModelProto | bytes | str | PathLike[str],
    feature_level: LevelLike = LATEST,
    *,
    sizes: Mapping[str, int] | None = None,
) -> list[NodeReport]:
    """Report on every gather and scatter node whether a DirectML feature level takes it.

    Shapes are inferred first. Nodes in the bodies of If, Loop and Scan count, and those in local
    functions, once for each call.

    Parameters
    ----------
    model_or_path : ModelProto, bytes or path-like
        Weights in other files are not read.
    feature_level : FeatureLevel, str or int, optional
        The latest by default.
    sizes : mapping of str to int, optional
        Sizes for the model's symbolic dimensions, such as ``{"batch": 8}``.

    Returns
    -------
    list of NodeReport
        In the order of the graph. `accepted` is None where the answer depends on a type, shape
        or size that is not known.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no ONNX model, its shapes contradict each other, or there is no such level.

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
    return [_judge(occurrence, level) for occurrence in occurrences(model, sizes or {})]


def _judge(occurrence: Occurrence, level: FeatureLevel) -> NodeReport:
    node, op = occurrence.node, FAMILY[occurrence.node.op_type].op
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    axis = attributes.get("batch_dims" if op == "gather_nd" else "axis", 0)
    if op == "scatter_nd":
        axis = 0
    unknown = _unknowns(occurrence)
    final = _final_objections(occurrence, attributes.get("reduction", b"none"))
    call = _call(op, axis, occurrence.operands) if _has_inputs(occurrence) else None
    if call is not None:
        try:
            call.moved_shape()
        except ValueError as error:
            final.append(f"no valid ONNX: {str(error).removeprefix(op + ': ')}")
            call = None
    reasons = final + (_worded(objections(call, level), unknown) if call else [])
    first = None
    if call and not final:
        first = next((one for one in FeatureLevel if not objections(call, one)), None)
    return NodeReport(
        name=node.name,
        op_type=node.op_type,
        path=occurrence.path,
        output=node.output[0] if node.output else "",
        opset=occurrence.opset,
        operator=call.desc_type.operator if call else "",
        feature_level=level,
        accepted=False if reasons else None if unknown else True,
        reasons=tuple(reasons or unknown),
        first_level=first,
    )


def _has_inputs(occurrence: Occurrence) -> bool:
    expected = 3 if "updates" in _formal_inputs(occurrence) else 2
    given = [operand for operand in occurrence.operands if operand.value]
    return len(given) == expected


def _formal_inputs(occurrence: Occurrence) -> tuple[str, ...]:
    scatter = FAMILY[occurrence.node.op_type].op.startswith("scatter")
    return ("data", "indices", "updates") if scatter else ("data", "indices")


def _final_objections(occurrence: Occurrence, reduction: bytes) -> list[str]:
    """Return the reasons that hold at every level."""
    name = occurrence.node.op_type
    begins = min(FAMILY[name].versions())
    reasons = []
    if occurrence.opset < begins:
        reasons.append(
            f"no valid ONNX: {name} begins with opset {begins}, "
            f"opset {occurrence.opset} is imported"
        )
    if not _has_inputs(occurrence):
        formal = ", ".join(f"`{one}`" for one in _formal_inputs(occurrence))
        reasons.append(f"no valid ONNX: the inputs must be {formal}")
    if reduction != b"none":
        reasons.append(
            f"DirectML's scatter operators have no reduction, the node's is {reduction.decode()!r}"
        )
    for operand in occurrence.operands:
        if operand.element_type is not None and _data_type(operand.element_type) is None:
            kind = _type_name(operand.element_type)
            reasons.append(f"{operand} is {kind}, a type that DirectML does not have")
    return reasons


def _unknowns(occurrence: Occurrence) -> list[str]:
    found = []
    for operand in occurrence.operands:
        if operand.element_type is None:
            found.append(f"unknown: the type of {operand}")
        if operand.shape is None:
            found.append(f"unknown: the shape of {operand}")
            continue
        for d, size in enumerate(operand.shape):
            if not isinstance(size, int):
                name = f", {size!r}" if size else ""
                found.append(f"unknown: the size of {operand} on dimension {d}{name}")
    return found


def _call(op: str, axis: int, operands: tuple[Operand, ...]) -> Call:
    """Return what the node asks of DirectML, with harmless guesses for what is unknown."""
    types = {"data": _ANY_DATA, "indices": _ANY_INDICES, "updates": _ANY_DATA}
    by_name = {operand.name: operand for operand in operands}
    for name, others in (("data", "updates"), ("indices", ""), ("updates", "data")):
        for source in (name, others):
            kind = by_name[source].element_type if source in by_name else None
            data_type = None if kind is None else _data_type(kind)
            if data_type is not None:
                types[name] = data_type
                break
    shapes = settle(op, axis, {operand.name: operand.shape for operand in operands})
    if shapes is not None:
        return Call(op, axis, types, shapes)
    ranks = [len(operand.shape) for operand in operands if operand.shape is not None]
    batches = axis if op == "gather_nd" else 0
    ones = {operand.name: (1,) * (batches + 1) for operand in operands}
    if op == "scatter_nd":
        ones["updates"] = ()
    return Call(op, batches, types, ones, max(ranks, default=1))


def _data_type(element_type: int) -> TensorDataType | None:
    """Return DirectML's type for ONNX's, None where it has none."""
    name = _type_name(element_type)
    return TensorDataType.__members__.get(_RENAMED.get(name, name))


def _type_name(element_type: int) -> str:
    known = onnx.TensorProto.DataType
    return known.Name(element_type) if element_type in known.values() else f"type {element_type}"


def _worded(reasons: list[str], unknown: list[str]) -> list[str]:
    """Say where sizes in a reason are guesses."""
    if not unknown:
        return reasons
    return [
        f"{reason} (unknown sizes count as 1)" if ".Sizes" in reason else reason
        for reason in reasons
    ]
