"""Defines the six functions once for the frameworks whose calls run by one function."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

from .names import ModeName, ReductionName

Array = TypeVar("Array")


class Functions(Generic[Array]):
    """The six functions on arrays of one framework.

    Parameters
    ----------
    module : str
        The module whose attribute ``FUNCTIONS`` is this object. Pickles refer to it.
    run : callable
        Takes the operator's name, `data`, `indices`, `updates` (None for a gather), the axis,
        `reduction`, `include_self`, `mode`, `negative` and `fill_value`.
    """

    def __init__(self, module: str, run: Callable[..., Array]) -> None:
        self._module = module
        self._run = run

    def gather(
        self,
        data: Any,
        indices: Any,
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: object = 0,
    ) -> Array:
        """Take slices of an array along one axis, by their numbers: see `gatherum.gather`."""
        how = axis, "none", True, mode, negative, fill_value
        return self._run("gather", data, indices, None, *how)

    def gather_elements(
        self,
        data: Any,
        indices: Any,
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: object = 0,
    ) -> Array:
        """Take one element of an array for every index: see `gatherum.gather_elements`."""
        how = axis, "none", True, mode, negative, fill_value
        return self._run("gather_elements", data, indices, None, *how)

    def gather_nd(
        self,
        data: Any,
        indices: Any,
        batch_dims: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: object = 0,
    ) -> Array:
        """Take elements or slices of an array by tuples of indices: see `gatherum.gather_nd`."""
        how = batch_dims, "none", True, mode, negative, fill_value
        return self._run("gather_nd", data, indices, None, *how)

    def scatter_slices(
        self,
        data: Any,
        indices: Any,
        updates: Any,
        axis: int = 0,
        *,
        reduction: ReductionName = "none",
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
    ) -> Array:
        """Write slices along one axis, by their numbers: see `gatherum.scatter_slices`."""
        how = axis, reduction, include_self, mode, negative, 0
        return self._run("scatter_slices", data, indices, updates, *how)

    def scatter_elements(
        self,
        data: Any,
        indices: Any,
        updates: Any,
        axis: int = 0,
        *,
        reduction: ReductionName = "none",
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
    ) -> Array:
        """Write one element for every index: see `gatherum.scatter_elements`."""
        how = axis, reduction, include_self, mode, negative, 0
        return self._run("scatter_elements", data, indices, updates, *how)

    def scatter_nd(
        self,
        data: Any,
        indices: Any,
        updates: Any,
        batch_dims: int = 0,
        *,
        reduction: ReductionName = "none",
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
    ) -> Array:
        """Write elements or slices by tuples of indices: see `gatherum.scatter_nd`."""
        how = batch_dims, reduction, include_self, mode, negative, 0
        return self._run("scatter_nd", data, indices, updates, *how)

    def __repr__(self) -> str:
        return f"{self._module}.FUNCTIONS"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle the place where the functions stand."""
        return _loaded, (self._module,)


def _loaded(module: str) -> Any:
    return import_module(module).FUNCTIONS
