"""Rules for imports that import-linter cannot check; pyproject.toml orders the packages."""

import ast
import re
from pathlib import Path

import pytest

import gatherum

PACKAGE = Path(gatherum.__file__).parent
ORACLE = PACKAGE / "reference"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if ORACLE not in path.parents)


def imported_names(path: Path) -> set[str]:
    """Return the absolute names that a file imports, at its top or inside functions."""
    folder = ("gatherum", *path.relative_to(PACKAGE).parent.parts)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    return names


def imports_reference(path: Path) -> bool:
    return any(f"{name}.".startswith("gatherum.reference.") for name in imported_names(path))


@pytest.mark.parametrize("path", sorted(ORACLE.glob("*.py")), ids=lambda path: path.stem)
def test_the_oracle_imports_numpy_only(path: Path) -> None:
    ours = {name for name in imported_names(path) if name.startswith("gatherum")}
    assert all(f"{name}.".startswith("gatherum.reference.") for name in ours)


def test_only_conformance_imports_the_oracle() -> None:
    importers = {path.parent.name for path in MODULES if imports_reference(path)}
    assert importers == {"conformance", "gatherum"}  # the latter for type checkers
    assert imports_reference(PACKAGE / "__init__.py")


def test_modules_that_import_this_package_by_name() -> None:
    """import-linter does not detect these; each comment explains the late import."""
    by_name = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if re.search(r"import_module\((f?\"gatherum|f\"\{|module\))", path.read_text())
    }
    assert by_name == {
        "__init__.py",  # public names, when they are first used
        "_command/verify.py",  # the first framework that has a device
        "_frameworks/operator_functions.py",  # functions of an adapter that were pickled
        "_frameworks/registry.py",  # the adapter of the first array of a framework
        "_plans/plans.py",  # the description of a plan for a device
        "_system/native.py",  # the hooks of the core
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
