"""Create the IndexError for an invalid index of a call."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn

from gatherum._arguments.indices import Invalid, first_invalid
from gatherum._model import callers, errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Call
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING

from .plans import Plan


def invalid_index(
    call: Call, component: int, value: object, where: tuple[object, ...] | None
) -> IndexError:
    """Create the error for an invalid index of a call.

    `component` is the component of the index tuple, and `where` the position of the tuple. `where`
    is None if the indices have changed in the meantime.
    """
    shape = call.indices.shape
    axis = call.operator.indexed(shape, call.resolved_axis)[component]
    if where is not None and call.operator.takes_tuples:
        where = (*where, component)
    size = call.data.shape[axis]
    if caller := callers.caller_of(call.attributes.caller or _CALLER.get()):
        return caller.invalid_entry(value, axis, size, where, call.mode, call.negative)
    return errors.index_out_of_bounds(call.op, value, axis, size, where, call.mode)


# The name of the function that made the current call to the core, if the plan does not contain this
# name.
_CALLER: ContextVar[str] = ContextVar("_CALLER", default="")


def run_named(caller: str, run: Callable[..., Any], *call: Any) -> Any:
    """Run a call to the core for another function.

    If the call raises IndexError, the message contains the names of that function and of its
    operands.
    """
    if not caller:
        return run(*call)
    token = _CALLER.set(caller)
    try:
        return run(*call)
    finally:
        _CALLER.reset(token)


def find_invalid(call: Call, indices: NumpyArray) -> Invalid | None:
    """Return the first invalid index of a call, or None."""
    sizes = [call.data.shape[d] for d in call.operator.indexed(indices.shape, call.resolved_axis)]
    if call.mode in FILLING:
        return None
    return first_invalid(indices, sizes, call.mode, call.negative, call.operator.takes_tuples)


def find_refusal(call: Call, indices: NumpyArray) -> IndexError | None:
    """Return the error for the first invalid index of a call, or None."""
    invalid = find_invalid(call, indices)
    return invalid and invalid_index(call, invalid.component, invalid.value, invalid.where)


def raise_invalid(plan: Plan, position: int, component: int, value: int) -> NoReturn:
    """Raise IndexError for the invalid index at a linear position among the index tuples."""
    call = plan.call
    if call.indices.dtype.kind == "u":
        value %= 1 << 8 * call.indices.dtype.itemsize
    where: Shape | None = None
    if position >= 0:
        entries = call.operator.entries(call.indices.layout).shape
        where = shape_limits.coordinates_of(position, entries)
    raise invalid_index(call, component, value, where)
