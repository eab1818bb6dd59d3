"""Run every example of the pages and of the docstrings, each page in a separate folder.

In a page, blocks of ``python`` with prompts are doctests, those without must run, and in blocks of
``console`` the lines after ``$`` must print what follows them. Names and files last for a page.
A page that begins with ``<!-- needs: PACKAGE -->`` is skipped, with a line, if PACKAGE is missing.

Sybil is not used: it has no parser for console blocks, and the files of a page must last from one
block to the next.
"""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np

import gatherum

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/**/*.md", "benchmarks/*.md")
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = re.compile(r"<!-- needs: (\w+) -->\n")
# Subpackages that import the framework of the same name.
ADAPTERS = ("dask", "jax", "torch")
# Modules of the command line have no examples.
LEFT_OUT = re.compile(r"gatherum\.(\w+\.)*__main__$")


def is_installed(package: str) -> bool:
    """Return True if a package can be imported."""
    return importlib.util.find_spec(package) is not None


def run_page(page: Path) -> tuple[int, int]:
    """Run the examples of a page. Return their number and the number of failures."""
    names: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    if (needed := NEEDS.match(text)) and not is_installed(needed[1]):
        print(f"{page.relative_to(ROOT)}: left out, for {needed[1]} is not installed")
        return 0, 0
    tried = failed = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            for wrong in _run_block(*block.groups(), names, f"{page.relative_to(ROOT)}:{line}"):
                tried += 1
                failed += wrong
    return tried, failed


def _run_block(kind: str, code: str, names: dict[str, Any], where: str) -> Iterator[bool]:
    """Run a block. Yield True for each example that failed, else False."""
    if kind == "console":
        for command, expected in _commands(code):
            yield _command_fails(command, expected, where)
    elif ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
        result = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(
            test, clear_globs=False
        )
        names.update(test.globs)
        yield from [True] * result.failed + [False] * (result.attempted - result.failed)
    else:
        exec(compile(code, where, "exec"), names)
        yield False


def _commands(code: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = f"{command}\n{more}"
        yield command, expected


def _command_fails(command: str, expected: str, where: str) -> bool:
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    if doctest.OutputChecker().check_output(expected, done.stdout, FLAGS):
        return False
    print(f"{where}: $ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}", file=sys.stderr)
    return True


def run_docstrings(name: str) -> tuple[int, int]:
    """Run the examples in the docstrings of a module."""
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"gatherum": gatherum, "np": np})
    return result.attempted, result.failed


def modules() -> list[str]:
    """Name every module of the package."""
    walked = pkgutil.walk_packages(gatherum.__path__, "gatherum.")
    names = ["gatherum", *(one.name for one in walked if not LEFT_OUT.search(one.name))]
    missing = tuple(f"gatherum.{name}." for name in ADAPTERS if not is_installed(name))
    return [name for name in names if not f"{name}.".startswith(missing)]


def main() -> int:
    """Run all pages and docstrings, or only the named pages."""
    pages = [Path(page).resolve() for page in sys.argv[1:]]
    all_pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    wanted = [page for page in pages or all_pages if "_build" not in page.parts]
    results = [run_page(page) for page in wanted]
    tried, failed = (sum(column) for column in zip((0, 0), *results, strict=True))
    print(f"{len(results)} pages: {tried} examples, {failed} failed")
    if not pages:
        outcomes = [run_docstrings(name) for name in modules()]
        more, wrong = (sum(column) for column in zip(*outcomes, strict=True))
        print(f"{len(outcomes)} modules: {more} examples, {wrong} failed")
        failed += wrong
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
