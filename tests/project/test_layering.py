"""Rules for imports that import-linter cannot check; pyproject.toml orders the packages."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import gatherum

PACKAGE = Path(gatherum.__file__).parent
ORACLE = PACKAGE / "reference"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if ORACLE not in path.parents)


def statements(node: ast.AST, typing: bool) -> Iterator[ast.AST]:
    """Yield all nodes below a node, without imports for type checkers unless `typing`."""
    for child in ast.iter_child_nodes(node):
        if typing or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from statements(child, typing)


def imported_names(path: Path, typing: bool = True) -> set[str]:
    """Return the absolute names that a file imports, at its top or inside functions."""
    folder = ("gatherum", *path.relative_to(PACKAGE).parent.parts)
    names: set[str] = set()
    for node in statements(ast.parse(path.read_text()), typing):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    return names


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(("gatherum", *parts)).removesuffix(".__init__")


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


def test_modules_import_each_other_in_one_direction() -> None:
    """Imports inside functions count. pyproject.toml has the reasons of the two exceptions."""
    graph: dict[str, set[str]] = {}
    modules = {module_name(path): path for path in MODULES}
    del modules["gatherum"]  # which imports public names when they are first used
    for module, path in modules.items():
        names = imported_names(path, typing=False)
        pairs = {(name, name.rpartition(".")[0]) for name in names}
        imported = {name if name in modules else parent for name, parent in pairs}
        graph[module] = imported & set(modules) - {module}
    graph["gatherum._plans.plans"].remove("gatherum._inspection.explanations")
    graph["gatherum._frameworks.torch_compile"].remove("gatherum.torch")
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the modules


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
        "_system/native.py",  # the callbacks of the core
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
