"""Makes the code that torch's inductor writes call the core directly.

Inductor turns a graph into Python code, where an op like ours is called through the dispatcher,
with every argument by its name. The core's entry point gives the same tensor in a tenth of the
time, and goes to the dispatcher where tensors are more than memory. A table of inductor's says how
ops are written; an inductor without it writes what it always does.

The entry point is an attribute of its op, ``.core_call``, or ``.named_call`` for a call whose
errors name another function: inductor keeps its code on disk, where another version of this package
may run it. Version 0.1.0 wrote calls of ``.door``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gatherum._model.call import FoldRule
from gatherum._model.operators import Operator
from gatherum._plans import index_errors
from gatherum._system import native
from gatherum.torch import private

# How each op is written, by its name in the code.
_added: dict[str, Callable[..., None]] = {}
# The arguments of the entry point after the operator's name, and the values of those that ops lack.
_ORDER = (
    "data", "indices", "updates", "axis", *FoldRule._fields, "bounds", "negative", "fill_value",
    "out",
)  # fmt: skip
_MISSING = {"updates": None, **FoldRule()._asdict(), "fill_value": 0, "out": None}


def add_entry_point(op: Any, operator: Operator, arguments: dict[str, Any]) -> None:
    """Give an op, the functional form of an operator, its entry point and its defaults."""
    op.core_call = native.call
    op.named_call = _call_for
    before = (*(name for name in arguments if name != "caller"), "out")
    op.door = partial(_call_as_before, operator.name, before)
    _added[f"torch.ops.{op}"] = partial(_write, operator, arguments)


def _call_as_before(op: str, names: tuple[str, ...], *given: Any) -> Any:
    """Run a call that version 0.1.0 wrote, with the op's arguments in their order."""
    values = _MISSING | dict(zip(names, given, strict=True))
    return native.call(op, *(values[name] for name in _ORDER))


def _call_for(caller: str, *call: Any) -> Any:
    """Run a call whose errors have the names of the function that makes it."""
    return index_errors.run_for(caller, native.call, *call)


def register_ops() -> None:
    """Put the ops into inductor's table, which torch imports when it compiles a graph."""
    if (found := private.inductor_table()) is None:
        return
    table, row = found
    if not _added.keys() <= table.keys():
        table.update({name: row(python=write) for name, write in _added.items()})


def _write(
    operator: Operator, arguments: dict[str, Any], node: Any, writeline: Callable[[str], None]
) -> None:
    """Write the call of a node; an op on the CPU is called by its entry point."""
    name, positional, named = node.get_kernel_name(), node.codegen_args(), node.codegen_kwargs()
    if node.get_device().type == "cpu":
        defaults = {key: repr(value) for key, value in (_MISSING | arguments).items()}
        by_name = dict(keyword.split("=", 1) for keyword in named)
        if operator.attribute in by_name:
            by_name["axis"] = by_name[operator.attribute]
        given = defaults | dict(zip(arguments, positional, strict=False)) | by_name
        positional = [repr(operator.name), *(given[key] for key in _ORDER)]
        name, named = f"{name}.core_call", []
        if (caller := given["caller"]) != repr(""):
            name, positional = name.replace(".core_call", ".named_call"), [caller, *positional]
    writeline(f"{node.get_name()} = {name}({', '.join([*positional, *named])})")
