"""The peers: alternative libraries, each called as a good user would call it.

A peer's module has a function ``methods(case)`` for calls of operators, or a table ``JOBS`` of a
function for each job, or both. They return the methods that the peer has for a case, by the name
that a report shows; each is a call without arguments that returns a finished result. The library is
imported with the module, so that each peer can run in a separate process.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from ..cases import Case
from ..jobs import Job

# gatherum first, then the peers in the order of the reports: the distribution of each.
OURS = "gatherum"
PEERS = {
    "numpy": "NumPy",
    "torch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
    "jax": "JAX",
    "numba": "numba",
    "torch_scatter": "torch_scatter",
    "scipy": "SciPy",
    "numpy_groupies": "numpy_groupies",
    "polars": "Polars",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}
# The peers for calls of operators, and for each job.
OPERATOR_PEERS = ("numpy", "torch", "onnxruntime", "jax", "numba")
JOB_PEERS = {
    "messages": ("numpy", "torch", "torch_scatter", "jax", "scipy"),
    "maxima": ("numpy", "torch", "torch_scatter", "jax"),
    "product": ("numpy", "torch", "scipy"),
    "bags": ("numpy", "torch", "torch_scatter", "scipy"),
    "permute": ("numpy", "torch"),
    "combine": ("numpy", "torch"),
    "groups": ("numpy", "torch", "torch_scatter", "numpy_groupies", "polars", "pandas", "pyarrow"),
    "positions": ("numpy", "torch", "torch_scatter"),
    "query": ("numpy", "numpy_groupies", "polars", "pandas", "pyarrow"),
    "counts": ("numpy", "torch", "numpy_groupies", "polars", "pandas", "pyarrow"),
    "take": ("numpy", "torch", "polars", "pandas", "pyarrow"),
}
FAMILIES = (OURS, *PEERS)

Methods = dict[str, Callable[[], Any]]


def methods(family: str, case: Case | Job) -> Methods:
    """Return the methods that a peer has for a call of an operator, or for a job."""
    peer = load(family)
    return peer.JOBS[case.op](case) if isinstance(case, Job) else peer.methods(case)


def of_case(op: str) -> tuple[str, ...]:
    """Return the peers of a case."""
    return (OURS, *JOB_PEERS.get(op, OPERATOR_PEERS))


def version_of(family: str) -> str | None:
    """Return a peer's version without importing it, or None if it is not installed."""
    try:
        return metadata.version(family)
    except metadata.PackageNotFoundError:
        return None


def installed() -> tuple[str, ...]:
    """Return the installed peers, which always include NumPy."""
    return tuple(name for name in PEERS if version_of(name) is not None)


def load(family: str) -> Any:
    """Import a peer and its library."""
    return import_module(f"{__name__}.with_{family}")
