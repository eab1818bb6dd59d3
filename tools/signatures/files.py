"""The six functions on files, whose docstrings are in file_docstrings.py."""

from pathlib import Path

from model import (
    PACKAGE,
    REST,
    UNKNOWN,
    Function,
    Parameter,
    read_docstrings,
    six_functions,
    written_call,
    written_function,
    written_head,
    written_module,
)

DOCSTRINGS = Path(__file__).parent / "file_docstrings.py"
TYPES = {"fill_value": "Any"}
OPERAND = "Operand"
MEMORY = Parameter("memory", "str | int", "MEMORY", keyword_only=True)
SPILL_DIR = Parameter("spill_dir", "Path | None", "None", keyword_only=True)
IN_PLACE = Parameter("in_place", "bool", "False", keyword_only=True)
OTHERS = (
    Parameter("resume", "bool", "False", keyword_only=True),
    Parameter("overwrite", "bool", "True", keyword_only=True),
    Parameter("progress", "Progress | bool | None", "None", keyword_only=True),
    Parameter("decode", "bool", "True", keyword_only=True),
    Parameter("storage_options", "Mapping[str, Any] | None", "None", keyword_only=True),
)
AXES = Parameter("axes", "Axes | None", "None", keyword_only=True)
SETTINGS = ("memory", "spill_dir", "resume", "overwrite", "progress", "storage_options")

IMPORTS = """\
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Never, Unpack, overload

from numpy.typing import NDArray

"""
GATHER_IMPORTS = """\
from gatherum._model.defaults import MEMORY
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Operand, Path
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.file_call import FileCall
from gatherum.files.options import GatherOptions, TupleOptions
from gatherum.files.resources.stats import Progress, Stats
from gatherum.files.strategies.reordered import Axes
"""
SCATTER_IMPORTS = """\
from gatherum._model.call_types import ReductionName
from gatherum._model.defaults import MEMORY
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Operand, Path
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.file_call import FileCall
from gatherum.files.options import ScatterOptions
from gatherum.files.resources.stats import Progress, Stats
"""


def files() -> dict[Path, str]:
    """Return the text of the modules."""
    docstrings = read_docstrings(DOCSTRINGS)
    functions = [each for each in six_functions().values() if f"{each.name}_file" in docstrings]
    gathers = [each for each in functions if not each.scatters]
    scatters = [each for each in functions if each.scatters]
    return {
        PACKAGE / "files" / "gathers.py": written_module(
            "The three gathers on files.",
            IMPORTS + GATHER_IMPORTS,
            *(_on_files(each, docstrings[f"{each.name}_file"]) for each in gathers),
        ),
        PACKAGE / "files" / "scatters.py": written_module(
            "The three scatters on files.",
            IMPORTS + SCATTER_IMPORTS,
            *(_on_files(each, docstrings[f"{each.name}_file"]) for each in scatters),
        ),
    }


def _has_axes(function: Function) -> bool:
    """Return True if index tuples gather, whose components may address any dimensions."""
    return function.position == "batch_dims" and not function.scatters


def _operands(function: Function) -> list[str]:
    return ["table", "indices", *(["updates"] if function.scatters else [])]


def _on_files(function: Function, docstring: str) -> str:
    """Return the overloads and the function for an operator."""
    operands: list[Parameter | str] = [Parameter(one, OPERAND) for one in _operands(function)]
    position = next(one for one in function.parameters if one.name == function.position)
    options = "ScatterOptions" if function.scatters else "GatherOptions"
    options = "TupleOptions" if _has_axes(function) else options
    name, unpacked = f"{function.name}_file", f"**options: Unpack[{options}]"
    returned = written_head(
        name, [*operands, "out: None = None", position, unpacked], "NDArray[Any]"
    )
    stored = written_head(name, [*operands, "out: Path", position, unpacked], "Stats")
    out = Parameter("out", "Path | None", "None")
    parameters = [*operands, out, position, *_keywords(function), REST]
    head = written_head(name, parameters, "Stats | NDArray[Any]")
    implementation = written_function(head, docstring, *_body(function))
    return f"@overload\n{returned} ...\n\n\n@overload\n{stored} ...\n{implementation}"


def _keywords(function: Function) -> list[Parameter]:
    """Return the keyword-only parameters: the fold, the memory, other attributes, and options."""
    named = [one for one in function.typed(TYPES, "out") if one.keyword_only]
    fold = [one for one in named if one.name in ("reduction", "include_self")]
    others = [one for one in named if one not in fold]
    in_place = [IN_PLACE] if function.scatters else []
    axes = [AXES] if _has_axes(function) else []
    return [*fold, MEMORY, *others, SPILL_DIR, *in_place, *OTHERS, *axes]


def _body(function: Function) -> list[str]:
    """Return the statements that make a `FileCall` and run it."""
    named = [one.name for one in function.parameters if one.keyword_only]
    attributes = [function.position, *(name for name in named if name not in ("fill_value", "out"))]
    decode = ("in_place", "decode") if function.scatters else ("decode=decode",)
    call = [f'"{function.name}"', "operands", "out", "attributes", "settings"]
    call += [] if function.scatters else ["fill_value"]
    call += ["axes"] if _has_axes(function) else []
    operands = ", ".join(f'"{name}": {name}' for name in _operands(function))
    return [
        f"if {UNKNOWN}:",
        f"    raise unknown_argument({function.refusal})",
        f"operands = {{{operands}}}",
        "attributes = {",
        *(f'    "{name}": {name},' for name in attributes),
        "}",
        *written_call("settings = RunSettings", (*SETTINGS, *decode)),
        f"return FileCall({', '.join(call)}).run()",
    ]
