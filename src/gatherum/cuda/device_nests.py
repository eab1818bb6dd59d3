"""Split a plan's nest into the loops that the kernels of a device need.

    tuple_loops         the loops over index tuples, which read indices
    row_loops           the inner loops, which do not read indices, and the chunks of a contiguous
                        block
    destination_loops   the destinations of a scatter: the tuple loops that move the data, and the
                        components

Two tuples have the same destination if they agree in the loops and components of
`destination_loops`. The other tuple loops do not move the data. These loops are the ordered fold:
their points are the updates of a destination in row-major order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._model.nests import Component, Loop
from gatherum._plans.plans import Plan
from gatherum._system import native

from .kernel_tables import DeviceComponent, DeviceComponents, DeviceLoop, DeviceLoops, count_points


@dataclass(frozen=True, slots=True)
class DeviceNest:
    """A plan's nest, prepared for launches."""

    # See the module's docstring. The chunks of a block are excluded: a launch chooses their width.
    tuple_loops: DeviceLoops
    row_loops: DeviceLoops
    destination_loops: DeviceLoops
    components: DeviceComponents  # of an index tuple
    block: int  # contiguous bytes moved per point of the row; 0 if the call moves nothing
    entries: int  # number of tuples that move something
    destinations: int  # number of distinct destinations of a scatter
    most_updates: int  # of a destination
    # The loops over all index tuples, in row-major order. Empty if the call checks no indices. For
    # a single tuple, there is one loop with one step.
    check_loops: DeviceLoops
    copy_loops: DeviceLoops  # the loops that copy the data to the result
    # Contiguous bytes copied per point of the copy; 0 if nothing is copied.
    copy_block: int

    def row_chunk_loops(self, chunk_bytes: int) -> DeviceLoops:
        """Return the loops of the row with its blocks split into chunks of `chunk_bytes` bytes."""
        return with_chunks(self.row_loops, self.block, chunk_bytes)


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def device_nest(plan: Plan) -> DeviceNest:
    """Return the nest of a plan for a device."""
    call, nest, program = plan.call, plan.nest, plan.program
    from_end = call.negative and call.indices.dtype.kind == "i"
    components = tuple(_device_component(component, from_end) for component in nest.components)
    tuples = _device_loops(nest.loops[: nest.line + 1])
    radices: list[int] = [component.size for component in components]
    destinations: DeviceLoops = ()
    if call.operator.scatters:
        tuples, components, radices = _numbered(tuples, components)
        moving = tuple(DeviceLoop(loop.extent, data=loop.data) for loop in tuples if loop.data)
        indexed = (DeviceLoop(each.size, data=each.stride) for each in components)
        destinations = (*moving, *indexed)
    _, checks, checked, _ = program.checks
    _, copy, _, copy_block = program.copy
    return DeviceNest(
        tuple_loops=tuples,
        row_loops=_device_loops(nest.loops[nest.line + 1 :]),
        destination_loops=()
        if 0 in radices
        else tuple(loop for loop in destinations if loop.extent > 1),
        components=components or tuple(_device_component(Component(*c), from_end) for c in checked),
        block=nest.block,
        entries=count_points(tuples),
        destinations=prod(radices),
        most_updates=prod(loop.extent for loop in tuples if not loop.data),
        check_loops=tuple(DeviceLoop(*loop) for loop in checks) if checked else (),
        copy_loops=_device_loops(Loop(*loop) for loop in copy),
        copy_block=copy_block,
    )


def _device_loops(loops: Iterable[Loop]) -> DeviceLoops:
    """Return loops without destination numbers, except loops of one step."""
    return tuple(DeviceLoop(*loop) for loop in loops if loop.extent != 1)


def _device_component(component: Component, from_end: bool) -> DeviceComponent:
    return DeviceComponent(*component, destination=0, from_end=component.size if from_end else 0)


def _numbered(
    tuples: DeviceLoops, components: DeviceComponents
) -> tuple[DeviceLoops, DeviceComponents, list[int]]:
    """Return numbered loops and components, and the radices of the destination numbers.

    Destinations, and the updates of each destination, are numbered with mixed radices. The last
    digit varies fastest.
    """
    radices = [loop.extent for loop in tuples if loop.data]
    radices += [component.size for component in components]
    destination_strides = iter(_strides(radices))
    positions = iter(_strides([loop.extent for loop in tuples if not loop.data]))
    tuples = tuple(
        loop._replace(destination=next(destination_strides))
        if loop.data
        else loop._replace(position=next(positions))
        for loop in tuples
    )
    numbered = (each._replace(destination=next(destination_strides)) for each in components)
    return tuples, tuple(numbered), radices


def _strides(radices: list[int]) -> list[int]:
    return [prod(radices[k + 1 :]) for k in range(len(radices))]


def with_chunks(loops: DeviceLoops, block: int, chunk_bytes: int) -> DeviceLoops:
    """Return loops whose points are chunks of a contiguous block."""
    if block == chunk_bytes:
        return loops
    return (*loops, DeviceLoop(block // chunk_bytes, data=chunk_bytes, moved=chunk_bytes))


def unaddressable(plan: Plan) -> int:
    """Return the first component that clip or wrap cannot resolve (size 0), or -1."""
    nest = device_nest(plan)
    if plan.call.mode not in MOVING or not nest.check_loops:
        return -1
    empty = [c for c, component in enumerate(nest.components) if component.size == 0]
    return empty[0] if empty else -1


def index_strides(nest: DeviceNest) -> Shape:
    """Return all steps between indices, in bytes."""
    steps = (loop.index for loop in (*nest.tuple_loops, *nest.check_loops))
    return (*steps, *(component.offset for component in nest.components))
