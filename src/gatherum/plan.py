"""Plans: everything about a call that does not depend on data, made once and kept.

A plan is a value: frozen, hashable, printable. It holds the result shape, the checks already made
and the lowered form of the call. The core keeps a bounded table of plans, keyed by the dtype, shape
and strides of every operand and by the attributes, and asks `_make_plan` only for what it has not
seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, NoReturn

import numpy as np

from . import algorithms, arguments, errors, lowering, native, shapes
from .algorithms import ALGORITHMS, WIDTHS, Choice
from .dtypes import MODES, REDUCTIONS, value_of
from .errors import Shape
from .lowering import Component, Loop, Lowered, Nest
from .signature import OPERATORS, Array, Checked, Layout, Operand, Signature, axis_name, check


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
    algorithm : str
        How the work is done so that every thread count gives the same bits; see
        ``gatherum.algorithms``.
    reason : str
        Why this algorithm: the rule that chose it, with the numbers it looked at.
    nest : Nest
        The loops that run.
    bytes : int
        Bytes that the call must read and write, indices included.
    scratch : int
        Bytes of working memory that grow with the operands, at most; buffers of up to 4 MiB a
        thread come on top. Where each thread folds units of its own into accumulators, those of
        one thread.
    """

    signature: Signature
    shape: Shape
    kernel: str
    algorithm: str
    reason: str
    nest: Nest
    bytes: int
    scratch: int
    program: native.Program = field(repr=False, compare=False)

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
        s = self.signature
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
            if expected != found:
                raise errors.other_layout(s.op, name, expected, found)
        result: Array = native.run(self, data, indices, updates, fill_value, out)
        return result

    def call_lines(self) -> list[str]:
        """Return lines that say what is called: the result, the operands, the attributes."""
        s = self.signature
        lines = [f"{s.op} -> {s.data.dtype} {self.shape}"]
        for name in ("data", "indices", "updates", "out"):
            if (operand := getattr(s, name)) is not None:
                lines.append(f"  {name:<9} {operand}")
        attributes = f"{axis_name(s.op)}={s.axis}, mode={s.mode!r}, negative={s.negative}"
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
    checked = check(s)
    loops, components = _loops(s, checked)
    tuples = _tuple_layout(s)
    if 0 in checked.other.shape:
        choice = _NOTHING
    elif s.updates is None:
        choice = algorithms.choose_gather(s, loops, components)
    else:
        choice = algorithms.choose_scatter(s, value_of(s.data.dtype), loops, components)
    nest = choice.lowered.nest
    return Plan(
        signature=s,
        shape=checked.shape,
        kernel=_kernel(s, nest),
        algorithm=choice.algorithm,
        reason=choice.reason,
        nest=nest,
        bytes=_bytes_moved(s, checked, prod(tuples.shape) * len(components)),
        scratch=choice.scratch,
        program=_program(s, checked, choice, components, tuples),
    )


_NOTHING = Choice("units", Lowered(lowering.EMPTY, 0, False, 0), 0, "nothing moves")


def _loops(s: Signature, checked: Checked) -> tuple[list[Loop], list[Component]]:
    operands = checked.data, s.indices.layout, checked.other
    if s.op == "gather":
        return lowering.gather_loops(*operands, checked.axis)
    if s.op.endswith("_elements"):
        return lowering.elements_loops(*operands, checked.axis)
    return lowering.nd_loops(*operands, checked.axis)


def _tuple_layout(s: Signature) -> Layout:
    """Shape and strides of the index tuples: those of `indices`, less the tuple dimension."""
    if s.op.endswith("_nd"):
        return Layout(s.indices.shape[:-1], s.indices.strides[:-1])
    return s.indices.layout


def _kernel(s: Signature, nest: Nest) -> str:
    if s.updates is None or s.reduction == "none":
        line = not nest.rows and nest.block in WIDTHS
    else:
        line = not nest.rows and nest.block == s.data.dtype.itemsize
    return ("gather" if s.updates is None else "scatter") + ("_lines" if line else "_rows")


def _bytes_moved(s: Signature, checked: Checked, indices: int) -> int:
    item = s.data.dtype.itemsize
    moved = 2 * prod(checked.other.shape) * item + indices * s.indices.dtype.itemsize
    functional = s.updates is not None and s.out is None
    return moved + (2 * prod(checked.shape) * item if functional else 0)


# More bytes than there is memory; broadcast operands can stand for more than an int64 counts.
_MOST = 1 << 60


def _program(
    s: Signature, checked: Checked, choice: Choice, components: list[Component], tuples: Layout
) -> native.Program:
    """Compile the plan's numbers for the core."""
    item, index = s.data.dtype.itemsize, s.indices.dtype
    count = prod(tuples.shape) if components else 0
    scatter = s.updates is not None
    copies = scatter and 0 not in s.data.shape
    forced = s.mode in ("clip", "wrap")
    empty = [c for c, component in enumerate(components) if component.size == 0]
    lowered, target = choice.lowered, algorithms.target_of(components)
    return native.Program(
        {
            "scatter": scatter,
            "item": item,
            "algorithm": ALGORITHMS.index(choice.algorithm),
            "reduction": REDUCTIONS.index(s.reduction),
            "value": int(value_of(s.data.dtype)),
            "include_self": s.include_self,
            "mode": min(MODES.index(s.mode), MODES.index("fill")),  # the core drops for both
            "negative": s.negative,
            "index_width": index.itemsize,
            "index_signed": index.kind == "i",
            "index_swapped": not index.isnative,
            "units": lowered.units,
            "line_chunk": lowered.line_chunk,
            "split_line": lowered.split_line,
            "destinations": target.count,
            "step": target.step,
            "tiles": _tiles(s, checked),
            "moves": 0 not in checked.other.shape,
            "copies": copies,
            "unaddressable": empty[0] if forced and empty else -1,
            "tuples": count,
            "bytes": min(2 * lowering.points(lowered.nest) * lowered.nest.block, _MOST),
            "nest": lowered.nest,
            "ids": lowering.number_destinations(lowered.nest),
            "checks": lowering.lower_checks(tuples, components) if count else lowering.EMPTY,
            "copy": lowering.lower_copy(s.data.layout, checked.data, item)
            if copies
            else lowering.EMPTY,
            "shape": checked.shape,
        }
    )


def _tiles(s: Signature, checked: Checked) -> bool:
    """Whether the destinations of all units together are all of the data, laid out as the result:
    then an accumulating scatter reads the data itself and needs no copy made beforehand.
    """
    if checked.data.strides != s.data.strides:
        return False
    if s.op == "scatter_elements":
        across = s.indices.shape[: checked.axis] + s.indices.shape[checked.axis + 1 :]
        return across == s.data.shape[: checked.axis] + s.data.shape[checked.axis + 1 :]
    return True


def plan(
    op: str, data: object, indices: object, updates: object = None, /, **attributes: object
) -> Plan:
    """Return the plan of a call without running it.

    Parameters
    ----------
    op : str
        One of the five operators' names.
    data, indices, updates : array_like or (shape, dtype) or (shape, dtype, strides)
        The operands, or what they look like (strides in bytes; C order when left out).
    **attributes
        The operator's other arguments: `axis` or `batch_dims`, `reduction`, `include_self`, `mode`,
        `negative`, `out` (an operand like the others).

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
    if op not in OPERATORS:
        raise errors.unknown_operator(op, OPERATORS)
    a = _attributes(op, attributes)
    if not is_description(data):
        data = arguments.as_array(op, "data", data)
    if not is_description(indices):
        indices = arguments.as_indices(op, indices)
    operands = [_describe(op, "data", data), _describe(op, "indices", indices)]
    if op.startswith("scatter"):
        if not is_description(updates):
            updates = arguments.as_updates(op, updates, operands[0].dtype)
        operands.append(_describe(op, "updates", updates))
    out = None if a["out"] is None else _describe(op, "out", a["out"])
    return build(
        Signature(
            op,
            operands[0],
            operands[1],
            operands[2] if len(operands) > 2 else None,
            arguments.as_axis(op, a[axis_name(op)]),
            arguments.as_choice(op, "reduction", a["reduction"], REDUCTIONS),
            bool(a["include_self"]),
            arguments.as_choice(op, "mode", a["mode"], MODES),
            bool(a["negative"]),
            out,
        )
    )


def _attributes(op: str, given: dict[str, object]) -> dict[str, Any]:
    defaults: dict[str, object] = {axis_name(op): 0, "mode": "raise", "negative": True, "out": None}
    if op.startswith("scatter"):
        defaults |= {"reduction": "none", "include_self": True}
    for name in given:
        if name not in defaults:
            raise errors.unknown_attribute(op, name, tuple(defaults))
    return {"reduction": "none", "include_self": True} | defaults | given


def is_description(value: object) -> bool:
    """Whether a tuple describes an operand: a shape, a dtype, perhaps strides."""
    if not isinstance(value, tuple) or len(value) not in (2, 3) or not isinstance(value[0], tuple):
        return False
    return isinstance(value[1], (str, type, np.dtype))


def _describe(op: str, operand: str, value: Any) -> Operand:
    if not is_description(value):
        if not arguments.is_plain(value):
            raise errors.not_an_operand(op, operand, value)
        return Operand.of(value)
    shape, dtype = arguments.as_shape(op, operand, value[0]), np.dtype(value[1])
    if prod(max(n, 1) for n in shape) * max(dtype.itemsize, 1) > shapes.MAX_BYTES:
        raise errors.operand_too_big(op, operand, shape)
    if len(value) == 2:
        return Operand(shape, dtype, Layout.contiguous(shape, dtype.itemsize).strides)
    return Operand(shape, dtype, arguments.as_strides(op, operand, shape, value[2]))


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
    a = _attributes(op, attributes)
    result: Array = native.call(
        op,
        data,
        indices,
        updates,
        a[axis_name(op)],
        a["reduction"],
        a["include_self"],
        a["mode"],
        a["negative"],
        fill_value,
        out,
    )
    return result


# What the core asks for; see calls.hpp.


def _normalise(*call: object) -> tuple[object, ...]:
    plain = arguments.normalise(*call)  # type: ignore[arg-type]  # the core passes eleven
    out = plain[-1]
    if out is not None and not arguments.is_plain(out):
        _make_plan(*plain[:9], None)  # type: ignore[arg-type, call-arg]  # earlier errors come first
        op = str(plain[0])
        raise (
            errors.masked_array(op, "out")
            if arguments.is_masked(out)
            else errors.out_not_an_array(op, out)
        )
    return plain


def _make_plan(
    op: str,
    data: Array,
    indices: Array,
    updates: Array | None,
    axis: int,
    reduction: str,
    include_self: bool,
    mode: str,
    negative: bool,
    out: Array | None,
) -> Plan:
    if updates is None and op.startswith("scatter"):
        updates = np.asarray(updates)  # None is no array: the checks answer, in their order
    return build(
        Signature(
            op,
            Operand.of(data),
            Operand.of(indices),
            None if updates is None else Operand.of(updates),
            axis,
            reduction,
            include_self,
            mode,
            negative,
            None if out is None else Operand.of(out),
        )
    )


# Work that an overlap test may do before "undecided" counts as overlap.
_OVERLAP_WORK = 10_000


def _check_out(plan: Plan, data: Array, indices: Array, updates: Array | None, out: Array) -> None:
    """Raise ValueError when `out` is read-only or shares memory with an input it must not."""
    op = plan.signature.op
    out, data = np.asarray(out), np.asarray(data)  # subclasses may say anything of themselves
    if not out.flags.writeable:
        raise errors.out_read_only(op)
    in_place = updates is not None and _is_same_place(out, data)
    for name, operand in (("data", data), ("indices", indices), ("updates", updates)):
        if operand is None or (name == "data" and in_place):
            continue
        if _shares_memory(out, operand):
            raise errors.out_overlaps(op, name)


def _is_same_place(a: Array, b: Array) -> bool:
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides


def _shares_memory(a: Array, b: Array) -> bool:
    try:
        # NumPy's stubs know two of the values only.
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _make_fill(plan: Plan, fill_value: object) -> Array:
    return arguments.fill_item(plan.signature.op, plan.signature.data.dtype, fill_value)


def _raise_invalid(plan: Plan, position: int, component: int, value: int) -> NoReturn:
    """Raise IndexError for the invalid index at a linear position among the index tuples."""
    s = plan.signature
    if s.indices.dtype.kind == "u":
        value %= 1 << 8 * s.indices.dtype.itemsize
    tuples = _tuple_layout(s).shape
    nd = s.op.endswith("_nd")
    axis = _positive_axis(s) + component if nd else _positive_axis(s)
    where: Shape | None = None
    if position >= 0:
        where = tuple(int(n) for n in np.unravel_index(position, tuples)) + (
            (component,) if nd else ()
        )
    raise errors.index_out_of_bounds(s.op, value, axis, s.data.shape[axis], where, s.mode)


def _positive_axis(s: Signature) -> int:
    return s.axis % len(s.data.shape) if s.axis < 0 else s.axis


def _raise_changed(plan: Plan, number: int) -> NoReturn:
    """Raise ValueError for an operand that user code has moved or reshaped during the call."""
    name = ("data", "indices", "updates", "out")[number]
    raise errors.operand_changed(plan.signature.op, name)


native.set_hooks(_normalise, _make_plan, _check_out, _make_fill, _raise_invalid, _raise_changed)
