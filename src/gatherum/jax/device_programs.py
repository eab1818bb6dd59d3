"""Programs for XLA's calls on CUDA devices, made when a call first runs on a device.

A call contains a description of itself as text, so an executable also runs in another process, on a
device of any architecture.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._plans.plans import Plan, build
from gatherum._system import native
from gatherum.cuda import cub, elementary, nvidia, orders, plan_launches, sorted_updates
from gatherum.cuda import driver as cuda_driver
from gatherum.cuda.device import Pairs, Widths
from gatherum.cuda.device_nests import device_nest, unaddressable
from gatherum.cuda.programs import WIDEST, Clear, Launch, Placement, Sort

from . import errors as jax_errors

_Loaded: TypeAlias = "native.DeviceProgram | None"
# How a description uses the order of a scatter's updates.
SORT, SORTED = "sort", "sorted"
_FIELDS = ("op", "axis", "reduction", "include_self", "mode", "negative")


def describe(plan: Plan, order: str = "") -> str:
    """Return a string from which `make` can create the plan again.

    `order` is `SORT` to sort the updates of a scatter, `SORTED` for a scatter whose updates are
    sorted, and otherwise empty.
    """
    call = plan.call
    attributes = call.attributes._asdict()
    operands = [operand for operand in (call.data, call.indices, call.updates) if operand]
    return json.dumps(
        {
            "attributes": [attributes[name] for name in _FIELDS],
            "operands": [(operand.shape, operand.dtype.name) for operand in operands],
            "order": order,
        }
    )


def sorting_plan(plan: Plan) -> Plan | None:
    """Return a plan with the order of a scatter's updates, or None if the scatter needs no order.

    Scatters with the same indices have the same sorting plan, for all values and reductions. Single
    items are sorted together with their destinations, so scatters of single items have no separate
    order.
    """
    call, nest = plan.call, device_nest(plan)
    sorts = unaddressable(plan) < 0 and plan_launches.sorts(plan)
    if (
        not sorts
        or sorted_updates.sorts_in_block(nest)
        or sorted_updates.carried_bytes_of(call, nest)
    ):
        return None
    single, updates = np.dtype(np.float32), call.updates.shape  # type: ignore[union-attr]
    data = call.data.shape
    if call.op == "scatter_slices" and call.axis == 0:
        data, updates = data[:1], call.indices.shape
    attributes = call.attributes._replace(reduction="add", include_self=False)
    specs = (ArraySpec.contiguous(shape, single) for shape in (data, updates))
    return build(Call(attributes, next(specs), call.indices, next(specs)))


def order_of(plan: Plan) -> tuple[int, Widths]:
    """Return how many updates the order of a scatter contains, and the widths of its arrays."""
    nest = device_nest(plan)
    return nest.entries, sorted_updates.widths_of(nest, 0)


def _plan(fields: dict[str, Any]) -> Plan:
    specs = (
        ArraySpec.contiguous(tuple(shape), np.dtype(name)) for shape, name in fields["operands"]
    )
    attributes = Attributes(**dict(zip(_FIELDS, fields["attributes"], strict=True)))
    return build(Call(attributes, *specs))


def recordable_scratch(plan: Plan, fill: bytes) -> int | None:
    """Return the size in bytes of a call's scratch memory, or None if XLA must not capture it.

    XLA keeps the results of a captured call for a replay, so a result must hold the scratch memory.
    A call that XLA may capture neither waits nor sorts. Raise NotImplementedError if this
    environment cannot run the call.
    """
    if unaddressable(plan) >= 0:
        return None
    placement = Placement(WIDEST, WIDEST, WIDEST, WIDEST, in_place=False)
    program = plan_launches.program_of(plan, placement, processors=1, fill=fill)
    if any(isinstance(step, Sort) for step in program.steps):
        check_sort(plan.call.op, plan.call.reduction)
    runs_alone = all(isinstance(step, Launch | Clear) for step in program.steps)
    return program.arena if runs_alone else None


def check_order(plan: Plan, reduction: str) -> None:
    """Raise NotImplementedError if this environment cannot sort the updates of a plan."""
    if not orders.writes_results(plan, are_adjacent=False):
        check_sort(plan.call.op, reduction)


def check_sort(op: str, reduction: str) -> None:
    """Raise NotImplementedError if this environment has no library that sorts."""
    try:
        cub.check_import()
    except ImportError as why:
        raise jax_errors.no_sort_on_device(op, reduction, why) from why


def make(
    description: str,
    words: bytes,
    fill: bytes,
    device_number: int,
    data: int,
    indices: int,
    updates: int,
    out: int,
    in_place: bool,
) -> tuple[_Loaded, _Loaded, int, int, int, int]:
    """Return the programs of a call on a device.

    The first program runs the call; it is None if every call raises IndexError. The second program
    is for a call that may raise, and finds the first invalid index. The first number is the
    component to which the components of the second program are relative. With an order, the other
    numbers are the sizes, in bytes, of the indices, the sorted keys and their payload.

    Parameters
    ----------
    description : str
        The call, as text: see `describe`; or the function, dtype and size of exp and log.
    words : bytes
        The core's program of the call; empty for exp and log.
    fill : bytes
        The item that a gather stores for an invalid index.
    device_number : int
        The number of the device.
    data, indices, updates, out : int
        The operands' alignments in bytes.
    in_place : bool
        Whether the result is written over the data.
    """
    driver = cuda_driver.open_driver()
    if not words:
        function, dtype, count = description.split()
        processors = nvidia.processors_of(driver, device_number)
        program = elementary.program_of(function, dtype, int(count), processors)
        return nvidia.loaded_program(driver, program, device_number), None, 0, 0, 0, 0
    fields = json.loads(description)
    plan, order, sizes = _plan(fields), fields["order"], (0, 0, 0)
    if bytes(plan.program) != words:
        raise jax_errors.other_program(plan.call.op)
    placement = Placement(data, indices, updates, out, in_place)
    processors, main, first = nvidia.processors_of(driver, device_number), None, None
    nowhere = unaddressable(plan)
    if order:
        length, widths = order_of(plan)
        main = (
            orders.program_of(plan, placement, processors, 0, are_adjacent=False)
            if order == SORT
            else plan_launches.ordered_program(plan, placement, processors, length, widths)
        )
        indices_spec = plan.call.indices
        nbytes = prod(indices_spec.shape) * indices_spec.dtype.itemsize
        sizes = nbytes, length * widths.key, length * widths.payload
    elif nowhere < 0:
        item = fill if plan.call.attributes.fills and any(fill) else b""
        main = plan_launches.program_of(plan, placement, processors, item)
    if order != SORTED and (nowhere >= 0 or plan.call.mode == "raise"):
        first = plan_launches.finding_program(plan, placement, processors, nowhere)
    loaded = (
        None if program is None else nvidia.loaded_program(driver, program, device_number)
        for program in (main, first)
    )
    return next(loaded), next(loaded), max(nowhere, 0), *sizes


class _Scratch(NamedTuple):
    """Scratch memory of a call, which XLA frees at the end of the call."""

    address: int

    def slice(self, start: int, nbytes: int) -> _Scratch:
        """Return a part of this memory."""
        return _Scratch(self.address + start)


class _Memory:
    """XLA's memory, for CUB's sort, which allocates its results first."""

    def __init__(self, allocate: Callable[[int], int], *results: int) -> None:
        self._allocate, self._results = allocate, [address for address in results if address]

    def allocate(self, nbytes: int, device: int, stream: int) -> _Scratch:
        """Return the memory of a result, or scratch memory."""
        if self._results:
            return _Scratch(self._results.pop(0))
        if (address := self._allocate(nbytes)) == 0:
            raise MemoryError("XLA has no scratch memory")
        return _Scratch(address)

    def sort(self, pairs: Pairs, device: int, stream: int) -> Pairs:
        """Sort pairs with CUB."""
        return cub.sort_with_cub(self, pairs, device, stream)


def sorter(
    allocate: Callable[[int], int],
    arena: int,
    device_number: int,
    stream: int,
    keys: int,
    payload: int,
) -> nvidia.Sorter:
    """Return the sort for one replay, whose scratch memory begins at `arena`.

    The results are written to the addresses `keys` and `payload`, or to scratch memory if these are
    0.
    """
    framework: Any = _Memory(allocate, keys, payload)
    return nvidia.sorter(framework, _Scratch(arena), device_number, stream)
