"""Read whole DxDispatch models, and execute their commands on the CPU."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gatherum._system.regular_files import read_regular

from .buffers import bytes_of
from .device import CompiledOperator, Device
from .dxdispatch import from_json
from .jsontext import LONGEST, parse_json
from .members import as_object, number_of, reject_unknown, shortened, text_of, unsigned_list
from .resources import Resource, read_resource, source_files
from .targets import check_target
from .types import LATEST, UINT64_MAX, LevelLike, TensorDataType

_ALIGNMENT: Final = 16  # DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
_MODEL: Final = ("$schema", "resources", "dispatchables", "commands")
_BINDING: Final = ("name", "elementCount", "elementSizeInBytes", "elementOffset")

Bytes = npt.NDArray[np.uint8]


@dataclass
class ModelRun:
    """The lines that a model prints, its output files, and whether all comparisons succeeded."""

    lines: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    equal: bool = True


def run_file(path: str, feature_level: LevelLike = LATEST, output: str = "") -> ModelRun:
    """Execute the commands of a DxDispatch model in a JSON file.

    The whole model is read and compiled before the first command runs. No files are written: the
    result contains their contents by path, relative to the folder ``output``.
    """
    text, folder = read_regular(path, LONGEST), os.path.dirname(path)
    return _Model(parse_json(text), folder, feature_level, output, [path]).run()


def run_text(
    text: bytes, folder: str, feature_level: LevelLike = LATEST, output: str = ""
) -> ModelRun:
    """Execute the commands of a DxDispatch model in JSON text; its files are in ``folder``."""
    return _Model(parse_json(text), folder, feature_level, output, []).run()


class _Model:
    """A model with its resources created and its commands ready to be executed."""

    def __init__(
        self,
        source: object,
        folder: str,
        feature_level: LevelLike,
        output: str,
        inputs: list[str],
    ) -> None:
        model = as_object(source, "the model")
        if "dispatchables" not in model and ("type" in model or "Type" in model):
            raise ValueError("the model must have resources and commands, got one operator desc")
        for name in _MODEL[1:]:
            if name not in model:
                raise ValueError(f"`{name}` is missing: every model needs it")
        reject_unknown(model, _MODEL, "the model")
        self._source = model
        self._device = Device(feature_level)
        self._compiled: dict[str, CompiledOperator] = {}
        self._result = ModelRun()
        self._resources = {
            name: read_resource(resource, f"resources.{name}", folder)
            for name, resource in as_object(model["resources"], "`resources`").items()
        }
        self._output = output
        self._inputs = [*inputs, *source_files(model["resources"], folder)]
        as_object(model["dispatchables"], "`dispatchables`")
        commands = model["commands"]
        if not isinstance(commands, list):
            raise ValueError(f"`commands` must be a list, got {shortened(commands)}")
        self._commands = [
            self._read(command, f"commands[{i}]") for i, command in enumerate(commands)
        ]

    def run(self) -> ModelRun:
        for command in self._commands:
            command()
        return self._result

    def _read(self, source: object, where: str) -> Callable[[], None]:
        command = as_object(source, f"`{where}`")
        readers: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], str], Any]]] = {
            "dispatch": (("dispatchable", "bindings", "threadGroupCount"), self._dispatch),
            "print": (("resource", "verbose"), self._print),
            "writefile": (("resource", "targetPath", "dimensions"), self._write),
            "compare": (("resource", "expected"), self._compare),
        }
        command_name = text_of(command, "type", where)
        if command_name.lower() not in readers:
            raise ValueError(
                f"`{where}.type` must be one of dispatch, print, writeFile, compare, "
                f"got {shortened(command_name)}"
            )
        members, make_command = readers[command_name.lower()]
        reject_unknown(command, ("type", *members), f"`{where}`")
        execute: Callable[[], None] = make_command(command, where)
        return execute

    def _dispatch(self, command: Mapping[str, Any], where: str) -> Callable[[], None]:
        name = text_of(command, "dispatchable", where)
        compiled = self._compile(name, f"{where}.dispatchable")
        tensors = compiled.desc.tensors
        # Buffers that are bound at initialization are read at that time.
        member = f"dispatchables.{name}.bindings"
        bound = self._bind(self._source["dispatchables"][name].get("bindings", {}), tensors, member)
        bound = {tensor: buffer.copy() for tensor, buffer in bound.items()}
        member = f"{where}.bindings"
        for tensor, buffer in self._bind(command.get("bindings"), tensors, member).items():
            if tensor in bound:
                raise ValueError(f"`{member}.{tensor}` must be absent: it is bound before")
            bound[tensor] = buffer
        for tensor in tensors:
            if tensor not in bound:
                raise ValueError(f"`{member}.{tensor}` is missing: {compiled.desc.operator} has it")
        fields = compiled.desc.field_names()
        operands: dict[str, Any] = {fields[tensor]: buffer for tensor, buffer in bound.items()}
        return lambda: _at(where, lambda: compiled.dispatch(**operands))

    def _compile(self, name: str, where: str) -> CompiledOperator:
        if name not in self._compiled:
            if name not in self._source["dispatchables"]:
                names = ", ".join(map(shortened, self._source["dispatchables"])) or "none"
                raise ValueError(f"`{where}` must be one of {names}, got {shortened(name)}")
            desc = from_json(self._source, name)
            self._compiled[name] = _at(f"dispatchables.{name}", lambda: self._device.compile(desc))
        return self._compiled[name]

    def _bind(self, source: object, tensors: Mapping[str, Any], where: str) -> dict[str, Bytes]:
        bindings = as_object(source, f"`{where}`")
        reject_unknown(bindings, tuple(tensors), f"`{where}`")
        bound = {}
        for tensor, binding in bindings.items():
            member = f"{where}.{tensor}"
            desc = tensors[tensor]
            alignment = max(_ALIGNMENT, desc.guaranteed_base_offset_alignment)
            bound[tensor] = self._range(binding, member, alignment)
            bytes_of(bound[tensor], desc, f"`{member}`")
        return bound

    def _range(self, source: object, where: str, alignment: int) -> Bytes:
        """Return the bytes of a resource that a binding selects."""
        if isinstance(source, list) and len(source) == 1:
            (source,) = source
        if isinstance(source, str):
            source = {"name": source}
        binding = as_object(source, f"`{where}`")
        reject_unknown(binding, _BINDING, f"`{where}`")
        resource = self._resource(binding, "name", where)
        width = resource.data_type.bits // 8 or 1
        size = number_of(binding, "elementSizeInBytes", where, UINT64_MAX) or width
        offset = size * number_of(binding, "elementOffset", where, UINT64_MAX)
        count = number_of(binding, "elementCount", where, UINT64_MAX)
        buffer_size = resource.buffer.size
        end = offset + count * size if count else max(buffer_size, offset)
        if end > buffer_size:
            raise ValueError(f"`{where}` must end within {buffer_size} bytes, got {end}")
        if offset % alignment:
            raise ValueError(
                f"`{where}` must begin at a multiple of {alignment} bytes, got {offset}"
            )
        return resource.buffer[offset:end]

    def _resource(self, members: Mapping[str, Any], member: str, where: str) -> Resource:
        name = text_of(members, member, where)
        if name not in self._resources:
            names = ", ".join(map(shortened, self._resources)) or "none"
            raise ValueError(
                f"`{where}.{member}` must be one of the resources {names}, got {shortened(name)}"
            )
        return self._resources[name]

    def _typed(self, members: Mapping[str, Any], member: str, where: str) -> Resource:
        resource = self._resource(members, member, where)
        if resource.data_type is TensorDataType.UNKNOWN:
            raise ValueError(
                f"`{where}.{member}` must be a resource of one type, "
                f"{shortened(members[member])} is UNKNOWN"
            )
        return resource

    def _print(self, command: Mapping[str, Any], where: str) -> Callable[[], None]:
        resource = self._typed(command, "resource", where)
        verbose = command.get("verbose", False)
        if not isinstance(verbose, bool):
            raise ValueError(f"`{where}.verbose` must be true or false, got {shortened(verbose)}")
        title = f"Resource '{command['resource']}':"

        def execute() -> None:
            values = resource.values()
            if verbose:
                self._result.lines += [title, *_verbose_lines(values)]
            else:
                self._result.lines.append(f"{title} {', '.join(map(_element, values))}")

        return execute

    def _write(self, command: Mapping[str, Any], where: str) -> Callable[[], None]:
        path = text_of(command, "targetPath", where)
        is_array = path.lower().endswith(".npy")
        if path.lower().endswith((".png", ".jpg")):
            raise ValueError(f"`{where}.targetPath` must be no picture, got {shortened(path)}")
        find = self._typed if is_array else self._resource
        resource = find(command, "resource", where)
        sizes = unsigned_list(command.get("dimensions", []), f"`{where}.dimensions")
        if sizes and is_array and math.prod(sizes) != resource.count:
            raise ValueError(
                f"`{where}.dimensions` must have {resource.count} elements, got {list(sizes)}"
            )

        check_target(path, self._output, self._inputs, f"{where}.targetPath")

        def execute() -> None:
            content = resource.buffer.tobytes()
            if is_array:
                file = io.BytesIO()
                np.save(file, resource.values().reshape(sizes or -1))
                content = file.getvalue()
            self._result.files[path] = content
            self._result.lines.append(f"Resource '{command['resource']}' written to '{path}'")

        return execute

    def _compare(self, command: Mapping[str, Any], where: str) -> Callable[[], None]:
        resource = self._typed(command, "resource", where)
        expected = self._typed(command, "expected", where)
        resource_text, expected_text = (
            f"{r.count} of {r.data_type.name}" for r in (resource, expected)
        )
        if resource_text != expected_text:
            raise ValueError(
                f"`{where}.expected` must have elements as the resource, {resource_text}, "
                f"got {expected_text}"
            )

        def execute() -> None:
            title = f"Resource '{command['resource']}'"
            actual, wanted = resource.values(), expected.values()
            bits = f"u{actual.itemsize}"
            differing = np.flatnonzero(actual.view(bits) != wanted.view(bits))
            if not differing.size:
                self._result.lines.append(f"{title} equals '{command['expected']}'")
                return
            self._result.equal = False
            position = differing[0]
            self._result.lines.append(
                f"{title} differs from '{command['expected']}' in {differing.size} of "
                f"{actual.size} elements: at [{position}] it has {_element(actual[position])}, "
                f"expected {_element(wanted[position])}"
            )

        return execute


def _at(where: str, call: Callable[[], Any]) -> Any:
    """Call a function, and prepend the path in the model to the message of a ValueError."""
    try:
        return call()
    except ValueError as error:
        raise ValueError(f"`{where}`: {error}") from None


def _element(value: Any) -> str:
    """Return an element as a C++ stream prints it: floats with six digits."""
    return f"{float(value):g}" if value.dtype.kind == "f" else str(int(value))


def _verbose_lines(values: npt.NDArray[Any]) -> Iterator[str]:
    width, digits = len(str(values.size)), 2 * values.itemsize
    bits = values.view(f"u{values.itemsize}")
    for i, (value, raw) in enumerate(zip(values, bits, strict=True)):
        yield f"[{i:{width}}] {_element(value)} (0x{int(raw):{digits}X})"
