"""The scatters into Zarr arrays by Dask, whose docstrings are in store_docstrings.py."""

from pathlib import Path

from model import (
    PACKAGE,
    Function,
    Parameter,
    read_docstrings,
    six_functions,
    written_call,
    written_function,
    written_head,
    written_module,
)

TARGET = PACKAGE / "dask" / "stores.py"
DOCSTRINGS = Path(__file__).parent / "store_docstrings.py"
SUFFIX = "_into"
TYPES = dict.fromkeys(("indices", "updates"), "Any | ArrayLike")
OPTIONS = (
    Parameter("resume", "bool", "False", keyword_only=True),
    Parameter("decode", "bool", "True", keyword_only=True),
)
IMPORTS = """\
from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from gatherum._model.call_types import ReductionName
from gatherum._model.modes import ModeName

from .store_changes import scatter_into
"""


def files() -> dict[Path, str]:
    """Return the text of the module."""
    functions = six_functions()
    written = (
        _into(functions[name.removesuffix(SUFFIX)], docstring)
        for name, docstring in read_docstrings(DOCSTRINGS).items()
    )
    return {TARGET: written_module("Scatter into a Zarr array in place.", IMPORTS, *written)}


def _into(function: Function, docstring: str) -> str:
    """Return the function of an operator on a store."""
    parameters = [Parameter("store", "Any"), *function.typed(TYPES, "data", "out"), *OPTIONS]
    options = ("mode", "negative", *(one.name for one in OPTIONS), "fold")
    call = (f'"{function.name}"', "store", "indices", "updates", function.position, *options)
    return written_function(
        written_head(f"{function.name}{SUFFIX}", parameters, "None"),
        docstring,
        'fold = {"reduction": reduction, "include_self": include_self}',
        *written_call("scatter_into", call),
    )
