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
    plain = _names_in("_ROWS")
    types = (
        _literal("ReduceName", [*plain, *(f"nan{name}" for name in plain)]),
        "ReduceNames: TypeAlias = list[ReduceName] | tuple[ReduceName, ...]\n",
        _literal("TransformName", _names_in("TRANSFORMS")),
    )
    return {TARGET: written_module(DOCSTRING, IMPORTS + "\n" + "".join(types))}


def _names_in(table: str) -> list[str]:
    """Return the names in a table, which contains one tuple of calls that make its rows."""
    (assigned,) = (
        node.value
        for node in ast.parse(TABLES.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table
    )
    rows = next(node for node in ast.walk(assigned) if isinstance(node, ast.Tuple))
    return [_name_of(row) for row in rows.elts if isinstance(row, ast.Call)]


def _name_of(row: ast.Call) -> str:
    named = [each.value for each in row.keywords if each.arg == "name"]
    name: str = ast.literal_eval((named or row.args)[0])
    return name


def _literal(name: str, items: Iterable[str]) -> str:
    return written_list(f"{name}: TypeAlias = Literal[", (f'"{item}"' for item in items), "]")
