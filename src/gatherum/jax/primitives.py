"""The two primitives behind the six operators, and their lowering to XLA.

A primitive's parameter is the call's `Attributes`. As for NumPy arrays, the plan of the call
determines the shape of the result, the checks and the program that runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from gatherum._model.arrays import AnyArray
from gatherum._model.call import OPERAND_NAMES, ArraySpec, Attributes, Call
from gatherum._model.callers import caller_of
from gatherum._model.modes import FILLING
from gatherum._plans.index_errors import invalid_index
from gatherum._plans.plans import Plan, build
from gatherum._system import native

from . import device_programs, dtypes, private
from . import errors as jax_errors

Tracer = jax.core.Tracer

# The names under which XLA finds the handlers; exported programs contain them. XLA may capture
# calls to the second handler in command buffers of a CUDA device, and replay them.
TARGET = "gatherum_call"
RECORDABLE_TARGET = "gatherum_recordable_call"
_FILL_BYTES = 16


@native.emptied_at_exit
@lru_cache(maxsize=4096)
def plan_of(attributes: Attributes, *specs: ArraySpec) -> Plan:
    """Check operands with these specs, and return the plan of a call on the operands."""
    return build(Call(attributes._replace(fill=b""), *specs))


def planned_for(attributes: Attributes, operands: Sequence[Any]) -> Plan:
    """Return the plan of a call on arrays or abstract values."""
    named = zip(OPERAND_NAMES, operands, strict=False)
    return plan_of(attributes, *(spec_of(attributes.op, *operand) for operand in named))


def spec_of(op: str, operand: str, value: Any) -> ArraySpec:
    """Return the spec of an operand. Raise TypeError if plans do not support it."""
    if not all(isinstance(n, int) for n in value.shape):
        raise jax_errors.symbolic_shape(op, operand, value.shape)
    dtype = value.dtype
    if operand != "indices" or not isinstance(dtype, np.dtype):
        dtype = dtypes.plan_dtype(op, operand, dtype)
    return ArraySpec.contiguous(tuple(value.shape), dtype)


def _abstract(*avals: Any, attributes: Attributes) -> Any:
    shape = planned_for(attributes, avals).shape
    sharding: Any = getattr(avals[0], "sharding", None)
    for name, aval in zip(OPERAND_NAMES, avals, strict=False):
        spec = getattr(getattr(aval, "sharding", None), "spec", ())
        if any(mesh_axes is not None for mesh_axes in spec):  # only explicit axes of a mesh
            raise jax_errors.explicit_shards(attributes.op, name, spec)
    if not hasattr(sharding, "update"):
        return avals[0].update(shape=shape, weak_type=False)
    unsharded = sharding.update(spec=jax.sharding.PartitionSpec(*(None for _ in shape)))
    return avals[0].update(shape=shape, weak_type=False, sharding=unsharded)


def _messages(plan: Plan) -> str:
    """Return the handler's messages for invalid indices: see gatherum_xla_call in gatherum.h."""
    call = plan.call
    entries = call.operator.entries(call.indices.layout).shape
    components = range(len(plan.program.checks[2]))
    messages = [invalid_index(call, c, "%", ("%",) * len(entries)) for c in components]
    changed = invalid_index(call, 0, "%", None) if messages else ""
    return "\n".join(map(str, [changed, *messages]))


def lower_to_custom_call(ctx: Any, *operands: Any, attributes: Attributes, platform: str) -> Any:
    """Lower to a custom call. A scatter overwrites its data if no other operation uses them."""
    plan = planned_for(attributes, ctx.avals_in)
    is_on_several_devices = private.device_count(ctx) > 1
    if platform == "cuda" and not is_on_several_devices:
        sorting = device_programs.sorting_plan(plan)
        if sorting is not None:
            return _lower_in_order(ctx, operands, attributes, plan, sorting)
    target, attributes_of_call = TARGET, call_attributes(attributes, plan)
    if platform == "cuda":
        attributes_of_call["call"] = device_programs.describe(plan)
        scratch = device_programs.recordable_scratch(plan, attributes.fill)
        target = targets_on_cuda[scratch is not None]
        if scratch:
            memory = jax.core.ShapedArray((scratch,), np.dtype(np.uint8))
            ctx = ctx.replace(avals_out=[*ctx.avals_out, memory])
    lower = jax.ffi.ffi_lowering(
        target,
        operand_output_aliases={0: 0} if attributes.operator.scatters else None,
        # Without a side effect, XLA removes a call with an empty result, and so its IndexError. On
        # several devices, XLA does not compile a call that has a side effect but no sharding, and
        # this call has no sharding.
        has_side_effect=0 in plan.shape and not is_on_several_devices,
    )
    return lower(ctx, *operands, **attributes_of_call)[:1]


def _lower_in_order(
    ctx: Any, operands: Any, attributes: Attributes, plan: Plan, sorting: Plan
) -> Any:
    """Lower to a sort of the updates and a call that reads them in order.

    XLA merges equal sorts, so a composition and its derivatives sort only once. The second call
    does not check the indices again.
    """
    device_programs.check_order(sorting, attributes.reduction)
    data, indices, updates = ctx.avals_in
    length, widths = device_programs.order_of(sorting)
    order = [jax.core.ShapedArray((length,), np.dtype(f"u{width}")) for width in widths[:2]]
    attributes_of_call = call_attributes(sorting.call.attributes, sorting)
    sort = jax.ffi.ffi_lowering(targets_on_cuda[False])
    sort_description = device_programs.describe(sorting, device_programs.SORT)
    context_of_sort = ctx.replace(avals_in=[indices], avals_out=order)
    pairs = sort(context_of_sort, operands[1], **attributes_of_call, order=sort_description)
    attributes_of_call = call_attributes(attributes, plan)
    attributes_of_call["call"] = device_programs.describe(plan, device_programs.SORTED)
    ctx = ctx.replace(avals_in=[data, indices, updates, *order])
    lower = jax.ffi.ffi_lowering(targets_on_cuda[True], operand_output_aliases={0: 0})
    return lower(ctx, *operands, *pairs, **attributes_of_call)


def call_attributes(attributes: Attributes, plan: Plan) -> dict[str, Any]:
    """Return the attributes of a custom call: see gatherum_xla_call in gatherum.h."""
    return {
        "program": np.frombuffer(bytes(plan.program), "<i8"),
        "fill": np.frombuffer(attributes.fill.ljust(_FILL_BYTES, b"\0"), "<i8"),
        "sentences": _messages(plan),
    }


def _refuse(ctx: Any, *_: Any, attributes: Attributes) -> Any:
    raise jax_errors.no_jax_platform(attributes.op, ", ".join(ctx.module_context.platforms))


@lru_cache(maxsize=1024)
def compiled_call(attributes: Attributes) -> Any:
    """Return a call as a function that JAX compiles once for every shape and dtype."""
    return jax.jit(partial(primitive(attributes).bind, attributes=attributes))


def evaluate(*operands: AnyArray, attributes: Attributes) -> AnyArray:
    """Run a call outside of any transform. Raise IndexError immediately for an invalid index."""
    if jax.config.jax_disable_jit:
        with jax.disable_jit(False):
            return eager_call(attributes)(*operands)
    return eager_call(attributes)(*operands)


@lru_cache(maxsize=1024)
def eager_call(attributes: Attributes) -> Callable[..., AnyArray]:
    """Return a function that runs a call outside of any transform, and waits if it may raise."""
    run = compiled_call(attributes)
    always_waits, never_fails = attributes.mode == "raise", attributes.mode in FILLING

    def run_and_wait(*operands: AnyArray) -> AnyArray:
        try:
            result = run(*operands)
            # Clipping and wrapping fail only along an axis of size 0.
            if always_waits or not (never_fails or operands[0].size):
                return result if isinstance(result, Tracer) else result.block_until_ready()
            return result
        except (RuntimeError, ValueError) as error:
            if (message := _invalid_index(attributes, error)) is None:
                raise
        if _are_divided(operands):  # the message counts entries within a shard
            run_and_wait(*map(np.asarray, operands))
        raise IndexError(message)

    return run_and_wait


def core_call(attributes: Attributes) -> Callable[..., AnyArray] | None:
    """Return a function that runs the call in the core and waits for it, or None for other modes.

    The function replaces `eager_call`. Only the mode "raise" has such a function, because only
    calls in that mode always wait. If a call fails, `eager_call` repeats it to create the message.
    """
    return compiled_call(attributes) if attributes.mode == "raise" else None


def _are_divided(operands: tuple[AnyArray, ...]) -> bool:
    """Return True if devices of this process hold different parts of an operand."""
    arrays = [operand for operand in operands if isinstance(operand, jax.Array)]
    return any(not array.is_fully_replicated for array in arrays) and all(
        array.is_fully_addressable for array in arrays
    )


def _invalid_index(attributes: Attributes, error: Exception) -> str | None:
    """Return the message about an invalid index that a runtime's error contains, or None."""
    caller = caller_of(attributes.caller)
    op = re.escape(caller.op if caller else attributes.op)
    match = re.search(rf"(?<![\w.]){op}: (an )?(index|group|entry) .*", str(error))
    return match[0] if match else None


def _new_primitive(name: str) -> Primitive:
    created = Primitive(name)
    created.def_impl(evaluate)
    created.def_abstract_eval(_abstract)
    mlir.register_lowering(created, _refuse)
    return created


GATHER = _new_primitive("gatherum_gather")
SCATTER = _new_primitive("gatherum_scatter")
jax.ffi.register_ffi_target(TARGET, native.xla_handler(), platform="cpu")
# The handlers on CUDA devices, by whether XLA may capture their calls. XLA initializes a call
# before it captures it: kernels are then compiled and loaded, which a capture does not allow.
targets_on_cuda = {False: TARGET, True: RECORDABLE_TARGET}
for _recordable, _target in targets_on_cuda.items():
    _handler = native.xla_device_handler(_recordable)
    _stages = {"initialize": _handler, "execute": _handler}
    jax.ffi.register_ffi_target(_target, _stages if _recordable else _handler, platform="CUDA")
native.set_xla_device_calls(device_programs.make, device_programs.sorter)


def primitive(attributes: Attributes) -> Primitive:
    """Return the primitive of a call."""
    return SCATTER if attributes.operator.scatters else GATHER


def bind(attributes: Attributes, *operands: AnyArray) -> AnyArray:
    """Make a call, inside or outside of transforms."""
    return primitive(attributes).bind(*vary_alike(operands), attributes=attributes)


def vary_alike(operands: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
    """Make operands vary along the same axes of a ``shard_map``, as JAX's own functions do."""
    if not any(isinstance(operand, Tracer) for operand in operands):
        return operands
    axes_of_operands = [_varying(operand) for operand in operands]
    all_axes = frozenset().union(*axes_of_operands)
    pairs = zip(operands, axes_of_operands, strict=True)
    return tuple(
        _vary(operand, all_axes - operand_axes) if operand_axes != all_axes else operand
        for operand, operand_axes in pairs
    )


def _varying(operand: AnyArray) -> frozenset[Any]:
    """Return the axes of a ``shard_map`` along which an array may vary; older JAX has none."""
    aval = getattr(operand, "aval", None)
    manual_axes = getattr(aval, "mat", None)
    axes: frozenset[Any] = (
        getattr(aval, "vma", frozenset()) if manual_axes is None else manual_axes.varying
    )
    return axes


def _vary(operand: AnyArray, axes: frozenset[Any]) -> AnyArray:
    names = tuple(sorted(axes, key=str))
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(operand, names, to="varying")
    return jax.lax.pvary(operand, names)
