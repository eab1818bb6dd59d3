"""Calls in the code that torch's inductor writes: by the core's own doors.

Inductor turns a graph into Python code, where an op like ours is called through the dispatcher,
with every argument by its name. The core's door gives the same tensor in a tenth of the time, and
goes to the dispatcher by itself where tensors are more than memory. A table of inductor's says how
ops are written; an inductor without it writes what it always does.

A door hangs on its op and takes the op's arguments in their order, because inductor keeps its code
on disk, and another version of this package may run it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..native import entry
from ..operators import Operator
from . import private

# How each op is written, by its name in the code.
_opened: dict[str, Callable[..., None]] = {}


def open_door(op: Any, operator: Operator, arguments: dict[str, Any]) -> None:
    """Give an op, the functional form of an operator, its door; its arguments have defaults."""
    op.door = entry(operator.name, operator.scatters)
    _opened[f"torch.ops.{op}"] = partial(_write, arguments)


def register() -> None:
    """Put the ops into inductor's table, which torch imports when it compiles a graph."""
    if (found := private.inductor_table()) is None:
        return
    table, row = found
    if not _opened.keys() <= table.keys():
        table.update({name: row(python=write) for name, write in _opened.items()})


def _write(arguments: dict[str, Any], node: Any, writeline: Callable[[str], None]) -> None:
    """Write the call of a node, an op whose operands are on the CPU by its door."""
    name, positional, named = node.get_kernel_name(), node.codegen_args(), node.codegen_kwargs()
    if node.get_device().type == "cpu":
        given = dict(keyword.split("=", 1) for keyword in named)
        rest = list(arguments.items())[len(positional) :]
        positional = [*positional, *(given.get(a, repr(value)) for a, value in rest), "None"]
        name, named = f"{name}.door", []
    writeline(f"{node.get_name()} = {name}({', '.join([*positional, *named])})")
