"""Modules import only what lies in rows below their own."""

import ast
import re
from pathlib import Path

import pytest

import gatherum

PACKAGE = Path(gatherum.__file__).parent
TOP = "__init__"  # the names that users import
ROWS = [
    {"cli", "__main__"},
    {"verify", "onnx", "conformance"},
    {TOP},
    {"explanations"},
    {"dask"},
    {"files"},
    {"jax", "torch"},
    {"cuda", "directml", "gathers", "scatters", "accumulator", "pictures", "pseudocode"}
    | {"aggregation", "groups", "prepared", "quantized"},
    {"accumulator_state", "core_hooks"},
    {"extremes", "index_errors", "overlap"},
    {"plans", "index_reports", "configuration", "verify_cases"},
    {"indices"},
    {"sparse_edges"},
    {"conversion", "programs", "edge_lists"},
    {"casting", "derivatives", "edge_folds"},
    {"checks", "places", "xarray_labels"},
    {"refusals", "functions", "elementary", "plain_values"},
    {"frameworks"},
    {"call", "call_types"},
    {"operators"},
    {"nests"},
    {"dimensions"},
    {"native", "shape_limits", "narrow_floats", "torch_compile"},
    {"dtypes"},
    {"regular_files", "callers"},
    {"errors", "edge_errors", "framework_errors", "private_names"},
    {"modes", "reductions"},
    {
        "version",
        "bandwidth",
        "counterparts",
        "startup",
        "help_signatures",
        "reader_advice",
        "text_numbers",
        "_core",
    },
]
FILES = [  # likewise inside of `files`: a module imports only what comes behind it
    "casts", "grouped", "gathers", "scatters", "handle", "stream", "batches", "options",
    "file_call", "lookups", "receivers", "results", "inputs", "operands", "origins", "decoding",
    "reordered", "progress", "file_gather", "table_pass", "windows", "file_scatter", "formats",
    "packing", "remote", "durable", "row_requests", "tables", "memory", "disk", "budget", "stats",
    "os_calls",
]  # fmt: skip
# What they import when it is used.
LATER = {"__main__": {"cli"}, "torch_compile": {"torch"}, "plans": {"explanations"}}
ROW_OF = {module: number for number, row in enumerate(ROWS) for module in row}
ORACLE = PACKAGE / "reference"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if ORACLE not in path.parents)


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


class _Run(ast.NodeTransformer):
    """Leaves out what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.If | None:
        checked = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if checked else node


def imported_modules(path: Path) -> set[str]:
    """The modules of this package that a file imports, at its top or inside functions."""
    found = set()
    folder = ("gatherum", *path.relative_to(PACKAGE).parent.parts)
    tree = ast.parse(path.read_text())
    if path == PACKAGE / "__init__.py":  # its modules are imported when they are first used
        tree = _Run().visit(tree)
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        for name in names:
            package, *rest = name.split(".")
            if package == "gatherum":
                known = rest and (
                    (PACKAGE / rest[0]).is_dir() or rest[0] in ROW_OF | {"reference": 0}
                )
                found.add(rest[0] if known else TOP)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_lower_rows(path: Path) -> None:
    own = module_of(path)
    assert own in ROW_OF, f"give {own} a place in ROWS"
    others = imported_modules(path) - {own, "reference"}
    above = {module for module in others if ROW_OF[module] <= ROW_OF[own]}
    assert above == LATER.get(own, set())


def test_every_module_says_what_it_does() -> None:
    without = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert without == []


def test_the_modules_of_files_import_only_lower_rows() -> None:
    wrong = []
    for path in (PACKAGE / "files").rglob("*.py"):
        own = path.relative_to(PACKAGE / "files").with_suffix("").parts[0]
        named = re.findall(r"^ *from gatherum\.files\.(\w+)", path.read_text(), re.MULTILINE)
        allowed = FILES[FILES.index(own) :] if own != TOP else FILES
        wrong += [(str(path), name) for name in named if name not in allowed]
    assert wrong == []


def test_the_oracle_stands_apart() -> None:
    oracle = list(ORACLE.glob("*.py"))
    assert set().union(*map(imported_modules, oracle)) == {"reference"}
    importers = {module_of(path) for path in MODULES if "reference" in imported_modules(path)}
    assert importers == {"conformance"}  # whose answers are the oracle's


def test_the_rule_sees_every_way_to_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    inner = tmp_path / "files"
    inner.mkdir()
    module = inner / "rows.py"
    module.write_text(
        "import gatherum._command.cli\nfrom gatherum._plans.plans import apply\nfrom gatherum import native\n"
        "from .. import shape_limits, gather\nfrom ..gathers import gather\nfrom . import disk\n"
        "def late():\n    from gatherum import onnx\n"
    )
    assert imported_modules(module) == {
        "cli",
        "plans",
        "native",
        "shape_limits",
        TOP,
        "gathers",
        "files",
        "onnx",
    }
