"""Types for type checkers, for attributes (such as `ModeName`) and for arrays of libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypedDict, TypeVar

from .modes import ModeName
from .operators import OperatorName
from .reductions import FoldName, ReductionName

__all__ = [
    "FoldName", "Foreign", "IndexAttributes", "ModeName", "OperatorName", "PlanAttributes",
    "PrepareAttributes", "ReductionName", "SparseMatrix", "typed_as",
]  # fmt: skip


class _OnDevice(Protocol):
    """An array that can be shared through DLPack: a PyTorch, JAX or CuPy array."""

    def __dlpack__(self, *args: Any, **attributes: Any) -> Any: ...


class _Lazy(Protocol):
    """A Dask array."""

    def __dask_graph__(self) -> Any: ...


# An array of another library. A call on it returns an array of the same type.
Foreign = TypeVar("Foreign", bound=_OnDevice | _Lazy)


class SparseMatrix(Protocol):
    """A SciPy matrix."""

    @property
    def format(self) -> str:
        """The name of its layout, such as "csr"."""
        ...

    def tocsr(self) -> Any:
        """Return the matrix with its entries sorted by row."""
        ...


class IndexAttributes(TypedDict, total=False):
    """The keyword arguments of `index_report`."""

    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool
    fill_value: object


class FoldAttributes(TypedDict, total=False):
    """The additional keyword arguments of scatters."""

    reduction: ReductionName
    include_self: bool


class PrepareAttributes(FoldAttributes, total=False):
    """The keyword arguments of `prepare`."""

    indptr: object
    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool


class PlanAttributes(IndexAttributes, FoldAttributes, total=False):
    """The keyword arguments of `plan` and `explain`."""

    out: object


Declared = TypeVar("Declared", bound=Callable[..., Any])


def typed_as(declared: Declared) -> Callable[[Callable[..., Any]], Declared]:
    """Decorate a function that type checkers treat like `declared`, and return it unchanged."""

    def unchanged(function: Any) -> Any:
        return function

    return unchanged
