"""Plans: everything about a call that does not depend on data, made once and kept.

A plan is a value: frozen, hashable, printable. It holds the result shape, the checks already made
and the lowered form of the call. The core keeps a bounded table of plans, keyed by the dtype, shape
and strides of every operand and by the attributes, and asks `_make_plan` only for what it has not
seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeAlias, Unpack

import numpy as np

from . import arguments, arrays, errors, native, shapes
from ._core import DType as DTypeCode
from .dtypes import (
    MODES,
    REDUCTIONS,
    AnyDType,
    DType,
    dtype_of,
    read_dtype,
)
from .errors import Shape
from .lowering import Nest
from .names import OperatorName, PlanAttributes
from .operators import OPERATORS, Operator, find
from .programs import compile_call
from .shapes import Layout
from .signature import (
    Array,
    Operand,
    Signature,
    check,
    check_before_updates,
    is_description,
    looks_alike,
)

_run = native.run


@dataclass(frozen=True, slots=True)
class Plan:
    """One call of an operator, without its data.

    Attributes
    ----------
    signature : Signature
        Operator, operands' looks and attributes: all that the plan depends on.
    shape : tuple of int
        The result's shape.
    kernel : str
        The kernel that the innermost run chooses: ``gather_rows``, ``gather_lines``,
        ``scatter_rows`` or ``scatter_lines``.
    nest : Nest
        The loops that run.
    bytes : int
        Bytes that the call must read and write, indices included.
    program : Program
        The same for the core: a value that can be compared, sent as bytes, and run elsewhere.
    """

    signature: Signature
    shape: Shape
    kernel: str
    nest: Nest
    bytes: int
    program: native.Program = field(repr=False, compare=False)

    @property
    def algorithm(self) -> str:
        """The implementation that runs on the present number of threads, by name.

        Every one gives the same bits; ``docs/performance.md`` says what each does.
        """
        return native.describe(self.program)[0]

    @property
    def reason(self) -> str:
        """Why this algorithm: the rule that chose it, with the numbers it looked at."""
        return native.describe(self.program)[1]

    @property
    def scratch(self) -> int:
        """Bytes of working memory on the present number of threads, at most.

        Buffers of up to 4 MiB a thread come on top.
        """
        return native.describe(self.program)[2]

    def run(
        self,
        data: Array,
        indices: Array,
        updates: Array | None = None,
        *,
        out: Array | None = None,
        fill_value: object = 0,
    ) -> Array:
        """Run the plan on arrays of exactly the dtype, shape and strides it was made for.

        Parameters
        ----------
        data, indices, updates : numpy.ndarray
            The operands; `updates` for scatters.
        out : numpy.ndarray, optional
            Where the result goes; given exactly when the plan was made with one.
        fill_value : object
            As for the operator.

        Returns
        -------
        numpy.ndarray
            The result, or `out`.

        Raises
        ------
        ValueError
            If an operand looks different from what the plan was made for.
        """
        return _run(self, data, indices, updates, fill_value, out)

    def call_lines(self) -> list[str]:
        """Return lines that say what is called: the result, the operands, the attributes."""
        s = self.signature
        lines = [f"{s.op} -> {s.data.dtype} {self.shape}"]
        for name in ("data", "indices", "updates", "out"):
            if (operand := getattr(s, name)) is not None:
                lines.append(f"  {name:<9} {operand}")
        attributes = f"{s.operator.attribute}={s.axis}, mode={s.mode!r}, negative={s.negative}"
        if s.updates is not None:
            attributes += f", reduction={s.reduction!r}, include_self={s.include_self}"
        return [*lines, f"  with      {attributes}"]

    def _repr_html_(self) -> str | None:
        return None if _html_view is None else _html_view(self)

    def __str__(self) -> str:
        lines = self.call_lines()
        lines.append(f"  kernel    {self.kernel}, algorithm {self.algorithm}")
        for number, loop in enumerate(self.nest.loops):
            kind = ("loop", "line", "row")[(number >= self.nest.line) + (number > self.nest.line)]
            lines.append(
                f"  {kind:<9} {loop.extent} x (data {loop.data:+}, index {loop.index:+}, "
                f"other {loop.other:+}) bytes"
            )
        lines.append(f"  block     {self.nest.block} bytes")
        lines.append(f"  moves     {self.bytes} bytes, scratch {self.scratch} bytes")
        return "\n".join(lines)


_html_view: Callable[[Plan], str] | None = None


def set_html_view(view: Callable[[Plan], str]) -> None:
    """Say what notebooks show of a plan: a picture, from the layer that draws it."""
    global _html_view  # noqa: PLW0603  # like the hooks that this module gives to the core
    _html_view = view


def build(s: Signature) -> Plan:
    """Check a call by its looks and lower it."""
    return Plan(s, *compile_call(s))


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
        An operator's name (``"gather_nd"``, or ``"gather-nd"`` as in the command), or the function
        itself.
    data, indices, updates : array_like or tensor or (shape, dtype) or (shape, dtype, strides)
        The operands, or what they look like (strides in bytes; C order when left out).
    **attributes
        The operator's other arguments: `axis` or `batch_dims`, `reduction`, `include_self`, `mode`,
        `negative`, `fill_value`, `out` (an operand like the others).

    Returns
    -------
    Plan
        Frozen and hashable; printing it shows the loops that would run.

    Raises
    ------
    TypeError, ValueError
        As the operator would.

    Examples
    --------
    >>> p = gatherum.plan("gather", ((4, 8), "f4"), ((3,), "i8"))
    >>> p.shape, p.kernel
    ((3, 8), 'gather_rows')
    """
    return planned(find(op), data, indices, updates, dict(attributes))


def planned(
    operator: Operator,
    data: object,
    indices: object,
    updates: object,
    attributes: dict[str, object],
) -> Plan:
    """Return the plan of an operator's call, as `plan` does."""
    op, a = operator.name, _attributes(operator, attributes)
    if updates is not None and not operator.scatters:
        raise errors.no_updates(op)
    data, indices = arrays.seen(op, "data", data), arrays.seen(op, "indices", indices)
    updates, out = arrays.seen(op, "updates", updates), arrays.seen(op, "out", a["out"])
    axis = arguments.as_axis(op, a[operator.attribute])
    reduction = arguments.as_choice(op, "reduction", a["reduction"], REDUCTIONS)
    include_self = arguments.as_boolean(op, "include_self", a["include_self"])
    mode = arguments.as_choice(op, "mode", a["mode"], MODES)
    negative = arguments.as_boolean(op, "negative", a["negative"])
    if not is_description(data):
        data = arguments.as_array(op, "data", data)
    if not is_description(indices):
        indices = arguments.as_indices(op, indices)
    to, of = _describe(op, "data", data), _describe(op, "indices", indices)
    other = None
    if operator.scatters:
        check_before_updates(op, to.shape, of.shape, axis, to.dtype, of.dtype)
        if not is_description(updates):
            updates = arguments.as_updates(op, updates, to.dtype)
        other = _describe(op, "updates", updates)
    s = Signature(op, to, of, other, axis, reduction, include_self, mode, negative, None)
    if out is not None:
        check(s)  # what is wrong with the others comes first
        s = replace(s, out=_describe(op, "out", out))
    made = build(s)
    check_fill(s, a["fill_value"])
    return made


def check_fill(s: Signature, fill_value: object) -> None:
    """Raise ValueError for what a gather cannot store for an invalid index, where its mode asks."""
    if s.updates is None and s.mode in ("fill", "drop"):
        arguments.fill_item(s.op, s.data.dtype, fill_value)


def _attributes(operator: Operator, given: dict[str, object]) -> dict[str, Any]:
    defaults: dict[str, object] = {operator.attribute: 0, "mode": "raise", "negative": True}
    defaults["out"] = None
    if not operator.scatters:
        defaults["fill_value"] = 0
    else:
        defaults |= {"reduction": "none", "include_self": True}
    for name in given:
        if name not in defaults:
            raise errors.unknown_attribute(operator.name, name, tuple(defaults))
    return {"reduction": "none", "include_self": True, "fill_value": 0} | defaults | given


def _describe(op: str, operand: str, value: Any) -> Operand:
    if not is_description(value):
        if not arguments.is_plain(value):
            raise errors.not_an_operand(op, operand, value)
        return Operand.of(value)
    shape, dtype = arguments.as_shape(op, operand, value[0]), _dtype(op, operand, value[1])
    shapes.check_size(op, operand, shape, dtype.itemsize)
    if len(value) == 2:
        return Operand(shape, dtype, Layout.contiguous(shape, dtype.itemsize).strides)
    return Operand(shape, dtype, arguments.as_strides(op, operand, shape, value[2]))


def _dtype(op: str, operand: str, value: Any) -> AnyDType:
    try:
        return read_dtype(value)
    except (TypeError, ValueError, SyntaxError):  # as numpy.dtype reads "zz", "(-1,)i4" and "i4,,"
        raise errors.not_a_dtype(op, operand, value) from None


def apply(
    op: str,
    data: object,
    indices: object,
    updates: object = None,
    *,
    out: Array | None = None,
    fill_value: object = 0,
    **attributes: object,
) -> Array:
    """Run an operator by name: the way of the functional API, for the layers beside it."""
    operator = find(op, "apply")
    a = _attributes(operator, attributes)
    result: Array = native.call(
        operator.name,
        data,
        indices,
        updates,
        a[operator.attribute],
        a["reduction"],
        a["include_self"],
        a["mode"],
        a["negative"],
        fill_value,
        out,
    )
    return result


# What the core asks for; see calls.hpp.


def _normalise(*call: object) -> object:
    if type(call[1]) not in arrays.COMMON and (room := arrays.room_for(type(call[1]))):
        op, data, indices, updates, *attributes, fill_value, out = call
        plain_attributes = arguments.normalise_attributes(str(op), *attributes)
        operands = {"data": data, "indices": indices, "updates": updates, "out": out}
        arrays.check_one_framework(str(op), operands)
        return room(op, data, indices, updates, *plain_attributes[1:], fill_value, out)
    plain = arguments.normalise(*call)  # type: ignore[arg-type]  # the core passes eleven
    out = plain[-1]
    if out is not None and not arguments.is_plain(out):
        _make_plan(*plain[:9], None)  # type: ignore[arg-type, call-arg]  # earlier errors come first
        arguments.as_out(str(plain[0]), out)
    return plain


# What an operand looks like to the core: an array, or (shape, dtype, strides) of one that is not
# NumPy's.
_Look: TypeAlias = Array | tuple[Shape, DTypeCode, Shape]


def _operand(look: _Look) -> Operand:
    if isinstance(look, tuple):
        shape, code, strides = look
        return Operand(shape, dtype_of(code), strides)
    return Operand.of(look)


def _make_plan(
    op: str,
    data: _Look,
    indices: _Look,
    updates: _Look | None,
    axis: int,
    reduction: str,
    include_self: bool,
    mode: str,
    negative: bool,
    out: _Look | None,
) -> Plan:
    to, of = _operand(data), _operand(indices)
    if updates is None and OPERATORS[op].scatters:
        check_before_updates(op, to.shape, of.shape, axis, to.dtype, of.dtype)
        raise errors.no_array(op, "updates", None)
    return build(
        Signature(
            op,
            to,
            of,
            None if updates is None else _operand(updates),
            axis,
            reduction,
            include_self,
            mode,
            negative,
            None if out is None else _operand(out),
        )
    )


def _check_operands(
    plan: Plan, data: Array, indices: Array, updates: Array | None, out: Array | None
) -> None:
    """Raise for arrays that look different from what a plan was made for."""
    s = plan.signature
    given = (
        ("data", s.data, data),
        ("indices", s.indices, indices),
        ("updates", s.updates, updates),
        ("out", s.out, out),
    )
    for name, expected, array in given:
        if array is not None and not arguments.is_plain(array):
            raise errors.not_an_operand(s.op, name, array)
        found = None if array is None else Operand.of(array)
        if not looks_alike(expected, found):
            raise errors.other_layout(s.op, name, expected, found)
    if s.data.dtype.names is not None:
        check(s)  # fields can have been renamed since the plan was made


# Work that an overlap test may do before "undecided" counts as overlap.
_OVERLAP_WORK = 10_000


def _check_out(plan: Plan, data: Array, indices: Array, updates: Array | None, out: Array) -> None:
    check_memory(plan.signature.op, data, indices, updates, out)


def check_memory(op: str, data: Array, indices: Array, updates: Array | None, out: Array) -> None:
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
    return arguments.fill_item(plan.signature.op, dtype, fill_value)


def invalid_index(
    s: Signature, component: int, value: object, where: tuple[object, ...] | None
) -> IndexError:
    """Return what to raise for an invalid index of a call: a component of the tuple at a place
    among the index tuples, None where the indices have changed meanwhile.
    """
    shape = s.indices.shape
    axis = s.operator.indexed(shape, s.operator.resolve(s.data.shape, shape, s.axis))[component]
    if where is not None and s.operator.tuples:
        where = (*where, component)
    return errors.index_out_of_bounds(s.op, value, axis, s.data.shape[axis], where, s.mode)


def _raise_invalid(plan: Plan, position: int, component: int, value: int) -> NoReturn:
    """Raise IndexError for the invalid index at a linear position among the index tuples."""
    s = plan.signature
    if s.indices.dtype.kind == "u":
        value %= 1 << 8 * s.indices.dtype.itemsize
    where: Shape | None = None
    if position >= 0:
        entries = s.operator.entries(s.indices.layout).shape
        where = tuple(int(n) for n in np.unravel_index(position, entries))
    raise invalid_index(s, component, value, where)


def _raise_changed(plan: Plan, number: int) -> NoReturn:
    """Raise ValueError for an operand that user code has moved or reshaped during the call."""
    name = ("data", "indices", "updates", "out")[number]
    raise errors.operand_changed(plan.signature.op, name)


native.set_hooks(
    _normalise,
    arguments.normalise_attributes,
    _make_plan,
    _check_operands,
    _check_out,
    _make_fill,
    _raise_invalid,
    _raise_changed,
)
