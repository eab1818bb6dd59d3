"""The peers: libraries that a user would call instead, each called as well as a user would.

A peer's module has one function, ``methods(case)``. It returns the methods that the peer has for a
case, by the name that a report shows; each is a call without arguments that returns a finished
result. The library is imported with the module, so that each peer can have a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any, Protocol, cast

from ..cases import Case

# Our own name first, then the peers in the order that reports show them: the distribution of each.
OURS = "gatherum"
PEERS = {
    "numpy": "NumPy",
    "torch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
    "jax": "JAX",
    "numba": "numba",
}
FAMILIES = (OURS, *PEERS)

Methods = dict[str, Callable[[], Any]]


class Peer(Protocol):
    """What a peer's module offers."""

    def methods(self, case: Case) -> Methods:
        """Return the methods that the peer has for a case; none when it cannot do it."""
        ...


def version_of(family: str) -> str | None:
    """Return a peer's version without importing it; None when it is not installed."""
    try:
        return metadata.version(family)
    except metadata.PackageNotFoundError:
        return None


def installed() -> tuple[str, ...]:
    """Return the peers that are installed; NumPy is, always."""
    return tuple(name for name in PEERS if version_of(name) is not None)


def load(family: str) -> Peer:
    """Import a peer and what stands behind it."""
    return cast(Peer, import_module(f"{__name__}.with_{family}"))
