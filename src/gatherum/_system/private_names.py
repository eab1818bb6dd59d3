"""Look up private names of other libraries, which may be missing in any version.

For each library, one module named `private` looks up all undocumented names that gatherum uses. The
module documents the tested versions and the behaviour if a name is missing.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any


def find_name(path: str) -> Any | None:
    """Return the object at a dotted path, importing its modules; None if it is missing."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None


def lacking(library: str, version: str, tested: str, *names: str) -> str:
    """Return the end of a message about missing names of a library."""
    return (
        f"{library} {version} lacks {', '.join(names)}; gatherum was tested with {library} {tested}"
    )


def missing(names: Mapping[str, str]) -> list[str]:
    """Return the names that are missing."""
    return [name for name in names if find_name(name) is None]
