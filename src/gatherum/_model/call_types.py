"""The types of calls for type checkers: of attributes, as `ModeName`, and of other arrays."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict, TypeVar

from .modes import ModeName
from .operators import OperatorName
from .reductions import FoldName, ReductionName

__all__ = [
    "FoldName", "Foreign", "IndexAttributes", "ModeName", "OperatorName", "PlanAttributes",
    "PrepareAttributes", "ReductionName", "SparseMatrix",
]  # fmt: skip


class _OnDevice(Protocol):
    """An array that DLPack shares: of PyTorch, JAX or CuPy."""

    def __dlpack__(self, *args: Any, **attributes: Any) -> Any: ...


class _Lazy(Protocol):
    """An array of Dask."""

    def __dask_graph__(self) -> Any: ...


# An array of another library, which a call takes to an array of the same type.
Foreign = TypeVar("Foreign", bound=_OnDevice | _Lazy)


class SparseMatrix(Protocol):
    """A matrix of SciPy."""

    @property
    def format(self) -> str:
        """The name of its layout, as "csr"."""
        ...

    def tocsr(self) -> Any:
        """Return it with its entries in order of their rows."""
        ...


class IndexAttributes(TypedDict, total=False):
    """What `index_report` takes beside the operands."""

    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool
    fill_value: object


class FoldAttributes(TypedDict, total=False):
    """What scatters take beside a gather's arguments."""

    reduction: ReductionName
    include_self: bool


class PrepareAttributes(FoldAttributes, total=False):
    """What `prepare` takes beside the operands."""

    indptr: object
    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool


class PlanAttributes(IndexAttributes, FoldAttributes, total=False):
    """What `plan` and `explain` take beside the operands."""

    out: object
