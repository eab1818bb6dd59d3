"""Programs of XLA's calls on CUDA devices, made when a call first runs on a device.

A call contains a description of itself as text, so an executable also runs in another process, on a
device of any architecture.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._plans.plans import Plan, build
from gatherum._system import native
from gatherum.cuda import cub, elementary, nvidia, plan_launches
from gatherum.cuda import driver as cuda_driver
from gatherum.cuda.device import Pairs
from gatherum.cuda.loops import unaddressable, work_of
from gatherum.cuda.programs import WIDEST, Clear, Launch, Placement, Sort

from . import errors as jax_errors

_Loaded: TypeAlias = "native.DeviceProgram | None"
_FIELDS = ("op", "axis", "reduction", "include_self", "mode", "negative")


def describe(plan: Plan) -> str:
    """Return the text from which `make` creates the plan again."""
    call = plan.call
    attributes = call.attributes._asdict()
    operands = [operand for operand in (call.data, call.indices, call.updates) if operand]
    return json.dumps(
        {
            "attributes": [attributes[name] for name in _FIELDS],
            "operands": [(operand.shape, operand.dtype.name) for operand in operands],
        }
    )


def _plan(description: str) -> Plan:
    fields = json.loads(description)
    specs = (
        ArraySpec.contiguous(tuple(shape), np.dtype(name)) for shape, name in fields["operands"]
    )
    attributes = Attributes(**dict(zip(_FIELDS, fields["attributes"], strict=True)))
    return build(Call(attributes, *specs))


def recordable_scratch(plan: Plan, fill: bytes) -> int | None:
    """Return the scratch memory of a call that XLA may capture and replay, in bytes, else None.

    XLA keeps the results of such a call for a replay, so a result must hold the scratch memory. The
    call neither waits nor sorts. Raise NotImplementedError if this environment cannot run the call.
    """
    if unaddressable(plan.call, work_of(plan)) >= 0:
        return None
    placement = Placement(WIDEST, WIDEST, WIDEST, WIDEST, in_place=False)
    program = plan_launches.program_of(plan, placement, processors=1, fill=fill)
    if any(isinstance(step, Sort) for step in program.steps):
        _check_sort(plan.call.op, plan.call.reduction)
    runs_alone = all(isinstance(step, Launch | Clear) for step in program.steps)
    return program.arena if runs_alone else None


def _check_sort(op: str, reduction: str) -> None:
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
) -> tuple[_Loaded, _Loaded, int]:
    """Return the programs of a call on a device.

    The first program runs the call; it is None if every call raises IndexError. The second one is
    for a call that may raise, and finds the first invalid index. The number is the component to
    which the second one's components are relative.

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
        return nvidia.loaded_program(driver, program, device_number), None, 0
    plan = _plan(description)
    if bytes(plan.program) != words:
        raise jax_errors.other_program(plan.call.op)
    placement = Placement(data, indices, updates, out, in_place)
    processors, main, first = nvidia.processors_of(driver, device_number), None, None
    nowhere = unaddressable(plan.call, work_of(plan))
    if nowhere < 0:
        item = fill if plan.call.attributes.fills and any(fill) else b""
        main = plan_launches.program_of(plan, placement, processors, item)
    if nowhere >= 0 or plan.call.mode == "raise":
        first = plan_launches.finder_of(plan, placement, processors, nowhere)
    loaded = (
        None if program is None else nvidia.loaded_program(driver, program, device_number)
        for program in (main, first)
    )
    return next(loaded), next(loaded), max(nowhere, 0)


class _Scratch(NamedTuple):
    """Scratch memory of a call, which XLA frees at the end of the call."""

    address: int

    def part(self, start: int, nbytes: int) -> _Scratch:
        """Return bytes of this memory."""
        return _Scratch(self.address + start)


class _Memory:
    """The memory of XLA, for CUB's sort."""

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate

    def allocate(self, nbytes: int, device: int, stream: int) -> _Scratch:
        """Return scratch memory."""
        if (address := self._allocate(nbytes)) == 0:
            raise MemoryError("XLA has no scratch memory")
        return _Scratch(address)

    def sort(self, pairs: Pairs, device: int, stream: int) -> Pairs:
        """Sort pairs with CUB."""
        return cub.radix_sort(self, pairs, device, stream)


def sorter(
    allocate: Callable[[int], int], arena: int, device_number: int, stream: int
) -> nvidia.Sorter:
    """Return the sort for one replay, whose scratch memory begins at `arena`."""
    framework: Any = _Memory(allocate)
    return nvidia.sorter(framework, _Scratch(arena), device_number, stream)
