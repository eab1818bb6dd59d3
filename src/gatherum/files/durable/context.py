"""The context that all steps of a call share."""

from collections.abc import Callable
from dataclasses import dataclass

from gatherum.files.durable.build import Build
from gatherum.files.resources.budget import Budget
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.row_requests import Requests

__all__ = ["Context", "Means"]


@dataclass(frozen=True)
class Means:
    """The resources of a call. `at_end` registers a function to run when the call ends."""

    meter: Meter
    budget: Budget
    spill_dir: str
    at_end: Callable[[Callable[[], object]], object]

    def scratch(self) -> DiskFile:
        """Return an unnamed file that is deleted when the call ends."""
        file = DiskFile.scratch(self.spill_dir, self.meter)
        self.at_end(file.close)
        return file


@dataclass(frozen=True)
class Context(Means):
    """One running call."""

    requests: Requests
    build: Build
