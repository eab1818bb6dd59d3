"""The types of the options that functions share, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from gatherum._model.call_types import FoldAttributes
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Path
from gatherum.files.resources.stats import Progress
from gatherum.files.strategies.reordered import Axes


class EveryOption(TypedDict, total=False):
    """Options of every function."""

    memory: str | int
    mode: ModeName
    negative: bool
    spill_dir: Path | None
    overwrite: bool
    progress: Progress | bool | None
    decode: bool
    storage_options: Mapping[str, Any] | None


class Options(EveryOption, total=False):
    """Options of the operators."""

    resume: bool


class GatherOptions(Options, total=False):
    """Options of gathers."""

    fill_value: Any


class TupleOptions(GatherOptions, total=False):
    """Options of a gather by tuples."""

    axes: Axes | None


class ScatterOptions(Options, FoldAttributes, total=False):
    """Options of scatters."""

    in_place: bool
