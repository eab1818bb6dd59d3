"""The six functions on tensors, and on the arrays of frameworks whose adapters run all calls."""

from pathlib import Path

from model import (
    PACKAGE,
    REST,
    UNKNOWN,
    Function,
    Parameter,
    indented,
    read_functions,
    six_functions,
    written_call,
    written_function,
    written_head,
    written_module,
)

FRAMEWORKS = PACKAGE / "_frameworks" / "operator_functions.py"
FRAMEWORK_DOCSTRINGS = {
    "gather": "Gather slices of an array along one axis: see `gatherum.gather`.",
    "gather_elements": (
        "Gather one element of an array for every index: see `gatherum.gather_elements`."
    ),
    "gather_nd": "Gather elements or slices of an array by index tuples: see `gatherum.gather_nd`.",
    "scatter_slices": "Scatter slices along one axis: see `gatherum.scatter_slices`.",
    "scatter_elements": "Scatter one element for every index: see `gatherum.scatter_elements`.",
    "scatter_nd": "Scatter elements or slices by index tuples: see `gatherum.scatter_nd`.",
}
FRAMEWORK_HEAD = '''\
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Never

from gatherum._model import errors
from gatherum._model.call_types import ReductionName
from gatherum._model.modes import ModeName

from .framework_functions import FrameworkArray, FrameworkFunctions


class Functions(FrameworkFunctions[FrameworkArray]):
    """The six functions for arrays of one framework.

    The attribute ``FUNCTIONS`` of `module` must be this object, because pickles refer to it. `run`
    takes the operator's name, `data`, `indices`, `updates` (None for a gather), the axis,
    `reduction`, `include_self`, `mode`, `negative` and `fill_value`.
    """
'''
OUTPUT_HEAD = '''\
class OutputFunctions(Functions[FrameworkArray]):
    """The six functions for arrays of one framework, with `out`, which `run` takes last."""
'''
FRAMEWORK_END = '''\
    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle a reference to the module."""
        return _loaded, (self._module,)


def _loaded(module: str) -> Any:
    return import_module(module).FUNCTIONS
'''

TENSORS = PACKAGE / "torch" / "functions" / "api.py"
TENSOR_DOCSTRINGS = {
    "gather": "Take slices of a tensor along one axis, by index.",
    "gather_elements": "Take one element of a tensor for every index.",
    "gather_nd": "Take elements or slices of a tensor by tuples of indices.",
    "scatter_slices": "Write slices to a tensor along one axis, by index: the inverse of `gather`.",
    "scatter_elements": (
        "Write one element to a tensor for every index: the inverse of `gather_elements`."
    ),
    "scatter_nd": (
        "Write elements or slices to a tensor by tuples of indices: the inverse of `gather_nd`."
    ),
}
TENSOR_IMPORTS = """\
from __future__ import annotations

from typing import Any, Never

from torch import Tensor

from gatherum._exports.help_signatures import plain_signatures
from gatherum._model import errors
from gatherum._model.call_types import ReductionName
from gatherum._model.modes import ModeName
from gatherum._system.native import dispatch_call as call_core

from .tensor_calls import is_traced, run_traced
"""
TENSOR_TYPES = {"data": "Tensor", "fill_value": "Any", "out": "Tensor | None"}

ONNX = PACKAGE / "torch" / "tracing" / "onnx_signatures.py"
ONNX_NODES = ONNX.with_name("onnx_nodes.py")
ONNX_IMPORTS = """\
from __future__ import annotations

from gatherum._model.call import Attributes

from . import onnx_nodes
from .onnx_nodes import Value
"""
ONNX_TYPES = {"mode": "str", "reduction": "str", "fill_value": "float"}
ONNX_TYPES |= dict.fromkeys(("data", "indices", "updates"), "Value")


def files() -> dict[Path, str]:
    """Return the text of the modules."""
    functions = six_functions()
    docstrings = FRAMEWORK_DOCSTRINGS.items()
    methods = (_method(functions[op], text, "out") for op, text in docstrings)
    body = "\n\n".join(each.strip("\n") for each in (FRAMEWORK_HEAD, *methods, FRAMEWORK_END))
    with_out = (_method(functions[op], text) for op, text in docstrings)
    outputs = "\n\n".join(each.strip("\n") for each in (OUTPUT_HEAD, *with_out))
    on_tensors = (_on_tensors(functions[op], text) for op, text in TENSOR_DOCSTRINGS.items())
    plain = f"for _function in ({', '.join(TENSOR_DOCSTRINGS)}):\n    plain_signatures(_function)\n"
    return {
        FRAMEWORKS: written_module("The six functions of a framework.", body, outputs),
        TENSORS: written_module(
            "The six functions on tensors, which call the core.", TENSOR_IMPORTS, *on_tensors, plain
        ),
        ONNX: written_module(
            "The ops as functions for ONNX exporters, which read their signatures.",
            ONNX_IMPORTS,
            *(_for_onnx(functions[each.name]) for each in read_functions(ONNX_NODES)),
        ),
    }


def _method(function: Function, docstring: str, *without: str) -> str:
    """Return the method of an operator, without some of its parameters."""
    types = {"out": "Any"}
    parameters: list[Parameter | str] = ["self", *function.typed(types, *without), REST]
    op, data, indices, updates, *attributes, out = function.core_arguments()
    attributes += [] if without else [out]
    return indented(
        written_function(
            written_head(function.name, parameters, "FrameworkArray"),
            f'"""{docstring}"""',
            f"if {UNKNOWN}:",
            f"    raise errors.unknown_argument({function.refusal})",
            f"attributes = {', '.join(attributes)}",
            f"return self._run({op}, {data}, {indices}, {updates}, *attributes)",
        )
    )


def _on_tensors(function: Function, docstring: str) -> str:
    """Return the function of an operator on tensors."""
    parameters: list[Parameter | str] = [*function.typed(TENSOR_TYPES), REST]
    return written_function(
        written_head(function.name, parameters, "Tensor"),
        f'"""{docstring}"""',
        f"if {UNKNOWN}:",
        f"    raise errors.unknown_argument({function.refusal})",
        f'run = run_traced if is_traced("{function.name}", data) else call_core',
        *written_call("return run", function.core_arguments()),
    )


def _for_onnx(function: Function) -> str:
    """Return the translation of an op, whose parameters are those of its schema."""
    bounds = {"mode": "bounds"}
    parameters: list[Parameter | str] = [
        one._replace(name=bounds.get(one.name, one.name), keyword_only=False)
        for one in function.typed(ONNX_TYPES, "out")
    ]
    fold = ("reduction", "include_self") if function.scatters else ()
    updates = ", updates" if function.scatters else ""
    attributes = f'"{function.name}"', function.position, *fold, "mode=bounds", "negative=negative"
    return written_function(
        written_head(function.name, [*parameters, 'caller: str = ""'], "Value"),
        f'"""Write the nodes of a `{function.name}`."""',
        *written_call("attributes = Attributes", attributes),
        f"return onnx_nodes.{function.name}(attributes, data, indices{updates})",
    )
