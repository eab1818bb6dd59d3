"""Generate parts of pages from the package during the build of the pages.

A line ``<!-- render: NAME ARGUMENT -->`` in a page is replaced with the Markdown that the renderer
with this name returns. A table is therefore written only once, in the code. Some pages also
keep the rendered text (`kept`).
"""

import re
from collections.abc import Callable
from typing import Any

from . import (
    benchmarks,
    commands,
    comparison,
    counterparts,
    groups,
    kept,
    onnx_cases,
    overrides,
    pictures,
    programs,
    reductions,
    strategies,
)

RENDERERS: dict[str, Callable[..., str]] = {
    "bars": benchmarks.render_bars,
    "benchmarks": benchmarks.render,
    "c-dtypes": programs.render_dtypes,
    "c-header": programs.render_header,
    "commands": commands.render,
    "comparison": comparison.render,
    "counterparts": counterparts.render,
    "curve": benchmarks.render_curve,
    "file": programs.render_file,
    "files": benchmarks.render_files,
    "goals": benchmarks.render_goals,
    "groups": groups.render,
    "group-memory": groups.render_memory,
    "group-transforms": groups.render_transforms,
    "jobs": benchmarks.render_jobs,
    "limits": benchmarks.render_limits,
    "onnx-cases": onnx_cases.render,
    "overrides": overrides.render,
    "picture": pictures.render,
    "reductions": reductions.render,
    "roofline": benchmarks.render_roofline,
    "strategies": strategies.render,
}
MARKER = re.compile(r"^<!-- render: (\S+)(.*?) -->$", re.MULTILINE)


def fill(_app: Any, _page: str, source: list[str]) -> None:
    """Replace the markers of a page."""
    text = kept.KEPT.sub(lambda match: match[0].partition("\n")[0], source[0])
    source[0] = MARKER.sub(lambda marker: render(marker[1], marker[2].strip()), text)


def render(name: str, argument: str) -> str:
    """Return the Markdown of a renderer."""
    return RENDERERS[name](argument) if argument else RENDERERS[name]()


def setup(app: Any) -> dict[str, bool]:
    """Connect the renderers to Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
