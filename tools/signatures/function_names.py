"""The names of the functions over groups, for type checkers, read from the tables of functions."""

import ast
from collections.abc import Iterable
from pathlib import Path

from model import PACKAGE, written_list, written_module

TABLES = PACKAGE / "groups" / "functions.py"
TARGET = PACKAGE / "groups" / "function_names.py"
DOCSTRING = """The names of the functions over groups, for type checkers.

`functions` has the tables of these functions.
"""
IMPORTS = """\
from typing import Literal, TypeAlias
"""


def files() -> dict[Path, str]:
    """Return the text of the module."""
    reduces, transforms = _functions_in("_ROWS"), _functions_in("TRANSFORMS")
    reduces += [f"nan{name}" for name in reduces]
    types = (
        _literal("ReduceName", reduces),
        _several("ReduceNames", "ReduceName"),
        _literal("TransformName", transforms),
    )
    return {TARGET: written_module(DOCSTRING, IMPORTS + "\n" + "".join(types))}


def _functions_in(table: str) -> list[str]:
    """Return the names in a table of functions: one tuple of calls that make its rows."""
    (assigned,) = (
        node.value
        for node in ast.parse(TABLES.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table
    )
    rows = next(node for node in ast.walk(assigned) if isinstance(node, ast.Tuple))
    return [_name(row) for row in rows.elts if isinstance(row, ast.Call)]


def _name(row: ast.Call) -> str:
    keywords = {each.arg: each.value for each in row.keywords}
    name: str = ast.literal_eval(keywords["name"] if "name" in keywords else row.args[0])
    return name


def _literal(name: str, items: Iterable[str]) -> str:
    return written_list(f"{name}: TypeAlias = Literal[", (f'"{item}"' for item in items), "]")


def _several(name: str, of: str) -> str:
    return f"{name}: TypeAlias = list[{of}] | tuple[{of}, ...]\n"
