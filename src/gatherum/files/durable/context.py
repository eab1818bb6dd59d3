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
    """One running call.

    Attributes
    ----------
    requests : Requests
        The rows that the call requests.
    budget : Budget
        The memory that it may use.
    build : Build
        The output under construction.
    spill_dir : str
        Where scratch data go.
    meter : Meter
        Counts rows and bytes.
    at_end : callable
        Takes a function to be called when the call ends, however it does.
    """

    requests: Requests
    budget: Budget
    build: Build
    spill_dir: str
    meter: Meter
    at_end: Callable[[Callable[[], object]], object]
