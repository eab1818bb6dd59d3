"""Add support for the arrays of other frameworks by registering adapters.

`Framework` lists the members of an adapter, and `register` adds one. An adapter describes an array
with an `ArraySpec`, and receives `Attributes`. Arrays in host memory are passed to the core as
`View`. `Arrays` lists the functions that `gatherum.groups` needs from a framework. `ArrayOps` lists
the subset that derivatives also need.
"""

from gatherum._derivatives.array_ops import ArrayOps
from gatherum._frameworks.registry import Framework, register
from gatherum._model.call import ArraySpec, Attributes
from gatherum._system.native import View
from gatherum.groups.protocol import Arrays

__all__ = ["ArrayOps", "ArraySpec", "Arrays", "Attributes", "Framework", "View", "register"]
