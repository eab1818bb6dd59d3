"""Walk a model and yield its gather and scatter nodes with inferred types.

`onnx.inliner` is not used for a model's functions, because it renames nodes, whereas the reports
use the model's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from os import PathLike, fspath
from os.path import splitext
from typing import Final, TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from gatherum._system.regular_files import read_regular

from .reference_ops import FAMILY

Dimension: TypeAlias = int | str | None
"""A size, its symbolic name, or None."""

Functions: TypeAlias = Mapping[tuple[str, str, str], onnx.FunctionProto]
"""A model's local functions by domain, name and overload."""

# Protobuf's limit, in bytes.
_LARGEST: Final = (2 << 30) - 1

# A tensor of at most this many elements may be a shape, which inference reads.
_SHAPE_LIKE = 64

# Not the name of an operator, so that inference skips the node.
_HIDDEN = "hidden"

# ONNX's inference of values creates an object for every entry of a vector of any type.
_LONGEST = 1 << 16


@dataclass(frozen=True)
class Operand:
    """One input of a node: its ONNX name, its name in the graph, and, if known, type and shape."""

    name: str
    value: str
    element_type: int | None
    shape: tuple[Dimension, ...] | None

    def __str__(self) -> str:
        return f"`{self.name}` ({self.value!r})"


@dataclass(frozen=True)
class Occurrence:
    """A gather or scatter node, in the graph, a subgraph or the body of a called function."""

    node: onnx.NodeProto
    path: str
    opset: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class _Scope:
    """The scope of a graph: its path, its opset, and its types and small constants by name."""

    path: str
    opset: int
    types: Mapping[str, onnx.TypeProto]
    constants: Mapping[str, onnx.TensorProto]


def load(source: onnx.ModelProto | bytes | str | PathLike[str]) -> onnx.ModelProto:
    """Load a model from a ModelProto, bytes or a path, without external weights.

    Raises
    ------
    OSError
        If the file cannot be read, is not a regular file, or is 2 GiB or larger.
    ValueError
        If it is not an ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return source
    subject = "the bytes" if isinstance(source, bytes) else repr(fspath(source))
    try:
        if isinstance(source, bytes):
            model = onnx.load_model_from_string(source)
        else:
            written = onnx.serialization.registry.get_format_from_file_extension(
                splitext(fspath(source))[1]
            )
            content = read_regular(source, _LARGEST)
            model = onnx.load_model_from_string(content, written or "protobuf")
    except DecodeError as error:
        raise ValueError(f"check_model: no ONNX model in {subject}: {error}") from None
    if not model.HasField("graph"):
        raise ValueError(f"check_model: no ONNX model in {subject}: it has no graph")
    return model


def op_types(source: onnx.ModelProto | bytes | str | PathLike[str]) -> list[str]:
    """Return the names of a model's operators, including operators in bodies and functions."""
    model = load(source)
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    return sorted({node.op_type for node in _all_nodes(nodes)})


def occurrences(model: onnx.ModelProto, sizes: Mapping[str, int]) -> Iterator[Occurrence]:
    """Yield the gather and scatter nodes in the order of the graph, with symbolic sizes replaced.

    Raises
    ------
    ValueError
        If ONNX cannot infer shapes, a function calls itself, or `sizes` contains a name that is not
        a symbolic size of the model.
    """
    named = onnx.ModelProto()
    named.CopyFrom(model)
    functions = {(f.domain, f.name, f.overload): f for f in named.functions}
    _require_no_cycle(functions)
    symbolic_sizes = _settle_sizes(_all_values(named), sizes)
    if unknown := [name for name in sizes if name not in symbolic_sizes]:
        names = ", ".join(map(repr, sorted(symbolic_sizes))) or "none"
        raise ValueError(
            f"check_model: the model has no symbolic size {unknown[0]!r}; its own are {names}"
        )
    inferred = _infer(named)
    scope = _Scope("graph", _opset(model.opset_import), {}, {})
    try:
        yield from _graph(inferred.graph, scope, functions, named)
    except UnicodeDecodeError as error:  # protobuf reads such names but does not write them
        raise ValueError(f"check_model: a name in the model is not UTF-8: {error}") from error


def _graph(
    graph: onnx.GraphProto,
    outer: _Scope,
    functions: Functions,
    model: onnx.ModelProto,
) -> Iterator[Occurrence]:
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {v.name: v.type for v in values if v.type.WhichOneof("value")}
    types |= {t.name: _type_of(t) for t in graph.initializer}
    constants = {t.name: t for t in graph.initializer} | _constants(graph)
    scope = replace(
        outer, types={**outer.types, **types}, constants={**outer.constants, **constants}
    )
    for node in graph.node:
        if node.domain in ("", "ai.onnx") and node.op_type in FAMILY:
            yield Occurrence(node, scope.path, scope.opset, _operands(node, scope.types))
        for attribute in node.attribute:
            for body in _bodies(attribute):
                path = f"{scope.path}/{_title(node)}.{attribute.name}"
                yield from _graph(body, replace(scope, path=path), functions, model)
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            yield from _function(functions[key], node, scope, functions, model)


def _function(
    function: onnx.FunctionProto,
    call: onnx.NodeProto,
    scope: _Scope,
    functions: Functions,
    model: onnx.ModelProto,
) -> Iterator[Occurrence]:
    """Walk a function's body with the types and attributes of one call."""
    attributes = {a.name: a for a in function.attribute_proto}
    attributes |= {a.name: a for a in call.attribute}
    body = onnx.GraphProto(name=function.name, value_info=function.value_info)
    body.node.extend(_bound(node, attributes) for node in function.node)
    body.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    for formal, actual in zip(function.input, call.input, strict=False):
        constant = scope.constants.get(actual)
        if constant is not None and prod(constant.dims) <= _SHAPE_LIKE:
            body.initializer.add().CopyFrom(constant)
            body.initializer[-1].name = formal
        else:
            body.input.add(name=formal, type=scope.types.get(actual, onnx.TypeProto()))
    wrapped = onnx.ModelProto(
        ir_version=model.ir_version,
        opset_import=function.opset_import,
        functions=model.functions,
        graph=body,
    )
    body_scope = _Scope(f"{scope.path}/{_title(call)}", _opset(function.opset_import), {}, {})
    yield from _graph(_infer(wrapped).graph, body_scope, functions, model)


def _bound(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """Copy a function's node, and replace its attribute references with the call's attributes."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            actual = attributes.get(attribute.ref_attr_name)
            if actual is not None:
                bound.attribute.add().CopyFrom(actual)
                bound.attribute[-1].name = attribute.name
            continue
        copy = bound.attribute.add()
        copy.CopyFrom(attribute)
        for body in _bodies(copy):
            nodes = [_bound(inner_node, attributes) for inner_node in body.node]
            del body.node[:]
            body.node.extend(nodes)
    return bound


def _infer(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that ONNX infers, without ONNX's generated size names."""
    names = {dimension.dim_param for dimension in _sizes(_all_values(model))}
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    hidden = [node for body in bodies for node in _all_nodes(body) if _crashes_inference(node)]
    for node in hidden:
        node.op_type = _HIDDEN
    inferred = _inferred(model)
    for node in (*_all_nodes(inferred.graph.node), *hidden):
        if node.op_type == _HIDDEN:
            node.op_type = "GatherND"
    for dimension in _sizes(_all_values(inferred)):
        if dimension.dim_param not in names:
            dimension.ClearField("dim_param")
    return inferred


def _crashes_inference(node: onnx.NodeProto) -> bool:
    """Return True if ONNX's shape inference would crash, because it does not check batch_dims."""
    return node.op_type == "GatherND" and any(
        attribute.name == "batch_dims" and (attribute.i < 0 or attribute.ref_attr_name)
        for attribute in node.attribute
    )


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
        if any(_is_long(value.type) for value in _values(inferred.graph)):
            return inferred
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"check_model: shapes cannot be inferred: {why}") from error


def _all_values(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    """Yield all typed values of a model and its functions."""
    yield from _values(model.graph)
    for function in model.functions:
        yield from function.value_info
        yield from _inner_values(function.node)


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """Yield all typed values of a graph and its subgraphs."""
    yield from (*graph.input, *graph.output, *graph.value_info)
    yield from (onnx.ValueInfoProto(type=_type_of(tensor)) for tensor in graph.initializer)
    yield from _inner_values(graph.node)


def _inner_values(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.ValueInfoProto]:
    for node in nodes:
        for attribute in node.attribute:
            for body in _bodies(attribute):
                yield from _values(body)


def _is_long(value_type: onnx.TypeProto) -> bool:
    """Whether a value is a vector so long that inferring its entries would exhaust memory."""
    sizes = value_type.tensor_type.shape.dim
    return len(sizes) == 1 and sizes[0].dim_value > _LONGEST


def _sizes(
    values: Iterable[onnx.ValueInfoProto],
) -> Iterator[onnx.TensorShapeProto.Dimension]:
    for value in values:
        yield from value.type.tensor_type.shape.dim


def _settle_sizes(values: Iterable[onnx.ValueInfoProto], sizes: Mapping[str, int]) -> set[str]:
    """Replace symbolic sizes with the given sizes. Return the names of all symbolic sizes.

    Negative sizes are replaced with unknown sizes, because they crash ONNX's shape inference. Some
    exporters write negative sizes to mean unknown sizes.
    """
    names = set()
    for dimension in _sizes(values):
        name = dimension.dim_param
        if name:
            names.add(name)
        if name in sizes:
            dimension.dim_value = sizes[name]
        if dimension.dim_value < 0:
            dimension.ClearField("dim_value")
    return names


def _require_no_cycle(functions: Functions) -> None:
    """Raise ValueError if a function calls itself, directly or through others."""
    safe: set[tuple[str, str, str]] = set()

    def visit(key: tuple[str, str, str], callers: tuple[tuple[str, str, str], ...]) -> None:
        if key in callers:
            raise ValueError(f"check_model: the function {key[1]!r} calls itself")
        if key in safe or key not in functions:
            return
        for node in _all_nodes(functions[key].node):
            visit((node.domain, node.op_type, node.overload), (*callers, key))
        safe.add(key)

    for key in functions:
        visit(key, ())


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in _bodies(attribute):
                yield from _all_nodes(body.node)


def _bodies(attribute: onnx.AttributeProto) -> Iterable[onnx.GraphProto]:
    return [attribute.g] if attribute.HasField("g") else attribute.graphs


def _operands(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> tuple[Operand, ...]:
    names = ("data", "indices", "updates")
    return tuple(
        _operand(name, value, types.get(value))
        for name, value in zip(names, node.input, strict=False)
    )


def _operand(name: str, value: str, value_type: onnx.TypeProto | None) -> Operand:
    if value_type is None or not value_type.HasField("tensor_type"):
        return Operand(name, value, None, None)
    tensor = value_type.tensor_type
    shape = tuple(map(_dimension, tensor.shape.dim)) if tensor.HasField("shape") else None
    return Operand(name, value, tensor.elem_type or None, shape)


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> Dimension:
    if dimension.HasField("dim_value"):
        return dimension.dim_value
    return dimension.dim_param or None


def _constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    return {
        node.output[0]: attribute.t
        for node in graph.node
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx")
        for attribute in node.attribute
        if attribute.name == "value"
    }


def _type_of(tensor: onnx.TensorProto) -> onnx.TypeProto:
    return onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def _opset(imports: object) -> int:
    """Return the imported version of ONNX's standard operators, or 0 if there is none."""
    for opset_import in imports:  # type: ignore[attr-defined]  # a protobuf sequence
        if opset_import.domain in ("", "ai.onnx"):
            version: int = opset_import.version
            return version
    return 0


def _title(node: onnx.NodeProto) -> str:
    """Return the operator and name of a node, or the name of its output if it has no name."""
    return f"{node.op_type} {node.name or (node.output[0] if node.output else '')!r}"
