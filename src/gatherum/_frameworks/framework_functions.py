"""Create the public functions of a framework from one function that runs all calls."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from gatherum._model.call import OPERAND_NAMES
from gatherum._model.operators import OPERATORS, Operator

FrameworkArray = TypeVar("FrameworkArray")


class FrameworkFunctions(Generic[FrameworkArray]):
    """The functions for arrays of one framework; `Functions` has a method for each operator.

    The arguments of `run` are the operator's name, `data`, `indices`, `updates` (None for a
    gather), the axis, `reduction`, `include_self`, `mode`, `negative` and `fill_value`.
    """

    def __init__(self, module: str, run: Callable[..., FrameworkArray]) -> None:
        self._module = module
        self._run = run

    def named(self, op: str) -> Callable[..., FrameworkArray]:
        """Return the function of an operator, generating it if no method is defined for it."""
        written: Callable[..., FrameworkArray] | None = getattr(self, op, None)
        like: Any = getattr(self, "scatter_slices" if OPERATORS[op].scatters else "gather")
        return written or function_of(OPERATORS[op], like, self._run)

    def __repr__(self) -> str:
        return f"{self._module}.FUNCTIONS"


def function_of(
    operator: Operator, like: Callable[..., FrameworkArray], run: Callable[..., FrameworkArray]
) -> Callable[..., FrameworkArray]:
    """Generate an operator's function for a framework that does not define the function.

    The function has the same parameters as `like`, a function of the same family, except that
    `axis` is replaced with the dimension attribute of the operator. `run` is as in
    `FrameworkFunctions`; it also takes `out` if `like` does.
    """
    parameters_of_like = signature(like).parameters.values()
    bare = signature(like).replace(
        parameters=[
            parameter.replace(
                name=operator.attribute if parameter.name == "axis" else parameter.name,
                annotation=Parameter.empty,
            )
            for parameter in parameters_of_like
            if parameter.kind is not Parameter.VAR_KEYWORD
        ],
        return_annotation=Parameter.empty,
    )
    order = ("reduction", "include_self", "mode", "negative", "fill_value", "out")
    absent = {"reduction": "none", "include_self": True, "fill_value": 0}

    def function(*operands: Any, **attributes: Any) -> FrameworkArray:
        bound = bare.bind(*operands, **attributes)
        bound.apply_defaults()
        arguments = {"updates": None} | absent | bound.arguments
        arrays = (arguments[name] for name in OPERAND_NAMES[:3])
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
