"""Define the six functions for a framework in terms of one function that runs all calls."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Generic, Never, TypeVar

from gatherum._model import errors
from gatherum._model.call_types import ReductionName
from gatherum._model.modes import ModeName
from gatherum._model.operators import OPERATORS, Operator

Array = TypeVar("Array")


class Functions(Generic[Array]):
    """The six functions for arrays of one framework.

    The attribute ``FUNCTIONS`` of `module` must be this object, because pickles refer to it. `run`
    takes the operator's name, `data`, `indices`, `updates` (None for a gather), the axis,
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
        **unknown: Never,
    ) -> Array:
        """Gather slices of an array along one axis: see `gatherum.gather`."""
        if unknown:
            raise errors.unknown_argument("gather", unknown)
        attributes = axis, "none", True, mode, negative, fill_value
        return self._run("gather", data, indices, None, *attributes)

    def gather_elements(
        self,
        data: Any,
        indices: Any,
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: object = 0,
        **unknown: Never,
    ) -> Array:
        """Gather one element of an array for every index: see `gatherum.gather_elements`."""
        if unknown:
            raise errors.unknown_argument("gather_elements", unknown)
        attributes = axis, "none", True, mode, negative, fill_value
        return self._run("gather_elements", data, indices, None, *attributes)

    def gather_nd(
        self,
        data: Any,
        indices: Any,
        batch_dims: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: object = 0,
        **unknown: Never,
    ) -> Array:
        """Gather elements or slices of an array by index tuples: see `gatherum.gather_nd`."""
        if unknown:
            raise errors.unknown_argument("gather_nd", unknown, has_axis=False)
        attributes = batch_dims, "none", True, mode, negative, fill_value
        return self._run("gather_nd", data, indices, None, *attributes)

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
        **unknown: Never,
    ) -> Array:
        """Scatter slices along one axis: see `gatherum.scatter_slices`."""
        if unknown:
            raise errors.unknown_argument("scatter_slices", unknown)
        attributes = axis, reduction, include_self, mode, negative, 0
        return self._run("scatter_slices", data, indices, updates, *attributes)

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
        **unknown: Never,
    ) -> Array:
        """Scatter one element for every index: see `gatherum.scatter_elements`."""
        if unknown:
            raise errors.unknown_argument("scatter_elements", unknown)
        attributes = axis, reduction, include_self, mode, negative, 0
        return self._run("scatter_elements", data, indices, updates, *attributes)

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
        **unknown: Never,
    ) -> Array:
        """Scatter elements or slices by index tuples: see `gatherum.scatter_nd`."""
        if unknown:
            raise errors.unknown_argument("scatter_nd", unknown, has_axis=False)
        attributes = batch_dims, reduction, include_self, mode, negative, 0
        return self._run("scatter_nd", data, indices, updates, *attributes)

    def named(self, op: str) -> Callable[..., Array]:
        """Return the function of an operator, generating it if no method is defined for it."""
        written: Callable[..., Array] | None = getattr(self, op, None)
        like: Any = self.scatter_slices if OPERATORS[op].scatters else self.gather
        return written or function_of(OPERATORS[op], like, self._run)

    def __repr__(self) -> str:
        return f"{self._module}.FUNCTIONS"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle a reference to the module."""
        return _loaded, (self._module,)


def _loaded(module: str) -> Any:
    return import_module(module).FUNCTIONS


def function_of(
    operator: Operator, like: Callable[..., Array], run: Callable[..., Array]
) -> Callable[..., Array]:
    """Generate the function of an operator that a framework does not define.

    The function has the parameters of `like`, a function of the same family, but its dimension
    attribute instead of `axis`. `run` is as in `Functions`; it also takes `out` if `like` does.
    """
    theirs = signature(like).parameters.values()
    bare = signature(like).replace(
        parameters=[
            each.replace(
                name=operator.attribute if each.name == "axis" else each.name,
                annotation=Parameter.empty,
            )
            for each in theirs
            if each.kind is not Parameter.VAR_KEYWORD
        ],
        return_annotation=Parameter.empty,
    )
    order = ("reduction", "include_self", "mode", "negative", "fill_value", "out")
    absent = {"reduction": "none", "include_self": True, "fill_value": 0}

    def function(*operands: Any, **attributes: Any) -> Array:
        bound = bare.bind(*operands, **attributes)
        bound.apply_defaults()
        arguments = {"updates": None} | absent | bound.arguments
        arrays = (arguments[name] for name in ("data", "indices", "updates"))
        options = (arguments[name] for name in order if name in arguments)
        return run(operator.name, *arrays, arguments[operator.attribute], *options)

    function.__name__ = function.__qualname__ = operator.name
    function.__module__ = like.__module__
    function.__doc__ = f"Run `gatherum.{operator.name}` on arrays of this framework."
    vars(function)["__signature__"] = bare
    return function


def publish(module: dict[str, Any], named: Callable[[str], Any]) -> None:
    """Add generated functions to a framework's package for operators that it does not define."""
    for op in OPERATORS:
        if op not in module:
            module[op] = named(op)
            module[op].__module__ = module["__name__"]
            module["__all__"].append(op)
