"""Adapters run calls on the arrays of other frameworks: describe one here and register it.

`Framework` lists the members of an adapter, and `register` adds one. An adapter describes arrays by
`ArraySpec` and receives `Attributes`. Arrays in the memory of this processor reach the core as
`View`. `Arrays` lists the functions that `gatherum.groups` needs of a framework, and `Basics` those
among them that derivatives need, too.
"""

from gatherum._derivatives.array_ops import Basics
from gatherum._frameworks.registry import Framework, register
from gatherum._model.call import ArraySpec, Attributes
from gatherum._system.native import View
from gatherum.groups.protocol import Arrays

__all__ = ["ArraySpec", "Arrays", "Attributes", "Basics", "Framework", "View", "register"]
