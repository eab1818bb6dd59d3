"""Lookups of private names of other libraries, which any of their versions may drop.

Each library has one module, named `private`, that finds all that is used of it beyond what it
documents. It names the versions that were tested, and what is done where a name is missing.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any


def find_name(path: str) -> Any | None:
    """Return what a dotted path names, importing its modules; None where it is missing."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None


def lacking(library: str, version: str, tested: str, *names: str) -> str:
    """Return the end of a message about names that a library lacks."""
    return (
        f"{library} {version} lacks {', '.join(names)}; gatherum was tested with {library} {tested}"
    )


def missing(names: Mapping[str, str]) -> list[str]:
    """Return those of some names that are missing."""
    return [name for name in names if find_name(name) is None]
