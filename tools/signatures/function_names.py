"""The names of the functions over groups, for type checkers, read from the tables of functions."""

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from model import PACKAGE, written_list, written_module

TABLES = PACKAGE / "groups" / "functions.py"
TARGET = PACKAGE / "groups" / "function_names.py"
DOCSTRING = """The names of the functions over groups, for type checkers.

`functions` has the tables of these functions.
"""
IMPORTS = """\
from typing import Literal, TypeAlias
"""


class Named(NamedTuple):
    """The name of a function over groups, and whether the function takes `q`."""

    name: str
    takes_q: bool


def files() -> dict[Path, str]:
    """Return the text of the module."""
    reduces, transforms = _functions_in("_ROWS"), _functions_in("TRANSFORMS")
    reduces += [each._replace(name=f"nan{each.name}") for each in reduces]
    types = (
        _literal("ReduceName", (each.name for each in reduces)),
        _several("ReduceNames", "ReduceName"),
        _literal("FileFunction", (each.name for each in reduces if not each.takes_q)),
        _several("FileFunctions", "FileFunction"),
        _literal("TransformName", (each.name for each in transforms)),
    )
    return {TARGET: written_module(DOCSTRING, IMPORTS + "\n" + "".join(types))}


def _functions_in(table: str) -> list[Named]:
    """Return the functions of a table, which contains one tuple of calls that make its rows."""
    (assigned,) = (
        node.value
        for node in ast.parse(TABLES.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table
    )
    rows = next(node for node in ast.walk(assigned) if isinstance(node, ast.Tuple))
    return [_named(row) for row in rows.elts if isinstance(row, ast.Call)]


def _named(row: ast.Call) -> Named:
    keywords = {each.arg: each.value for each in row.keywords}
    name = keywords["name"] if "name" in keywords else row.args[0]
    takes = ast.literal_eval(keywords["takes"]) if "takes" in keywords else ()
    return Named(ast.literal_eval(name), "q" in takes)


def _literal(name: str, items: Iterable[str]) -> str:
    return written_list(f"{name}: TypeAlias = Literal[", (f'"{item}"' for item in items), "]")


def _several(name: str, of: str) -> str:
    return f"{name}: TypeAlias = list[{of}] | tuple[{of}, ...]\n"
