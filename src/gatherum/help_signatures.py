"""Give public functions signatures without annotations, as `help` prints them."""

import inspect
from collections.abc import Iterator, Mapping
from itertools import chain
from types import FunctionType, MethodType
from typing import Any


def plain_help(module: Mapping[str, Any]) -> None:
    """Give the public functions and methods of a module the signatures that `help` prints.

    Annotations are strings at run time, which `help` would print in quotes. Type checkers and
    `typing.get_type_hints` still find them; people read more in the sections on parameters.
    """
    for function in _functions(module):
        bare = inspect.signature(function)
        plain = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
        bare = bare.replace(parameters=plain, return_annotation=bare.empty)
        vars(function)["__signature__"] = bare


def _functions(module: Mapping[str, Any]) -> Iterator[FunctionType]:
    for name in module["__all__"]:
        public = module.get(name)
        if isinstance(public, MethodType):
            public = public.__func__
        if isinstance(public, FunctionType):
            yield public
        elif isinstance(public, type):
            ours = [base for base in public.__mro__ if base.__module__.startswith("gatherum.")]
            members = chain.from_iterable(vars(base).values() for base in ours)
            methods = (inspect.unwrap(getattr(one, "__func__", one)) for one in members)
            yield from (method for method in methods if isinstance(method, FunctionType))
