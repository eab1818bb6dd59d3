"""Give public classes the module name `gatherum`, under which users and pickles find them."""

from typing import TypeVar, get_type_hints

C = TypeVar("C", bound=type)


def public(cls: C) -> C:
    """Decorate a class so that its repr, pickles and documentation name it `gatherum.<name>`.

    The annotations are resolved here, because `typing.get_type_hints` would look for their names in
    `gatherum`.
    """
    cls.__annotations__ = get_type_hints(cls)
    cls.__module__ = "gatherum"
    return cls
