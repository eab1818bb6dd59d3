"""Calls in the code that torch's inductor writes: by the core's own doors.

Inductor turns a graph into Python code, where an op like ours is called through the dispatcher,
with every argument by its name. The core's door gives the same tensor in a tenth of the time, and
goes to the dispatcher by itself where tensors are more than memory. A table of inductor's says how
ops are written; an inductor without it writes what it always does.

A door hangs on its op and takes the op's arguments in their order, because inductor keeps its code
on disk, and another version of this package may run it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..native import entry
from ..operators import Operator

_TABLE = "torch._inductor.codegen.custom_extern_kernel_codegen"
_opened: set[str] = set()


def open_door(op: Any, operator: Operator) -> None:
    """Give an op, the functional form of an operator, its door."""
    op.door = entry(operator.name, operator.scatters)
    _opened.add(f"torch.ops.{op}")


def register() -> None:
    """Put the ops into inductor's table, which torch imports when it compiles a graph."""
    table = getattr(sys.modules.get(_TABLE), "CUSTOM_EXTERN_KERNEL_CODEGEN", None)
    if table is None or _opened <= table.keys():
        return
    written = sys.modules[_TABLE].CustomCodegen(python=_write)
    table.update(dict.fromkeys(_opened, written))


def _write(node: Any, writeline: Callable[[str], None]) -> None:
    """Write the call of a node, an op whose operands are on the CPU by its door."""
    name, positional, named = node.get_kernel_name(), node.codegen_args(), node.codegen_kwargs()
    if node.get_device().type == "cpu":
        given = dict(keyword.split("=", 1) for keyword in named)
        rest = node.op_overload._schema.arguments[len(positional) :]
        positional = [
            *positional,
            *(given.get(a.name, repr(a.default_value)) for a in rest),
            "None",
        ]
        name, named = f"{name}.door", []
    writeline(f"{node.get_name()} = {name}({', '.join([*positional, *named])})")
