"""The resources of a call on files: memory, scratch files, counters, and the settings of inputs."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from .budget import Budget
from .disk import DiskFile
from .stats import Meter, Progress

__all__ = ["Resources", "checked_options"]


@dataclass(frozen=True)
class Resources:
    """The resources of a call, and the settings for opening its inputs.

    `at_end` registers a function to run when the call ends. `watched`: the caller will check
    whether an input changed. `storage_options` contains the options of fsspec's filesystems for
    URLs, and is never shown. `decode`: whether to decode packed numbers.
    """

    meter: Meter
    budget: Budget
    spill_dir: str
    at_end: Callable[[Callable[[], object]], object]
    watched: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    decode: bool = True

    @classmethod
    def of(
        cls,
        stack: ExitStack,
        memory: str | int = "1GiB",
        spill_dir: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        decode: bool = True,
    ) -> "Resources":
        """Return the checked settings of a caller. `stack` closes the opened files."""
        budget, options = Budget.parse(memory), checked_options(storage_options)
        if not (spill_dir is None or isinstance(spill_dir, (str, os.PathLike))):
            raise TypeError(f"spill_dir must be one path, got {type(spill_dir).__name__}")
        folder = os.fspath(spill_dir or tempfile.gettempdir())
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"{folder}: there is no such directory")
        meter, at_end = Meter(progress), stack.callback
        return cls(meter, budget, folder, at_end, storage_options=options, decode=decode)

    def scratch(self) -> DiskFile:
        """Return an unnamed file that is deleted when the call ends."""
        file = DiskFile.scratch(self.spill_dir, self.meter)
        self.at_end(file.close)
        return file


def checked_options(options: object) -> dict[str, Any]:
    """Return the `storage_options` of a call.

    Raise TypeError if they are not a mapping with keys of type str. The error shows only a type.
    """
    if options is None:
        return {}
    kind = type(options).__name__
    if isinstance(options, Mapping):
        others = [type(key).__name__ for key in options if not isinstance(key, str)]
        if not others:
            return dict(options)
        kind = f"a key of type {others[0]}"
    raise TypeError(f"storage_options must be a dict whose keys are of type str, got {kind}")
