"""The options that the functions share, for type checkers."""

from collections.abc import Mapping
from typing import Any, TypedDict

from gatherum.files.operands import Path
from gatherum.files.stats import Progress
from gatherum.names import ModeName, ReductionName

__all__ = ["GatherOptions", "ScatterOptions"]


class Options(TypedDict, total=False):
    """What every function takes."""

    memory: str | int
    mode: ModeName
    negative: bool
    spill_dir: Path | None
    resume: bool
    overwrite: bool
    progress: Progress | bool | None
    storage_options: Mapping[str, Any] | None


class GatherOptions(Options, total=False):
    """What gathers take, too."""

    fill_value: Any


class ScatterOptions(Options, total=False):
    """What scatters take, too."""

    reduction: ReductionName
    include_self: bool
    in_place: bool
