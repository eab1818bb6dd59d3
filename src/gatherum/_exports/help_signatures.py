"""Set signatures without annotations on public functions, for `help`."""

import inspect
from collections.abc import Iterator, Mapping
from itertools import chain
from types import FunctionType, MethodType
from typing import Any

# The parameter that collects unknown keyword arguments. The function then raises an error that
# suggests the correct call.
UNKNOWN = "unknown"


def plain_help(module: Mapping[str, Any]) -> None:
    """For each public function and method of a module, set the signature that `help` prints.

    At run time, annotations are strings, and `help` would print them in quotes. Type checkers and
    `typing.get_type_hints` still find them. The sections on parameters document the types for
    readers.
    """
    for name in module["__all__"]:
        plain_signatures(module.get(name))


def plain_signatures(public: object) -> None:
    """Set plain signatures on a function, or on the methods of a class."""
    for function in filter(_is_ours, _functions(public)):
        signature = inspect.signature(function)  # also of wrappers; another thread may do the same
        shown = (
            parameter for parameter in signature.parameters.values() if parameter.name != UNKNOWN
        )
        plain_parameters = [parameter.replace(annotation=parameter.empty) for parameter in shown]
        bare = signature.replace(parameters=plain_parameters, return_annotation=signature.empty)
        vars(function)["__signature__"] = bare
        function.__annotations__.pop(UNKNOWN, None)


def _functions(public: object) -> Iterator[FunctionType]:
    if isinstance(public, MethodType):
        public = public.__func__
    if isinstance(public, FunctionType):
        yield public
    elif isinstance(public, type):
        classes_here = [base for base in public.__mro__ if _is_ours(base)]
        members = chain.from_iterable(vars(base).values() for base in classes_here)
        methods = (inspect.unwrap(getattr(member, "__func__", member)) for member in members)
        yield from (
            method for method in methods if isinstance(method, FunctionType) and _is_shown(method)
        )


def _is_shown(method: FunctionType) -> bool:
    private = method.__name__.startswith("_") and not method.__name__.startswith("__")
    return bool(method.__annotations__) and not private


def _is_ours(member: FunctionType | type) -> bool:
    return member.__module__.partition(".")[0] == "gatherum"
