"""The context that all steps of a call share."""

from dataclasses import dataclass

from gatherum.files.durable.build import Build
from gatherum.files.resources.resources import Resources
from gatherum.files.row_access.row_requests import Requests

__all__ = ["Context"]


@dataclass(frozen=True, kw_only=True)
class Context(Resources):
    """One running call."""

    requests: Requests
    build: Build
