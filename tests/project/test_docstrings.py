"""The sections "Attributes" of docstrings name the fields of their classes."""

import ast
import re
from pathlib import Path

import pytest

import gatherum

PACKAGE = Path(gatherum.__file__).parent
# A name, or several names, and perhaps their type.
NAMES = re.compile(r"^(\w[\w, ]*?)(?: : .*)?$", re.MULTILINE)


def is_record(node: ast.ClassDef) -> bool:
    """Return True for a dataclass or a NamedTuple."""
    parts = [*node.decorator_list, *node.bases]
    return any(re.search(r"\b(dataclass|NamedTuple)\b", ast.unparse(part)) for part in parts)


def members(node: ast.ClassDef) -> tuple[set[str], set[str]]:
    """Return the public fields of a class, and its properties."""
    fields = {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and not part.target.id.startswith("_")
        and not ast.unparse(part.annotation).startswith("ClassVar")
    }
    functions = (part for part in node.body if isinstance(part, ast.FunctionDef))
    properties = {
        part.name
        for part in functions
        if any("property" in ast.unparse(each) for each in part.decorator_list)
    }
    return fields, properties


def documented_classes() -> dict[str, tuple[ast.ClassDef, set[str]]]:
    """Return each record with a section "Attributes", and the names in the section."""
    result = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and is_record(node):
                text = ast.get_docstring(node) or ""
                if section := re.search(
                    r"^Attributes\n-+\n(.*?)(?=^\S.*\n---|\Z)", text, re.M | re.S
                ):
                    names = ", ".join(NAMES.findall(section[1])).split(", ")
                    key = f"{path.relative_to(PACKAGE).as_posix()}: {node.name}"
                    result[key] = node, set(names)
    return result


CLASSES = documented_classes()


@pytest.mark.parametrize("name", CLASSES)
def test_attributes_are_the_fields(name: str) -> None:
    node, documented = CLASSES[name]
    fields, properties = members(node)
    assert documented - properties == fields


def test_classes_are_found() -> None:
    assert len(CLASSES) > 20
