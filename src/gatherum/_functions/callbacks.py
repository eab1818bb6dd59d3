"""The Python functions that the core calls to convert arguments, make plans and raise errors.

The core calls them by name for arguments that it cannot read, for calls that it cannot plan, and
for errors (see `callbacks.hpp`).
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias, assert_never

import numpy as np

from gatherum._arguments import array_likes, conversion, plain_values, xarray_labels
from gatherum._arguments.checks import check_before_updates, check_dtypes
from gatherum._core import DType as DTypeCode
from gatherum._core import RunFault
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import OPERAND_NAMES, ArraySpec, Attributes, Call, same_spec
from gatherum._model.dtypes import DType, check_units, dtype_of
from gatherum._model.errors import Shape
from gatherum._model.errors.frameworks import no_array_result
from gatherum._model.operators import OPERATORS
from gatherum._plans.index_errors import raise_invalid
from gatherum._plans.plans import Plan, build
from gatherum._system import native


def convert_and_run(op: str, data: Any, *arguments: Any) -> Any:
    """Run a call on arguments that the core cannot read."""
    array_type = type(data)
    if array_type not in registry.COMMON:
        if registry.imports_adapter(array_type):
            return native.dispatch_call(
                op, data, *arguments
            )  # the core now knows the framework's arrays
        if (result := _run_foreign(op, data, *arguments)) is not NotImplemented:
            return result
    return native.run_normalized(*_normalize(op, data, *arguments))


def _run_foreign(op: str, data: Any, indices: Any, updates: Any, *arguments: Any) -> Any:
    """Run a call on a framework's arrays or a DataArray. Return NotImplemented for others."""
    adapter = registry.adapter_of(type(data))
    if adapter is None and not xarray_labels.has_labels(data):
        return NotImplemented
    *positional, fill_value, out = arguments
    attributes = plain_values.as_attributes(op, *positional)
    if adapter is None:
        return xarray_labels.run(attributes, data, indices, updates, fill_value, out)
    operands = {"data": data, "indices": indices, "updates": updates, "out": out}
    registry.check_one_framework(op, operands)
    result = adapter.call(attributes, data, indices, updates, fill_value, out)
    if isinstance(result, tuple):
        raise no_array_result(op, type(adapter).__name__, result)
    return result


def _normalize(*call: Any) -> tuple[Any, ...]:
    """Return the arguments of a call as plain values and arrays."""
    normalized: tuple[Any, ...] = conversion.normalize(*call)
    *planned_arguments, _fill_value, out = normalized
    if out is not None and not array_likes.is_plain(out):
        _plan_of(*planned_arguments, None)  # raises earlier errors first
        conversion.as_out(normalized[0], out)
    return normalized


# An operand as the core passes it: a NumPy array, or shape, dtype, strides and byte order.
_Operand: TypeAlias = NumpyArray | tuple[Shape, DTypeCode, Shape, bool]


def _spec(operand: _Operand) -> ArraySpec:
    if isinstance(operand, tuple):
        shape, code, strides, swapped = operand
        dtype = np.dtype(code.name).newbyteorder() if swapped else dtype_of(code)
        return ArraySpec(shape, dtype, strides)
    return ArraySpec.of(operand)


def make_plan(op: str, data: _Operand, *arguments: Any) -> Plan:
    if not isinstance(data, tuple):
        return _plan_of(op, data, *arguments)
    with errors.for_tensors():  # only specs of tensors can be invalid
        return _plan_of(op, data, *arguments)


def _plan_of(
    op: str,
    data: _Operand,
    indices: _Operand,
    updates: _Operand | None,
    *arguments: Any,
) -> Plan:
    *positional, out = arguments
    if not isinstance(data, tuple):
        array_likes.check_decimals(op, "data", data)
    attributes = Attributes(op, *positional)
    data_spec, indices_spec = _spec(data), _spec(indices)
    if updates is None and OPERATORS[op].scatters:
        check_before_updates(op, data_spec, indices_spec, attributes.axis)
        raise errors.not_array_like(op, "updates", None)
    optional = (None if operand is None else _spec(operand) for operand in (updates, out))
    return build(Call(attributes, data_spec, indices_spec, *optional))


def check_operands(
    plan: Plan,
    data: NumpyArray,
    indices: NumpyArray,
    updates: NumpyArray | None,
    out: NumpyArray | None,
) -> None:
    """Raise for arrays that differ from the specs of a plan."""
    call = plan.call
    operands = (
        ("data", call.data, data),
        ("indices", call.indices, indices),
        ("updates", call.updates, updates),
        ("out", call.out, out),
    )
    for name, expected, array in operands:
        if array is not None and not array_likes.is_plain(array):
            raise errors.not_a_plain_array(call.op, name, array)
        actual = None if array is None else ArraySpec.of(array)
        if actual is not None:
            check_units(call.op, name, actual.dtype)
        if not same_spec(expected, actual):
            raise errors.other_layout(call.op, name, expected, actual)
    if call.data.dtype.names is not None:
        check_dtypes(call)  # fields may have been renamed since the plan was made


def make_fill(plan: Plan, dtype: DType, fill_value: object) -> NumpyArray:
    return conversion.fill_item(plan.call.op, dtype, fill_value)


def raise_error(plan: Plan, fault: RunFault, *facts: int) -> NoReturn:
    """Raise the error of a run of a plan; `facts` describe the fault.

    With ``read_only``, `out` is read-only, and there are no facts. With ``overlap``, `out` shares
    memory with an operand, whose number is the fact. With ``changed``, user code moved or reshaped
    an operand during the call, and the fact is the number of that operand. With ``invalid``, the
    facts are the position, component and value of an invalid index.
    """
    op = plan.call.op
    match fault:
        case RunFault.read_only:
            raise errors.out_read_only(op)
        case RunFault.overlap:
            raise errors.out_overlaps(op, OPERAND_NAMES[facts[0]])
        case RunFault.changed:
            raise errors.operand_changed(op, OPERAND_NAMES[facts[0]])
        case RunFault.invalid:
            raise_invalid(plan, *facts)
        case _:
            assert_never(fault)


_CALLBACKS = (convert_and_run, make_plan, check_operands, make_fill, raise_error)
native.set_callbacks({function.__name__: function for function in _CALLBACKS})
