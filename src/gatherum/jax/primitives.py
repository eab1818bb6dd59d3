"""The two primitives behind the six operators, and what they become for XLA.

A primitive's parameter is the `Call`: all that is not an array. Its result's shape, its checks and
the program that runs come from the plan of the call, as for NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from .. import native
from ..callbacks import invalid_index
from ..names import OperatorName
from ..operators import OPERATORS, Operator
from ..plan import Plan
from ..plan import planned as planned_call
from . import dtypes
from . import errors as jax_errors

Array: TypeAlias = Any  # a jax.Array or a tracer
Tracer = jax.core.Tracer

# The name under which XLA finds the handler; it stands in exported programs.
TARGET = "gatherum_call"
_FILL_BYTES = 16


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator without its arrays. `fill` is an item's bytes, b"" for zeros."""

    op: OperatorName
    axis: int
    mode: str
    negative: bool
    reduction: str = "none"
    include_self: bool = True
    fill: bytes = b""

    @property
    def operator(self) -> Operator:
        """The operator's row."""
        return OPERATORS[self.op]

    @property
    def fills(self) -> bool:
        """Whether what a gather skips is filled."""
        return self.mode in ("fill", "drop") and not self.operator.scatters


@native.emptied_at_exit
@lru_cache(maxsize=4096)
def _planned(call: Call, *operands: tuple[tuple[int, ...], Any]) -> Plan:
    attributes: dict[str, object] = {
        call.operator.attribute: call.axis, "mode": call.mode, "negative": call.negative,
    }  # fmt: skip
    if call.operator.scatters:
        attributes |= {"reduction": call.reduction, "include_self": call.include_self}
    data, indices, *updates = operands
    return planned_call(call.operator, data, indices, updates[0] if updates else None, attributes)


def planned(call: Call, *operands: Any) -> Plan:
    """Return the plan of a call on operands of these shapes and dtypes; it checks them."""
    names = ("data", "indices", "updates")
    return _planned(call, *(described(call.op, *e) for e in zip(names, operands, strict=False)))


def described(op: str, operand: str, value: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape and dtype of an operand, or raise TypeError where no plan can have them."""
    if not all(isinstance(n, int) for n in value.shape):
        raise jax_errors.symbolic_shape(op, operand, value.shape)
    dtype = value.dtype
    if operand != "indices" or not isinstance(dtype, np.dtype):
        dtype = dtypes.planned(op, operand, dtype)
    return tuple(value.shape), dtype


def _abstract(*avals: Any, call: Call) -> Any:
    shape = planned(call, *avals).shape
    sharding: Any = getattr(avals[0], "sharding", None)
    for name, aval in zip(("data", "indices", "updates"), avals, strict=False):
        spec = getattr(getattr(aval, "sharding", None), "spec", ())
        if any(part is not None for part in spec):  # said of explicit axes of a mesh alone
            raise jax_errors.explicit_shards(call.op, name, spec)
    if not hasattr(sharding, "update"):
        return avals[0].update(shape=shape, weak_type=False)
    whole = sharding.update(spec=jax.sharding.PartitionSpec(*(None for _ in shape)))
    return avals[0].update(shape=shape, weak_type=False, sharding=whole)


def _sentences(made: Plan) -> str:
    """Return what the handler says of an invalid index: see gatherum_xla_call in gatherum.h."""
    s = made.signature
    entries = s.operator.entries(s.indices.layout).shape
    components = range(len(made.program.checks[2]))
    said = [invalid_index(s, c, "%", ("%",) * len(entries)) for c in components]
    changed = invalid_index(s, 0, "%", None) if said else ""
    return "\n".join(map(str, [changed, *said]))


def lower(ctx: Any, *operands: Any, call: Call) -> Any:
    """Lower to a custom call. A scatter's data become its result where nobody else needs them."""
    made = planned(call, *ctx.avals_in)
    several = getattr(ctx.module_context.axis_context, "num_devices", 1) > 1
    rule = jax.ffi.ffi_lowering(
        TARGET,
        operand_output_aliases={0: 0} if call.operator.scatters else None,
        # XLA removes a call without a result, and its IndexError with it; but among several devices
        # it does not compile an effect without a place, and gives this one none.
        has_side_effect=0 in made.shape and not several,
    )
    return rule(ctx, *operands, **call_attributes(call, made))


def call_attributes(call: Call, made: Plan) -> dict[str, Any]:
    """Return the attributes of a custom call: see gatherum_xla_call in gatherum.h."""
    return {
        "program": np.frombuffer(bytes(made.program), "<i8"),
        "fill": np.frombuffer(call.fill.ljust(_FILL_BYTES, b"\0"), "<i8"),
        "sentences": _sentences(made),
    }


def _refuse(ctx: Any, *_: Any, call: Call) -> Any:
    raise jax_errors.no_jax_platform(call.op, ", ".join(ctx.module_context.platforms))


@lru_cache(maxsize=1024)
def compiled(call: Call) -> Any:
    """Return a call as a function that JAX compiles once for every shape and dtype."""
    return jax.jit(partial(primitive(call).bind, call=call))


def evaluate(*operands: Array, call: Call) -> Array:
    """Run a call outside of any transform. An invalid index is an IndexError here and now."""
    if jax.config.jax_disable_jit:
        with jax.disable_jit(False):
            return eager(call)(*operands)
    return eager(call)(*operands)


@lru_cache(maxsize=1024)
def eager(call: Call) -> Callable[..., Array]:
    """Return what runs a call outside of any transform, and waits where it may still raise."""
    run = compiled(call)
    always, never = call.mode == "raise", call.mode in ("fill", "drop")

    def evaluated(*operands: Array) -> Array:
        try:
            result = run(*operands)
            # An axis of size 0 is the one into which nothing can be clipped or wrapped.
            if always or not (never or operands[0].size):
                return result if isinstance(result, Tracer) else result.block_until_ready()
            return result
        except (RuntimeError, ValueError) as error:
            if (sentence := _invalid_index(call, error)) is None:
                raise
        if _are_divided(operands):  # a shard has counted its own entries
            evaluated(*map(np.asarray, operands))
        raise IndexError(sentence)

    return evaluated


def direct(call: Call) -> Callable[..., Array] | None:
    """Return what the core runs, and waits for, in the place of `eager`: in the mode that waits
    always. A call that fails is made again by `eager`, which finds the sentence.
    """
    return compiled(call) if call.mode == "raise" else None


def _are_divided(operands: tuple[Array, ...]) -> bool:
    """Whether devices of this process hold different parts of an operand."""
    arrays = [operand for operand in operands if isinstance(operand, jax.Array)]
    return any(not array.is_fully_replicated for array in arrays) and all(
        array.is_fully_addressable for array in arrays
    )


def _invalid_index(call: Call, error: Exception) -> str | None:
    """Return the sentence about an invalid index that a runtime's error carries."""
    found = re.search(rf"\b{call.op}: (an )?index .*", str(error))
    return found[0] if found else None


def _make(name: str) -> Primitive:
    made = Primitive(name)
    made.def_impl(evaluate)
    made.def_abstract_eval(_abstract)
    mlir.register_lowering(made, _refuse)
    return made


GATHER = _make("gatherum_gather")
SCATTER = _make("gatherum_scatter")
jax.ffi.register_ffi_target(TARGET, native.xla_call(), platform="cpu")


def primitive(call: Call) -> Primitive:
    """Return the primitive of a call."""
    return SCATTER if call.operator.scatters else GATHER


def bind(call: Call, *operands: Array) -> Array:
    """Make a call, in whatever transform it is met."""
    return primitive(call).bind(*aligned(operands), call=call)


def aligned(operands: tuple[Array, ...]) -> tuple[Array, ...]:
    """Let operands vary along the same axes of a ``shard_map``, as those of JAX's own calls do."""
    if not any(isinstance(operand, Tracer) for operand in operands):
        return operands
    axes = [_varying(operand) for operand in operands]
    every = frozenset().union(*axes)
    pairs = zip(operands, axes, strict=True)
    return tuple(_vary(operand, every - own) if own != every else operand for operand, own in pairs)


def _varying(operand: Array) -> frozenset[Any]:
    """Return the axes of a ``shard_map`` along which an array may differ; older JAX has none."""
    aval = getattr(operand, "aval", None)
    kind = getattr(aval, "mat", None)
    found: frozenset[Any] = getattr(aval, "vma", frozenset()) if kind is None else kind.varying
    return found


def _vary(operand: Array, axes: frozenset[Any]) -> Array:
    names = tuple(sorted(axes, key=str))
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(operand, names, to="varying")
    return jax.lax.pvary(operand, names)
