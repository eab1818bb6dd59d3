"""Share results among the calls of one function that have the same indices.

A composition, such as softmax over groups, consists of several calls with the same indices. On a
device, the first of them checks and sorts the indices, and the other calls use the results.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar, Token
from typing import Any


class Shared:
    """Results that calls share.

    Each key contains everything that the result depends on, such as an address. Each result keeps
    the memory of the indices alive. The calls of a gradient also use the results in `parent`, which
    the calls of the function have stored. A prepared call keeps only the results for its indices,
    which have this `address`. These results outlive each call.
    """

    __slots__ = ("address", "parent", "results")

    def __init__(self, parent: Shared | None = None, address: int | None = None) -> None:
        self.results: dict[Hashable, Any] = {}
        self.parent, self.address = parent, address

    def find(self, key: Hashable) -> Any:
        """Return a result, or None."""
        result = self.results.get(key)
        return result if result is not None or self.parent is None else self.parent.find(key)

    def keeper(self, address: int) -> Shared | None:
        """Return the object that keeps results for the indices at an address, or None."""
        parent = None if self.parent is None else self.parent.keeper(address)
        if parent is not None and parent.address is not None:
            return parent
        return self if self.address in (None, address) else None


_current: ContextVar[Shared | None] = ContextVar("gatherum_shared", default=None)
# Returns the results that calls share now, or None outside a composition.
current = _current.get


class Sharing:
    """A context in which calls share results.

    Without an argument, calls share the results of the surrounding context, or new ones.
    """

    __slots__ = ("_shared", "_token")

    def __init__(self, shared: Shared | None = None) -> None:
        self._shared = shared
        self._token: Token[Shared | None] | None = None

    def __enter__(self) -> Shared:
        results = self._shared or _current.get() or Shared()
        self._token = _current.set(results)
        return results

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
