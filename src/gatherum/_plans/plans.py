"""Plans, which describe calls that have been checked and lowered.

A plan is immutable and hashable, and can be printed. It contains the shape of the result and the
lowered call. The core caches a limited number of plans, keyed by the dtype, shape and strides of
every operand and by the attributes. It requests a plan (see `callbacks`) only if it has not cached
one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Unpack

from gatherum._arguments import array_likes, conversion, plain_values
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import OPERAND_NAMES, ArraySpec, Attributes, Call, is_spec
from gatherum._model.call_types import OperatorName, PlanAttributes
from gatherum._model.dtypes import AnyDType, read_dtype
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING
from gatherum._model.nests import Nest
from gatherum._model.operators import Operator, find_operator
from gatherum._system import native

from .programs import compile_call

_run = native.run_plan


class Description(NamedTuple):
    """The algorithm of a plan on its device, the reason for it, scratch in bytes, and steps."""

    algorithm: str
    reason: str
    scratch: int
    steps: tuple[str, ...] = ()


def _describe_here(plan: Plan) -> Description:
    return Description(*native.describe(plan.program))


# The function that describes plans, by device.
_describers: dict[str, Callable[[Plan], Description]] = {"cpu": _describe_here}


def add_device(name: str, describe: Callable[[Plan], Description]) -> None:
    """Set the function that describes plans of a device; the device's package does so on import."""
    _describers[name] = describe


def _description(plan: Plan) -> Description:
    if plan.device not in _describers:  # unpickled before its device's package was imported
        import_module(f"gatherum.{plan.device}")
    return _describers[plan.device](plan)


@public
@dataclass(frozen=True, slots=True)
class Plan:
    """One call to an operator, without its data.

    Attributes
    ----------
    call : Call
        Attributes and specs of the operands: everything that the plan depends on.
    shape : tuple of int
        The result's shape.
    kernel : str
        The general kernel for the nest: ``gather_rows``, ``gather_lines``, ``scatter_rows`` or
        ``scatter_lines``. The algorithm ``direct`` runs it. Other algorithms can run different
        kernels: the first line of the algorithm's file in the core names them.
    nest : Nest
        The loops that run.
    bytes : int
        The number of bytes that the call must read and write, indices included.
    program : Program
        The same call for the core: a value that can be compared, serialized, and run elsewhere.
    device : str
        The device: ``"cpu"``, or ``"cuda"`` for arrays on a CUDA device.
    """

    call: Call
    shape: Shape
    kernel: str
    nest: Nest
    bytes: int
    program: native.Program = field(repr=False, compare=False)
    device: str = "cpu"
    # Computed once, because several tables use plans as keys.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash from the call and the device, which determine the other fields."""
        object.__setattr__(self, "_hash", hash((self.call, self.device)))

    def __hash__(self) -> int:
        """Return the hash."""
        return self._hash

    @property
    def algorithm(self) -> str:
        """The name of the algorithm for the current number of threads.

        On a CUDA device, the launches in order. All algorithms return bit-for-bit equal
        results; ``docs/performance.md`` describes them.
        """
        return _description(self).algorithm

    @property
    def reason(self) -> str:
        """The reason for the choice of this algorithm, with the numbers that were compared."""
        return _description(self).reason

    @property
    def scratch(self) -> int:
        """The maximum number of bytes of working memory for the current number of threads.

        Buffers of up to 4 MiB per thread are not included, nor is the memory that a library's sort
        uses on a CUDA device.
        """
        return _description(self).scratch

    def run(
        self,
        data: NumpyArray,
        indices: NumpyArray,
        updates: NumpyArray | None = None,
        *,
        out: NumpyArray | None = None,
        fill_value: object = 0,
    ) -> NumpyArray:
        """Run the plan on arrays of exactly the dtype, shape and strides that it was made for.

        Parameters
        ----------
        data, indices, updates : numpy.ndarray
            The operands; `updates` for scatters.
        out : numpy.ndarray, optional
            The array for the result; required if and only if the plan was made with one.
        fill_value : object
            As for the operator.

        Returns
        -------
        numpy.ndarray
            The result, or `out`.

        Raises
        ------
        ValueError
            If an operand differs from the operand that the plan was made for.
        """
        return _run(self, data, indices, updates, out, fill_value)

    def call_lines(self) -> list[str]:
        """Return lines that describe the call: the result, the operands, the attributes."""
        call = self.call
        lines = [f"{call.op} -> {call.data.dtype} {self.shape}"]
        for name in OPERAND_NAMES:
            if (operand := getattr(call, name)) is not None:
                lines.append(f"  {name:<9} {operand}")
        attributes = (f"{name}={value!r}" for name, value in call.attributes.keywords.items())
        return [*lines, f"  with      {', '.join(attributes)}"]

    def algorithm_lines(self, why: bool = False) -> list[str]:
        """Return lines that name the algorithm, and optionally the reason."""
        reason = f": {self.reason}" if why else ""
        if self.device != "cpu":
            steps = _description(self).steps if why else ()
            lines = [f"  device    {self.device}", f"  launches  {self.algorithm}{reason}"]
            return [*lines, *(f"    {step}" for step in steps)]
        if why:
            return [f"  kernel    {self.kernel}", f"  algorithm {self.algorithm}{reason}"]
        return [f"  kernel    {self.kernel}, algorithm {self.algorithm}"]

    def moves_line(self) -> str:
        """Return the line of `str` about the moved bytes and the scratch memory."""
        return f"  moves     {self.bytes:,} bytes, scratch {self.scratch:,} bytes"

    def __reduce__(self) -> tuple[Callable[..., Plan], tuple[object, ...]]:
        """Pickle the arguments of the plan; unpickling checks and lowers them again."""
        call = self.call
        operands = (call.data, call.indices, call.updates, call.out)
        *inputs, out = (operand and operand.plain for operand in operands)
        return Plan._again, (call.op, *inputs, call.attributes.keywords | {"out": out}, self.device)

    @classmethod
    def _again(
        cls,
        op: str,
        data: object,
        indices: object,
        updates: object,
        attributes: dict[str, object],
        device: str,
    ) -> Plan:
        """Unpickle a plan."""
        if device not in (devices := ("cpu", "cuda")):
            raise errors.not_one_of("plan", "device", device, devices)
        return planned(find_operator(op), data, indices, updates, attributes, device)

    def _repr_html_(self) -> str:
        from gatherum._inspection.explanations import (
            Explanation,  # only needed for drawing
        )

        picture = Explanation(self)._repr_html_()
        note = "A plan has shapes, not values. gatherum.explain(plan, data, indices) draws values."
        return f"<div>{picture}<p>{note}</p></div>"

    def __str__(self) -> str:
        lines = self.call_lines()
        lines += self.algorithm_lines()
        for i, loop in enumerate(self.nest.loops):
            role = ("loop", "line", "row")[(i >= self.nest.line) + (i > self.nest.line)]
            lines.append(
                f"  {role:<9} {loop.extent} x (data {loop.data:+}, index {loop.index:+}, "
                f"moved {loop.moved:+}) bytes"
            )
        lines.append(f"  block     {self.nest.block} bytes")
        lines.append(self.moves_line())
        return "\n".join(lines)


native.accelerate(Plan.run)


def build(call: Call) -> Plan:
    """Check a call and lower it."""
    return Plan(call, *compile_call(call))


# A cached `build`, for calls that do not use the core's table of plans.
build_once = native.emptied_at_exit(lru_cache(maxsize=1024)(build))


def plan(
    op: OperatorName | Callable[..., Any],
    data: object,
    indices: object,
    updates: object = None,
    /,
    **attributes: Unpack[PlanAttributes],
) -> Plan:
    """Return the plan of a call without running it.

    Parameters
    ----------
    op : str or callable
        The name of an operator (``"gather_nd"``, or ``"gather-nd"`` as on the command line), or its
        function.
    data, indices, updates : array_like or tensor or (shape, dtype) or (shape, dtype, strides)
        The operands, or their specs (strides in bytes; C order if omitted).
    **attributes
        The operator's other arguments by name; `out` may be an operand or a spec, too.

    Returns
    -------
    Plan
        The plan, which is frozen and hashable. Printing the plan shows its loops.

    Raises
    ------
    TypeError, ValueError
        As the operator raises them.

    Examples
    --------
    >>> p = gatherum.plan("gather", ((4, 8), "f4"), ((3,), "i8"))
    >>> p.shape, p.kernel
    ((3, 8), 'gather_rows')
    """
    return planned(find_operator(op), data, indices, updates, dict(attributes))


def planned(
    operator: Operator,
    data: object,
    indices: object,
    updates: object,
    attributes: dict[str, object],
    device: str = "cpu",
) -> Plan:
    """Return the plan of an operator's call on the data's device."""
    return planned_with_operands(operator, data, indices, updates, attributes, device)[0]


def planned_with_operands(
    operator: Operator,
    data: object,
    indices: object,
    updates: object,
    attributes: dict[str, object],
    device: str,
) -> tuple[Plan, list[Any]]:
    """Return the plan and the operands: arrays, or specs if values are unknown."""
    op = operator.name
    call_attributes = plain_values.attributes_from(op, attributes, attribute_names(operator))
    out, fill_value = attributes.get("out"), attributes.get("fill_value", 0)
    device = "cuda" if registry.device(data) == "cuda" else device
    if updates is not None and not operator.scatters:
        raise errors.takes_no_updates(op, updates)
    data, indices = registry.spec(op, "data", data), registry.spec(op, "indices", indices)
    updates, out = registry.spec(op, "updates", updates), registry.spec(op, "out", out)
    inputs = data, indices, updates
    operands, specs = conversion.as_operands(call_attributes, inputs, is_spec, _describe)
    call = Call(call_attributes, *specs)
    if out is not None:
        compile_call(call)  # errors of the inputs are raised before errors of out
        call = replace(call, out=_describe(op, "out", out))
    new_plan = build(call)
    check_fill(call, fill_value)
    return new_plan if device == new_plan.device else replace(new_plan, device=device), operands


_planned_again = Plan._again  # pickles of earlier versions have this name


def check_fill(call: Call, fill_value: object) -> None:
    """Raise ValueError if the mode fills and a gather cannot store the fill value."""
    if call.updates is None and call.mode in FILLING:
        value = registry.spec(call.op, "fill_value", fill_value)
        if not is_spec(value):
            conversion.fill_item(call.op, call.data.dtype, value)


def attribute_names(operator: Operator) -> tuple[str, ...]:
    """Return the names of an operator's arguments other than its inputs."""
    operand_names = ("out",) if operator.scatters else ("out", "fill_value")
    return *Attributes(operator.name).keywords, *operand_names


def _describe(op: str, operand: str, value: Any) -> ArraySpec:
    if isinstance(value, ArraySpec):
        value = value.plain
    if not is_spec(value):
        if not array_likes.is_plain(value):
            raise errors.not_a_plain_array(op, operand, value)
        return ArraySpec.of(value)
    shape, dtype = plain_values.as_shape(op, operand, value[0]), _dtype(op, operand, value[1])
    shape_limits.check_size(op, operand, shape, dtype.itemsize)
    if len(value) == 2:
        return ArraySpec.contiguous(shape, dtype)
    return ArraySpec(shape, dtype, plain_values.as_strides(op, operand, shape, value[2]))


def _dtype(op: str, operand: str, value: Any) -> AnyDType:
    try:
        return read_dtype(value)
    except (TypeError, ValueError, SyntaxError):  # as numpy.dtype for "zz", "(-1,)i4" and "i4,,"
        raise errors.not_a_dtype(op, operand, value) from None


def apply(
    op: str,
    data: object,
    indices: object,
    updates: object = None,
    *,
    out: NumpyArray | None = None,
    fill_value: object = 0,
    **attributes: object,
) -> NumpyArray:
    """Run an operator by name, with the arguments of its function."""
    operator = find_operator(op, "apply")
    call_attributes = plain_values.attributes_from(
        operator.name, attributes, attribute_names(operator)
    )
    arguments = *call_attributes.positional, fill_value, out
    result: NumpyArray = native.dispatch_call(operator.name, data, indices, updates, *arguments)
    return result
