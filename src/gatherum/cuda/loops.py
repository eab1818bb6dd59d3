"""Split a plan's nest into tuples, rows and destinations for a device.

    tuples              the loops over index tuples, which read indices
    row                 the inner loops, which do not read indices, and the chunks of a contiguous
                        block
    destination_steps   the destinations of a scatter: the tuple loops that move the data, and the
                        components

Two tuples have the same destination if they agree in the loops and components of
`destination_steps`. The other loops of the tuples do not move the data. They are the ordered fold:
their points are the updates of a destination in row-major order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gatherum._model.call import Call
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._model.nests import Component, Loop
from gatherum._plans.plans import Plan
from gatherum._system import native

from .kernel_tables import IndexComponent, Parts, Step, Steps, count_points


@dataclass(frozen=True, slots=True)
class Work:
    """A plan's nest, prepared for launches."""

    # See the module's docstring. The chunks of a block are excluded: a launch chooses their width.
    tuples: Steps
    row: Steps
    destination_steps: Steps
    parts: Parts  # the components of an index tuple
    block: int  # contiguous bytes moved per point of the row; 0 if the call moves nothing
    entries: int  # number of tuples that move something
    destinations: int  # number of distinct destinations of a scatter
    most_updates: int  # of a destination
    # The loops over all index tuples, in row-major order. Empty if the call checks no indices. A
    # single tuple is one loop of one step.
    check_steps: Steps
    copy_steps: Steps  # the loops that copy the data to the result
    # Contiguous bytes copied per point of the copy; 0 if nothing is copied.
    copy_block: int

    def chunks(self, width: int) -> Steps:
        """Return the row with its blocks split into chunks of `width` bytes."""
        return with_chunks(self.row, self.block, width)


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def work_of(plan: Plan) -> Work:
    """Return the work of a plan for a device."""
    call, nest, program = plan.call, plan.nest, plan.program
    from_end = call.negative and call.indices.dtype.kind == "i"
    parts = tuple(_part(component, from_end) for component in nest.components)
    tuples = _steps(nest.loops[: nest.line + 1])
    sizes: list[int] = [part.size for part in parts]
    to: Steps = ()
    if call.operator.scatters:
        tuples, parts, sizes = _numbered(tuples, parts)
        moved = tuple(Step(step.extent, data=step.data) for step in tuples if step.data)
        to = (*moved, *(Step(part.size, data=part.stride) for part in parts))
    _, checks, components, _ = program.checks
    _, copy, _, copy_block = program.copy
    return Work(
        tuples=tuples,
        row=_steps(nest.loops[nest.line + 1 :]),
        destination_steps=() if 0 in sizes else tuple(step for step in to if step.extent > 1),
        parts=parts or tuple(_part(Component(*c), from_end) for c in components),
        block=nest.block,
        entries=count_points(tuples),
        destinations=prod(sizes),
        most_updates=prod(step.extent for step in tuples if not step.data),
        check_steps=tuple(Step(*loop) for loop in checks) if components else (),
        copy_steps=_steps(Loop(*loop) for loop in copy),
        copy_block=copy_block,
    )


def _steps(loops: object) -> Steps:
    return tuple(Step(*loop) for loop in loops if loop[0] != 1)  # type: ignore[attr-defined]


def _part(component: Component, from_end: bool) -> IndexComponent:
    return IndexComponent(*component, destination=0, from_end=component.size if from_end else 0)


def _numbered(tuples: Steps, parts: Parts) -> tuple[Steps, Parts, list[int]]:
    """Return numbered loops and components, and the radices of the destination numbers.

    Destinations, and the updates of each destination, are numbered with mixed radices. The last
    digit varies fastest.
    """
    sizes = [*(step.extent for step in tuples if step.data), *(part.size for part in parts)]
    destination_strides = iter(_strides(sizes))
    positions = iter(_strides([step.extent for step in tuples if not step.data]))
    tuples = tuple(
        step._replace(destination=next(destination_strides))
        if step.data
        else step._replace(position=next(positions))
        for step in tuples
    )
    return (
        tuples,
        tuple(part._replace(destination=next(destination_strides)) for part in parts),
        sizes,
    )


def _strides(sizes: list[int]) -> list[int]:
    return [prod(sizes[k + 1 :]) for k in range(len(sizes))]


def with_chunks(steps: Steps, block: int, width: int) -> Steps:
    """Return loops whose points are chunks of a contiguous block."""
    if block == width:
        return steps
    return (*steps, Step(block // width, data=width, moved=width))


def unaddressable(call: Call, work: Work) -> int:
    """Return the first component that clip or wrap cannot resolve (size 0), or -1."""
    if call.mode not in MOVING or not work.check_steps:
        return -1
    empty = [c for c, part in enumerate(work.parts) if part.size == 0]
    return empty[0] if empty else -1


def index_strides(work: Work) -> Shape:
    """Return all steps between indices, in bytes."""
    steps = (step.index for step in (*work.tuples, *work.check_steps))
    return (*steps, *(part.offset for part in work.parts))
