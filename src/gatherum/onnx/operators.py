"""Base classes of operators in ONNX's evaluator: `NodeOp` for messages, `VersionedOp` for versions
and types, and `FamilyOp` for the limits of the six operators.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.dtype_rows import spellings
from gatherum._model.errors import Shape
from gatherum._model.errors.texts import choices
from gatherum._model.operators import OPERATORS
from gatherum._model.reductions import known_to_onnx
from gatherum._plans.index_errors import find_invalid
from gatherum._plans.plans import apply

from .strings import apply_to_strings, is_string

SPELLING = {
    "float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0",
}  # fmt: skip
ABSENT = frozenset((
    "complex32", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "longdouble", "clongdouble",
))  # fmt: skip
_TYPE_NAMES = spellings("ONNX", SPELLING, ABSENT)
_TYPE_NAMES["float4_e2m1fn"] = "float4e2m1"  # the core's table has no such row


@lru_cache(maxsize=256)
def type_name(dtype: np.dtype[Any]) -> str:
    """Return ONNX's name for a dtype, or NumPy's name if ONNX does not have the dtype."""
    if is_string(dtype):
        return "string"
    if dtype.names is not None:  # structured; onnx before 1.19 used such integers for bfloat16
        return str(dtype)
    return _TYPE_NAMES.get(dtype.name, dtype.name)


def _allowed_types(schema: onnx.defs.OpSchema) -> list[tuple[str, ...]]:
    """Return ONNX's names for the types that a version allows for each input."""
    named = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return [
        tuple(
            text.removeprefix("tensor(").removesuffix(")")
            for text in named.get(formal.type_str, [formal.type_str])
        )
        for formal in schema.inputs
    ]


def attribute_faults(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> list[str]:
    """Return the faults of a node's attributes for a version of its operator."""
    known_attributes, faults = schema.attributes, []
    type_name = onnx.AttributeProto.AttributeType.Name
    for attribute in node.attribute:
        name = attribute.name
        if name not in known_attributes:
            names = ", ".join(sorted(known_attributes)) or "none"
            faults.append(f"has no attribute `{name}` in version {schema.since_version} ({names})")
        elif attribute.type != (expected := int(known_attributes[name].type.value)):  # type: ignore[attr-defined]
            faults.append(
                f"`{name}` must be {type_name(expected)}, got {type_name(attribute.type)}"
            )
    return faults


class NodeOp(OpRun):
    """An operator of gatherum in ONNX's evaluator, with messages that name the node and inputs."""

    op: ClassVar[str]  # the name of gatherum's function
    names: ClassVar[tuple[str, ...]] = ("data", "indices", "updates")  # the names of the inputs

    def run(self, *args: Any, **context: Any) -> tuple[NumpyArray, ...]:
        """Run the node. Unwrap a TypeError, whose message ONNX would replace."""
        try:
            result: tuple[NumpyArray, ...] = super().run(*args, **context)  # type: ignore[no-untyped-call]
        except TypeError as wrapped:
            if isinstance(wrapped.__cause__, TypeError):
                raise wrapped.__cause__ from None
            raise
        return result

    def _worded(self, error: Exception) -> str:
        """Return the function's message with the names of the node and the input in the model."""
        text = self._text_of(error)
        for name in self.names:
            if text.startswith(f"`{name}` "):
                text = self._input(name) + text.removeprefix(f"`{name}`")
        return self._said(text)

    def _text_of(self, error: Exception) -> str:
        """Return the function's message without its name."""
        return str(error).removeprefix(f"{self.op}: ")

    def _input(self, name: str) -> str:
        return f"input `{name}` ({self.onnx_node.input[self.names.index(name)]!r})"

    def _said(self, text: str) -> str:
        return f"{self.onnx_node.op_type} ({_location(self.onnx_node)}): {text}"


class VersionedOp(NodeOp):
    """A standard operator of ONNX. A class lists the opsets in which its versions begin, and has a
    subclass ``Name_N`` for each version.

    ONNX's evaluator looks up classes only by the operator's name. Therefore the class of that name
    creates an instance of the version for the model's opset.
    """

    since: ClassVar[int] = 0
    _versions: ClassVar[dict[int, type[VersionedOp]]]

    def __init_subclass__(cls, opsets: tuple[int, ...] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if opsets:
            names = {"__module__": cls.__module__}
            cls._versions = {
                n: type(f"{cls.__name__}_{n}", (cls,), names | {"since": n}) for n in opsets
            }

    def __new__(
        cls, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None
    ) -> VersionedOp:
        """Select the version by the opset that the model, function or graph imports."""
        version = cls if cls.since else cls._version_at(run_params["opsets"][""], onnx_node)
        instance: VersionedOp = super().__new__(version)
        return instance

    def __init__(
        self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None
    ) -> None:
        super().__init__(onnx_node, run_params, schema)
        name, since = type(self).__name__.partition("_")[0], self.since
        self._definition = schema or onnx.defs.get_schema(name, since, "")
        self._require_inputs()
        for fault in attribute_faults(onnx_node, self._definition):
            raise ValueError(self._said(fault))
        self._types = _allowed_types(self._definition)

    @classmethod
    def versions(cls) -> dict[int, type[VersionedOp]]:
        """Return the operator's versions by the opset in which each begins."""
        return cls._versions

    @classmethod
    def _version_at(cls, opset: int, node: onnx.NodeProto) -> type[VersionedOp]:
        name, versions = cls.__name__, cls.versions()
        if opset < min(versions):
            raise ValueError(
                f"{name} ({_location(node)}): begins with opset {min(versions)}, "
                f"the model imports opset {opset}"
            )
        since = onnx.defs.get_schema(name, opset, "").since_version
        if since not in versions:
            raise ValueError(
                f"{name} ({_location(node)}): version {since} is not known, "
                f"only {', '.join(map(str, versions))}"
            )
        return versions[since]

    def _require_inputs(self) -> None:
        names = ", ".join(formal.name for formal in self._definition.inputs)
        least, most = self._definition.min_input, self._definition.max_input
        inputs = list(self.onnx_node.input)
        if not least <= len(inputs) <= most or "" in inputs[:least]:
            count = most if least == most else f"{least} or {most}"
            raise ValueError(self._said(f"must have {count} inputs ({names}), got {inputs}"))

    def _require_types(self, operands: dict[str, NumpyArray]) -> None:
        formals = {formal.name: formal.type_str for formal in self._definition.inputs}
        for types, (name, operand) in zip(self._types, operands.items(), strict=False):
            if not isinstance(operand, np.ndarray):
                raise TypeError(
                    self._said(f"{self._input(name)} must be a tensor, got {_kind(operand)}")
                )
            actual = type_name(operand.dtype)
            if actual not in types:
                expected = f"one of {', '.join(types)}" if len(types) > 2 else " or ".join(types)
                raise TypeError(self._said(f"{self._input(name)} must be {expected}, got {actual}"))
        first, *other_operands = operands
        expected = type_name(operands[first].dtype)
        for name in other_operands:
            actual = type_name(operands[name].dtype)
            if formals[name] == formals[first] and actual != expected:
                raise TypeError(
                    self._said(
                        f"{self._input(name)} must have the type of `{first}`, {expected}, "
                        f"got {actual}"
                    )
                )


class FamilyOp(VersionedOp):
    """One of the six operators of the family.

    Invalid indices follow the `mode` of the evaluator's class, "raise" by default. Negative indices
    are valid from opset 11 on.
    """

    def __init__(
        self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None
    ) -> None:
        super().__init__(onnx_node, run_params, schema)
        self._mode = getattr(run_params.get("evaluator_cls"), "mode", "raise")
        self._negative = self.since >= 11

    def _run(
        self,
        data: NumpyArray,
        indices: NumpyArray,
        updates: NumpyArray | None = None,
        **attributes: Any,
    ) -> tuple[NumpyArray]:
        operands = {"data": data, "indices": indices}
        if updates is not None:
            operands["updates"] = updates
        self._require_types(operands)
        self._require_reduction(attributes.get("reduction", "none"), data.dtype)
        compute = apply_to_strings if is_string(data.dtype) else apply
        try:
            self._require_shapes(operands, attributes)
            attributes = {"negative": self._negative, "mode": self._mode, **attributes}
            return (compute(self.op, *operands.values(), **attributes),)
        except IndexError as error:
            raise self._invalid_index(error, data.shape, indices, attributes) from error
        except (TypeError, ValueError) as error:
            raise type(error)(self._worded(error)) from error

    def _invalid_index(
        self, error: IndexError, shape: Shape, indices: NumpyArray, attributes: dict[str, Any]
    ) -> IndexError:
        """Return the error for an invalid index, with a remark if later opsets accept it."""
        text = f"{self._input('indices')}: {self._text_of(error)}"
        if not self._negative:
            axis = attributes.get(OPERATORS[self.op].attribute, 0)
            called = Attributes(self.op, axis, mode=self._mode, negative=False)
            data = ArraySpec.contiguous(shape, np.dtype(np.uint8))
            invalid = find_invalid(Call(called, data, ArraySpec.of(indices)), indices)
            if invalid is not None and invalid.value < 0:
                text += "; negative indices begin with opset 11"
        return IndexError(self._said(text))

    def _require_shapes(self, operands: dict[str, NumpyArray], attributes: dict[str, Any]) -> None:
        """Check the shape rules of ONNX that gatherum's functions do not check.

        The base class has no such rules.
        """

    def _require_reduction(self, reduction: str, dtype: np.dtype[Any]) -> None:
        reductions = known_to_onnx(self.since)
        if reduction not in ("none", *reductions):
            raise ValueError(
                self._said(
                    f"`reduction` must be one of {choices(reductions)} "
                    f"in version {self.since}, got {reduction!r}"
                )
            )
        if reduction != "none" and is_string(dtype):
            raise TypeError(self._said(f"`reduction` {reduction!r} is not defined for string"))

    def _require_updates(self, operands: dict[str, NumpyArray], expected: tuple[int, ...]) -> None:
        """Raise ValueError unless the updates have this shape; ONNX does not broadcast them."""
        shape = operands["updates"].shape
        if shape != expected:
            raise ValueError(f"`updates` must have shape {expected}, got {shape}")


def _location(node: onnx.NodeProto) -> str:
    output = f"output {node.output[0]!r}" if node.output else "no output"
    return f"node {node.name!r}, {output}" if node.name else output


def _kind(operand: object) -> str:
    return "nothing" if operand is None else type(operand).__name__
