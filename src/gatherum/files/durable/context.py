"""Every step of a call works with one context."""

from collections.abc import Callable
from dataclasses import dataclass

from gatherum.files.budget import Budget
from gatherum.files.durable.build import Build
from gatherum.files.row_requests import Requests
from gatherum.files.stats import Meter

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """One running call."""

    requests: Requests
    budget: Budget
    build: Build
    spill_dir: str
    meter: Meter
    at_end: Callable[[Callable[[], object]], object]  # is given what to call when the call ends
