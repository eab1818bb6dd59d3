"""Checks of the documentation that need no build."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import gatherum
from gatherum._model.operators import OPERATORS
from source import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
MODULES = (
    "gatherum",
    "gatherum.directml",
    "gatherum.onnx",
    "gatherum.files",
    "gatherum.groups",
    "gatherum.reference",
    "gatherum.torch",
    "gatherum.cuda",
)


def entries(page: Path) -> set[Path]:
    """Return the pages that a page's tables of contents list."""
    results = set()
    for toctree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S):
        for line in toctree.splitlines():
            if line and not line.startswith(":"):
                target = re.sub(r"^.*<(.*)>$", r"\1", line)
                results.add((page.parent / f"{target}.md").resolve())
    return results


def test_every_page_has_one_place_in_the_contents():
    listed = [entry for page in PAGES for entry in entries(page)]
    assert sorted(listed) == [page.resolve() for page in PAGES if page != DOCS / "index.md"]


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operator_has_a_page(op):
    page = (DOCS / "operators" / f"{op}.md").read_text()
    assert page.startswith(f"# {op}\n")
    assert f"<!-- render: counterparts {op} -->" in page
    assert f"<!-- render: picture {op}(" in page
    assert f"({op}.md)" in (DOCS / "operators" / "index.md").read_text()
    libraries = {row["library"] for row in counterparts(op)}
    formats = {"onnx", "directml", "webnn"} if OPERATORS[op].onnx else set()
    assert libraries == {"numpy", "torch", "tensorflow", "jax", *formats}


def counterparts(op: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = tomllib.loads((DOCS / "operators" / f"{op}.toml").read_text())[
        "counterpart"
    ]
    return rows


@pytest.mark.frameworks
@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name):
    if name == "gatherum.onnx":
        pytest.importorskip("onnx", reason="install onnx to list its names")
    if name == "gatherum.torch":
        pytest.importorskip("torch", reason="install torch to list its names")
    page = (DOCS / "api" / f"{name.removeprefix('gatherum.')}.md").read_text()
    if f"automodule:: {name}\n   :members:" in page:
        return
    module = gatherum if name == "gatherum" else importlib.import_module(name)
    missing = [one for one in module.__all__ if not re.search(rf" {name}\.{one}\b", page)]
    assert missing == []


def definitions(source: Path) -> set[str]:
    """Return the functions, classes and methods that a file of Python or C++ defines."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".cpp":
        functions = re.findall(r"^\w[\w:<>*& ]*?(\w+)\([^;{}]*\)[^;{}()]*\{", text, re.M)
        return {*functions, *re.findall(r"^class (\w+)", text, re.M)}
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            names |= {f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name")}
    return names


def test_the_architecture_names_functions_that_exist():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"`([\w/]+\.(?:py|cpp)): ([\w.]+)`", page)
    assert len(steps) > 30
    source = DOCS.parent / "src"
    folders = {".py": source / "gatherum", ".cpp": source}
    absent = [
        (file, name)
        for file, name in steps
        if name not in definitions(folders[Path(file).suffix] / file)
    ]
    assert absent == []


FILE_NAME = re.compile(r"(?<![\w./-])(?:\w+/)*\w+\.(?:py|cpp|hpp|cuh?)\b")
GENERATED = {"reductions.cuh", "modes.cuh"}  # headers that are written when a kernel is compiled


def test_named_files_exist():
    """Maps and comments name files in the pages, in the docstrings of packages and in the core."""
    folders = [
        ROOT / name for name in ("src", "tests", "docs", "tools", "benchmarks", "fuzz", "examples")
    ]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    paths = {path.relative_to(ROOT).as_posix() for path in files}
    ends = {path[start:] for path in paths for start in suffix_starts(path)} | GENERATED
    pages = [ROOT / "CONTRIBUTING.md", *PAGES]
    pages += [path for path in files if path.suffix in {".md", ".hpp", ".cpp", ".cuh"}]
    pages += [path for path in files if path.name == "__init__.py"]
    absent = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in pages
        for name in FILE_NAME.findall(page.read_text(encoding="utf-8"))
        if name not in ends and not name.endswith("/NAME.cpp")  # for any algorithm
    }
    assert absent == set()


def suffix_starts(path: str) -> list[int]:
    """Return the positions in a path at which a relative path can start."""
    return [0, *(match.end() for match in re.finditer("/", path))]


def test_every_claim_about_a_library_has_its_answer(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    observed = importlib.import_module("observed")
    asked = list(observed.asked())
    assert len(asked) > 150
    kept = observed.json.loads(observed.KEPT.read_text())
    now = {"gatherum": {"versions": kept["gatherum"]["versions"], "answers": {}}}
    for library, expression, arrays in asked:
        if library == "gatherum":
            now[library]["answers"][expression] = observed.answer(library, expression, arrays)
        if " == " in expression:
            assert kept[library]["answers"][expression] == observed.SAME, expression
    assert list(observed.differences(kept, now)) == []


def test_kept_tables_and_programs_are_current(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    rendering = importlib.import_module("rendering")
    kept = rendering.kept.pages()
    pages = {"api/c.md", "c-interface.md", "groups.md", "group-frameworks.md"}
    assert pages <= {str(p.relative_to(DOCS)) for p in kept}
    for page in kept:
        text = page.read_text("utf-8")
        assert rendering.kept.current(text, rendering.render) == text, (
            f"run python docs/rendering/kept.py: {page} is not current"
        )
        filled = [text]
        rendering.fill(None, page.stem, filled)
        assert "<!-- render" not in filled[0]


def test_every_erratum_links_the_page_that_it_corrects():
    page = (DOCS / "directml-errata.md").read_text()
    errata = re.findall(r"^### \d+\. ([A-Z_0-9]+).*\n\nPage: (\[.*\])\.$", page, re.M)
    assert len(errata) == len(re.findall(r"^### \d+\.", page, re.M)) == 16
    for operator, pages in errata:
        assert pages.startswith(f"[{operator}]")
        for name in re.findall(r"\[(\w+)\]", pages):
            assert re.search(
                rf"^\[{name}\]: https://\S+dml_{name.lower()}_operator_desc$", page, re.M
            )


def test_no_style_breaks_words():
    style = (DOCS / "_static" / "pages.css").read_text()
    assert "anywhere" not in style
    assert "break-all" not in style


def test_nothing_tells_to_install_the_package_from_pypi():
    root = DOCS.parent
    folders = ("docs", "src/gatherum", "benchmarks", "examples")
    texts = [
        p for folder in folders for p in (root / folder).rglob("*") if p.suffix in (".md", ".py")
    ]
    asks = re.compile(r"pip install \S*gatherum")
    assert [path for path in texts if asks.search(path.read_text(encoding="utf-8"))] == []
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert asks.findall(readme) == ["pip install gatherum"]
    assert "gatherum is not on PyPI: `pip install gatherum` does not install it" in readme


def test_every_page_has_the_same_version():
    root = DOCS.parent
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    changed = re.search(r"^## (\S+) \(", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited and cited[1] == gatherum.__version__
    assert changed and changed[1] == gatherum.__version__
