"""Makes the code that torch's inductor writes call the core directly.

Inductor turns a graph into Python code, where an op like ours is called through the dispatcher,
with every argument by its name. The core's entry point gives the same tensor in a tenth of the
time, and goes to the dispatcher where tensors are more than memory. A table of inductor's says how
ops are written; an inductor without it writes what it always does.

The entry point is an attribute of its op, ``.door``, and takes the op's arguments in their order:
inductor keeps its code on disk, where another version of this package may run it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..native import entry
from ..operators import Operator
from . import private

# How each op is written, by its name in the code.
_added: dict[str, Callable[..., None]] = {}


def add_entry_point(op: Any, operator: Operator, arguments: dict[str, Any]) -> None:
    """Give an op, the functional form of an operator, its entry point and its defaults."""
    op.door = entry(operator.name, operator.scatters)
    _added[f"torch.ops.{op}"] = partial(_write, arguments)


def register() -> None:
    """Put the ops into inductor's table, which torch imports when it compiles a graph."""
    if (found := private.inductor_table()) is None:
        return
    table, row = found
    if not _added.keys() <= table.keys():
        table.update({name: row(python=write) for name, write in _added.items()})


def _write(arguments: dict[str, Any], node: Any, writeline: Callable[[str], None]) -> None:
    """Write the call of a node; an op on the CPU is called by its entry point."""
    name, positional, named = node.get_kernel_name(), node.codegen_args(), node.codegen_kwargs()
    if node.get_device().type == "cpu":
        given = dict(keyword.split("=", 1) for keyword in named)
        rest = list(arguments.items())[len(positional) :]
        positional = [*positional, *(given.get(a, repr(value)) for a, value in rest), "None"]
        name, named = f"{name}.door", []
    writeline(f"{node.get_name()} = {name}({', '.join([*positional, *named])})")
