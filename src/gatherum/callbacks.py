"""The Python functions that the core calls: they convert arguments, make plans, and raise errors.

The core calls them for arguments that it cannot read, for calls without a plan, and for errors (see
`callbacks.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeAlias

import numpy as np

from . import (
    callers,
    conversion,
    errors,
    frameworks,
    native,
    plain_values,
    shape_limits,
    xarray_labels,
)
from ._core import DType as DTypeCode
from .call import Array, ArraySpec, Attributes, Call, same_spec
from .checks import check_before_updates, check_dtypes
from .dtypes import DType, check_units, dtype_of
from .errors import Shape
from .framework_errors import no_array_result
from .indices import first_invalid
from .modes import FILLING
from .operators import OPERATORS
from .plans import Plan, build


def _normalise(*call: object) -> object:
    kind = type(call[1])
    if kind not in frameworks.COMMON and (adapter := frameworks.adapter_of(kind)):
        op, data, indices, updates, *given, fill_value, out = call
        attributes = plain_values.as_attributes(str(op), *given)
        operands = {"data": data, "indices": indices, "updates": updates, "out": out}
        frameworks.check_one_framework(str(op), operands)
        result = adapter.call(attributes, data, indices, updates, fill_value, out)
        if isinstance(result, tuple):  # the core would take it for arguments
            raise no_array_result(attributes.op, type(adapter).__name__, result)
        if result is not NotImplemented:
            return result
    elif kind not in frameworks.COMMON and xarray_labels.has_labels(call[1]):
        op, data, indices, updates, *given, fill_value, out = call
        attributes = plain_values.as_attributes(str(op), *given)
        return xarray_labels.run(attributes, data, indices, updates, fill_value, out)
    plain = conversion.normalise(*call)  # type: ignore[arg-type]  # the core passes eleven
    out = plain[-1]
    if out is not None and not conversion.is_plain(out):
        _plan_of(*plain[:9], None)  # type: ignore[arg-type]  # earlier errors come first
        conversion.as_out(str(plain[0]), out)
    return plain


def _plain_attributes(op: str, axis: object, *rest: object) -> tuple[object, ...]:
    attributes = plain_values.as_attributes(op, axis, *rest)
    if not -(2**63) <= attributes.axis < 2**63:  # the core has 64 bits; no shape has so many
        operator, rank = attributes.operator, shape_limits.MAX_RANK
        low = 0 if operator.counts_indices else -rank
        raise errors.out_of_range(op, operator.attribute, attributes.axis, low, rank)
    return op, *attributes.positional


# An operand as the core passes it: an array, or (shape, dtype, strides) of one that is not NumPy's.
_Operand: TypeAlias = Array | tuple[Shape, DTypeCode, Shape]


def _spec(operand: _Operand) -> ArraySpec:
    if isinstance(operand, tuple):
        shape, code, strides = operand
        return ArraySpec(shape, dtype_of(code), strides)
    return ArraySpec.of(operand)


def _make_plan(op: str, data: _Operand, *rest: Any) -> Plan:
    if not isinstance(data, tuple):
        return _plan_of(op, data, *rest)
    with errors.for_tensors():  # they alone are passed as tuples
        return _plan_of(op, data, *rest)


def _plan_of(
    op: str,
    data: _Operand,
    indices: _Operand,
    updates: _Operand | None,
    *rest: Any,
) -> Plan:
    *how, out = rest
    if not isinstance(data, tuple):
        conversion.check_decimals(op, "data", data)
    attributes, to, of = Attributes.from_positional(op, *how), _spec(data), _spec(indices)
    if updates is None and OPERATORS[op].scatters:
        check_before_updates(op, to.shape, of.shape, attributes.axis, to.dtype, of.dtype)
        raise errors.no_array(op, "updates", None)
    others = (None if operand is None else _spec(operand) for operand in (updates, out))
    return build(Call(attributes, to, of, *others))


def _check_operands(
    plan: Plan, data: Array, indices: Array, updates: Array | None, out: Array | None
) -> None:
    """Raise for arrays that differ from what a plan was made for."""
    s = plan.call
    given = (
        ("data", s.data, data),
        ("indices", s.indices, indices),
        ("updates", s.updates, updates),
        ("out", s.out, out),
    )
    for name, expected, array in given:
        if array is not None and not conversion.is_plain(array):
            raise errors.not_an_operand(s.op, name, array)
        found = None if array is None else ArraySpec.of(array)
        if found is not None:
            check_units(s.op, name, found.dtype)
        if not same_spec(expected, found):
            raise errors.other_layout(s.op, name, expected, found)
    if s.data.dtype.names is not None:
        check_dtypes(s)  # fields can have been renamed since the plan was made


# Work that an overlap test may do before "undecided" counts as overlap.
_OVERLAP_WORK = 10_000


def _check_memory(
    plan: Plan, data: Array, indices: Array, updates: Array | None, out: Array
) -> None:
    """Do what `check_out_memory` does for a call of a plan."""
    check_out_memory(plan.call.op, data, indices, updates, out)


def check_out_memory(
    op: str, data: Array, indices: Array, updates: Array | None, out: Array
) -> None:
    """Raise ValueError when `out` is read-only or shares memory with an input it must not."""
    out, data = np.asarray(out), np.asarray(data)  # subclasses may say anything of themselves
    if not out.flags.writeable:
        raise errors.out_read_only(op)
    in_place = updates is not None and _is_same_place(out, data)
    for name, operand in (("data", data), ("indices", indices), ("updates", updates)):
        if operand is None or (name == "data" and in_place):
            continue
        if shares_memory(out, operand):
            raise errors.out_overlaps(op, name)


class _Place:
    def __init__(self, address: int, spec: ArraySpec) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": spec.shape,
            "strides": spec.strides,
            "typestr": f"|V{spec.dtype.itemsize}",
        }


def place_at(address: int, spec: ArraySpec) -> Array:
    """Return an array that lies at an address, for questions on that alone: nobody reads it."""
    return np.asarray(_Place(address, spec))


def _is_same_place(a: Array, b: Array) -> bool:
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides


def shares_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have a byte in common; what takes too long to find out counts as yes."""
    try:
        # NumPy's stubs know two of the values only.
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _make_fill(plan: Plan, dtype: DType, fill_value: object) -> Array:
    return conversion.fill_item(plan.call.op, dtype, fill_value)


def invalid_index(
    s: Call, component: int, value: object, where: tuple[object, ...] | None
) -> IndexError:
    """Return what to raise for an invalid index of a call: a component of the tuple at a place
    among the index tuples, None where the indices have changed meanwhile.
    """
    shape = s.indices.shape
    axis = s.operator.indexed(shape, s.resolved_axis)[component]
    if where is not None and s.operator.tuples:
        where = (*where, component)
    size = s.data.shape[axis]
    if caller := callers.caller_of(s.attributes.caller or _CALLER.get()):
        return caller.invalid_entry(value, axis, size, where, s.mode, s.negative)
    return errors.index_out_of_bounds(s.op, value, axis, size, where, s.mode)


# The caller of the core's call that runs, whose plan does not name it.
_CALLER: ContextVar[str] = ContextVar("_CALLER", default="")


def run_for(caller: str, run: Callable[..., Any], *call: Any) -> Any:
    """Run a call of the core for a function that makes it, whose names an IndexError has."""
    if not caller:
        return run(*call)
    token = _CALLER.set(caller)
    try:
        return run(*call)
    finally:
        _CALLER.reset(token)


@contextmanager
def naming(text: str) -> Iterator[None]:
    """Let errors of an operator have the names of its caller."""
    try:
        yield
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        caller = callers.caller_of(text)
        if caller is None or str(error).partition(": ")[0] not in OPERATORS:
            raise
        operands = {name: getattr(caller, name) for name in ("data", "indices", "updates")}
        raise errors.renamed(error, caller.op, operands) from None


def find_refusal(s: Call, indices: Array) -> IndexError | None:
    """Return what a call raises for its first invalid index, or None."""
    sizes = [s.data.shape[d] for d in s.operator.indexed(indices.shape, s.resolved_axis)]
    if s.mode in FILLING:
        return None
    found = first_invalid(indices, sizes, s.mode, s.negative, s.operator.tuples)
    return found and invalid_index(s, found.component, found.value, found.where)


def raise_invalid(plan: Plan, position: int, component: int, value: int) -> NoReturn:
    """Raise IndexError for the invalid index at a linear position among the index tuples."""
    s = plan.call
    if s.indices.dtype.kind == "u":
        value %= 1 << 8 * s.indices.dtype.itemsize
    where: Shape | None = None
    if position >= 0:
        entries = s.operator.entries(s.indices.layout).shape
        where = shape_limits.place_of(position, entries)
    raise invalid_index(s, component, value, where)


def _raise_changed(plan: Plan, number: int) -> NoReturn:
    """Raise ValueError for an operand that user code has moved or reshaped during the call."""
    name = ("data", "indices", "updates", "out")[number]
    raise errors.operand_changed(plan.call.op, name)


CALLBACKS = (
    _normalise,
    _plain_attributes,
    _make_plan,
    _check_operands,
    _check_memory,
    _make_fill,
    raise_invalid,
    _raise_changed,
)
native.set_callbacks(*CALLBACKS)
