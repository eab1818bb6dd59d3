"""Explain a call without running it: its result, loops, bytes, algorithm, and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike, fspath
from os.path import splitext
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gatherum._arguments import array_likes
from gatherum._exports.public_classes import public
from gatherum._frameworks import registry
from gatherum._functions.index_reports import IndexReport, reported
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import OPERAND_NAMES, ArraySpec, same_spec
from gatherum._model.call_types import OperatorName, PlanAttributes
from gatherum._model.operators import Operator, find_operator
from gatherum._plans.index_errors import find_refusal
from gatherum._plans.plans import Plan, check_fill, planned_with_operands
from gatherum._system import native
from gatherum._system.regular_files import check_folder

from .pseudocode import index_check, loop_lines

if TYPE_CHECKING:
    from .pictures import CallValues

# The approximate duration of a call without data, in seconds.
OVERHEAD = 2e-7
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@public
@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The explanation of a call; print it, or display it in a notebook.

    Attributes
    ----------
    plan : Plan
        The call without its data: shape, algorithm and the reason for it, loops and bytes.
    data, indices, updates : numpy.ndarray or None
        The call's operands, None if their values are unknown.
    fill_value : object
        The value that a gather stores for an invalid index in the modes ``"fill"`` and ``"drop"``.
    strategy : str
        How a framework's call runs, and why: for tensors, whether the core or torch's dispatcher
        runs it; for Dask arrays, how rows move between the chunks. Empty for NumPy arrays.
    """

    plan: Plan
    data: NumpyArray | None = field(default=None, repr=False)
    indices: NumpyArray | None = field(default=None, repr=False)
    updates: NumpyArray | None = field(default=None, repr=False)
    fill_value: object = 0
    strategy: str = ""

    @property
    def loops(self) -> str:
        """The loops that run, as pseudo-code; offsets and steps are in bytes."""
        return "\n".join(loop_lines(self.plan))

    @property
    def report(self) -> IndexReport | None:
        """The numbers of invalid and duplicate indices; None if only shapes are known."""
        call = self.plan.call
        if self.indices is None:
            return None
        attributes = {
            call.operator.attribute: call.axis,
            "mode": call.mode,
            "negative": call.negative,
        }
        return reported(call.operator, call.data.shape, self.indices, attributes)

    @property
    def refusal(self) -> str:
        """The message of the IndexError that the call would raise, or an empty string."""
        return self._refused(self.report)

    def _refused(self, report: IndexReport | None) -> str:
        if self.indices is None or report is None or not report.invalid:
            return ""
        return str(find_refusal(self.plan.call, self.indices) or "")

    def floor(self) -> tuple[float, str]:
        """Return the minimum time to move the call's bytes, and how it was measured.

        Returns
        -------
        tuple
            The time in seconds, which is the number of bytes divided by this machine's read
            bandwidth, and a description of the measurement. The bandwidth is measured in about a
            second, once per process. Data that is in cache, or is read twice, can take less time.
            On a shared machine the bandwidth varies from run to run. For a plan on a CUDA device,
            the bandwidth of a copy on the device is used.
        """
        if self.plan.device == "cuda":
            from gatherum.cuda.explain import copy_bandwidth

            copies = copy_bandwidth()
            return self.plan.bytes / copies, f"{copies / 1e9:.3g} GB/s, measured: a copy on cuda:0"
        from gatherum._system.bandwidth import quick_read

        bandwidth = quick_read(native.get_num_threads())
        speed = f"{bandwidth.bytes_per_second / 1e9:.3g} GB/s"
        return (
            self.plan.bytes / bandwidth.bytes_per_second,
            f"{speed}, measured: {bandwidth.measured}",
        )

    def floor_line(self) -> str:
        """Measure the `floor` and describe it in one line."""
        seconds, measured = self.floor()
        longer = "; the call itself takes longer" if seconds < OVERHEAD else ""
        return f"floor: {_duration(seconds)} for {self.plan.bytes:,} bytes at {measured}{longer}"

    def svg(self) -> str:
        """Draw the call: the cells of the data and their destinations.

        Returns
        -------
        str
            An SVG document, for light and dark pages. A large call is drawn as a smaller one, with
            a note. Indices without values are drawn as an example.
        """
        from .pictures import draw

        return draw(self.plan.call, self._values, self.refusal)

    def text(self, width: int = 80, colours: bool = False) -> str:
        """Draw the call as text: the cells of the data and their destinations.

        Parameters
        ----------
        width : int
            The number of characters of a line. A large call is drawn as a smaller one.
        colours : bool
            Whether to use terminal colours to mark the cells that belong together.

        Returns
        -------
        str
            The lines of the picture.

        Examples
        --------
        >>> print(gatherum.explain("gather", [[1, 2], [3, 4], [5, 6]], [2, 0]).text())
        data (3, 2)   indices (2,)   result (2, 2)
            [0] [1]   [0] 2              [0] [1]
        [0]   1   2   [1] 0          [0]   5   6
        [1]   3   4                  [1]   1   2
        [2]   5   6
        """
        from .pictures import sketch

        return sketch(self.plan.call, self._values, bool(self.refusal), width, colours)

    @property
    def _values(self) -> CallValues:
        from .pictures import CallValues

        return CallValues(self.data, self.indices, self.updates, self.fill_value)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture that `svg` draws to a file.

        Parameters
        ----------
        path : str or path-like
            The file, whose name must end in ``.svg``. An existing file is replaced when the new one
            is complete.

        Raises
        ------
        ValueError
            If the name does not end in ``.svg``.
        OSError
            If the file cannot be written, is not a regular file, or its folder does not exist.
        """
        if splitext(path)[1].lower() != ".svg":
            raise errors.not_a_picture(path)
        check_folder(path)
        from gatherum.files.durable.file_sets import write_files  # imports all of `files`

        write_files({fspath(path): self.svg().encode()})

    def __str__(self) -> str:
        plan = self.plan
        lines = [*plan.call_lines(), *plan.algorithm_lines(why=True), plan.moves_line()]
        if self.strategy:
            lines.append(f"  strategy  {self.strategy}")
        if (report := self.report) is not None:
            lines.append(f"  found     {report}")
        if refusal := self._refused(report):
            lines.append(f"  raises    IndexError: {refusal}")
        lines += ["", "Loops (offsets and steps in bytes):"]
        lines += [f"    {line}" for line in loop_lines(plan)]
        if plan.nest.components and plan.nest.block:
            lines.append(f"    # {index_check(plan.call)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape  # slow to import, and not needed for calls

        from .pictures.svg import CLASS

        details = f"<details><summary>what runs</summary><pre>{escape(str(self))}</pre></details>"
        style = f"<style>.{CLASS}{{max-width:100%;height:auto}}</style>"
        return f"<div>{style}{self.svg()}{details}</div>"


def explain(
    op: OperatorName | Callable[..., Any] | Plan,
    data: object = None,
    indices: object = None,
    updates: object = None,
    /,
    **attributes: Unpack[PlanAttributes],
) -> Explanation:
    """Explain a call without running it.

    Parameters
    ----------
    op : str, callable or Plan
        The name of an operator (``"gather_nd"``, or ``"gather-nd"`` as on the command line), its
        function, or a plan. With a plan, the operands are optional.
    data, indices, updates : array_like or tensor or (shape, dtype) or (shape, dtype, strides)
        The operands, or their shapes and dtypes, as in `gatherum.plan`. If an operand is an array,
        the picture shows its values.
    **attributes
        The operator's other arguments, as in `gatherum.plan`, and `fill_value`.

    Returns
    -------
    Explanation
        Printing the explanation shows the result's shape, the algorithm and the reason for its
        choice, the number of bytes, and the loops. Its methods `svg` and `save` draw the call, and
        `floor` measures the minimum time to move the bytes.

    Raises
    ------
    TypeError, ValueError
        As the operator raises them. An invalid index raises no error; the explanation describes it.

    Examples
    --------
    >>> e = gatherum.explain("gather", ((2, 3, 4), "f4"), ((5,), "i8"), axis=1)
    >>> e.plan.shape, e.plan.algorithm
    ((2, 5, 4), 'direct')
    >>> print(e.loops)
    for i in range(2):
        for j in range(5):
            x = check(indices[8*j], 3)
            out[80*i + 16*j] = data[48*i + 16*x]  # 16 bytes
    >>> gatherum.explain("gather", [1, 2, 3], [0, 7]).refusal
    'gather: index 7 is out of bounds for axis 0 of size 3 (indices[1])'
    """
    keywords: dict[str, object] = dict(attributes)
    if isinstance(op, Plan):
        return _of_plan(op, data, indices, updates, keywords)
    if data is None or indices is None:
        raise TypeError("explain: `data` and `indices` must be given with an operator's name")
    device = registry.device(data)
    return explained(find_operator(op, "explain"), (data, indices, updates), keywords, device)


def explained(
    operator: Operator,
    operands: tuple[object, object, object],
    attributes: dict[str, object],
    device: str,
) -> Explanation:
    """Explain an operator's call on the data's device, as `explain` does."""
    plan, values = planned_with_operands(operator, *operands, attributes, device)
    named = zip(OPERAND_NAMES, values, strict=False)
    known = {name: v if isinstance(v, np.ndarray) else None for name, v in named}
    strategy = registry.describe(plan.call.attributes, *operands)
    return Explanation(plan, **known, fill_value=attributes.get("fill_value", 0), strategy=strategy)


def _of_plan(
    plan: Plan, data: object, indices: object, updates: object, attributes: dict[str, object]
) -> Explanation:
    """Explain a plan, with the values of the operands that are passed."""
    call = plan.call
    fill_value = attributes.pop("fill_value", 0)
    for name in attributes:
        raise errors.unknown_attribute("explain", name, ("fill_value",))
    check_fill(call, fill_value)
    values = {"data": data, "indices": indices, "updates": updates}
    for name, value in values.items():
        if value is None:
            continue
        values[name] = near = registry.spec(call.op, name, value)
        if not array_likes.is_plain(near):
            raise errors.not_a_plain_array(call.op, name, value)
        actual, expected = ArraySpec.of(near), getattr(call, name)  # type: ignore[arg-type]
        if not same_spec(actual, expected):
            raise errors.other_layout(call.op, name, expected, actual)
    return Explanation(plan, **values, fill_value=fill_value)  # type: ignore[arg-type]


def _duration(seconds: float) -> str:
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.2g} ns"
