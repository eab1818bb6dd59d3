"""One word for each habit: ``nox -s test``, ``lint``, ``docs`` or ``bench``."""

from __future__ import annotations

import re
from pathlib import Path

import nox

nox.options.sessions = ["test", "lint", "docs"]
nox.needs_version = ">=2025.2.9"

PROJECT = nox.project.load_toml("pyproject.toml")
PAGES = ("*.md", "docs/**/*.md", "benchmarks/*.md")


def group(name: str) -> tuple[str, ...]:
    """Return the requirements of a dependency group."""
    return nox.project.dependency_groups(PROJECT, name)


@nox.session
def test(session: nox.Session) -> None:
    """Build and install the package, and run the tests on it."""
    session.install(".", *group("test"))
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style of Python and C++, and the types of the package."""
    # The types of optional parts are checked against the packages themselves.
    session.install(*group("lint"), *group("test"), *PROJECT["project"]["dependencies"])
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    core = sorted(str(path) for path in Path("src/core").iterdir())
    session.run("clang-format", "--dry-run", "-Werror", *core)


@nox.session
def docs(session: nox.Session) -> None:
    """Run the examples of the pages, and follow the links between them."""
    session.install(".[cli,onnx]")
    pages = sorted(page for pattern in PAGES for page in Path().glob(pattern))
    session.run("python", "-m", "doctest", *map(str, pages))
    missing = [
        f"{page}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    if missing:
        session.error("links to nothing:\n" + "\n".join(missing))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure this machine; what follows ``--`` goes to the benchmarks."""
    session.install(".[cli]", *group("test"))
    session.run("gatherum", "bench", *session.posargs)
