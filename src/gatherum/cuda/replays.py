"""Make the programs that the core replays without Python."""

from __future__ import annotations

from gatherum._plans.plans import Plan
from gatherum._system import native

from . import nvidia, sorted_updates
from .device_nests import device_nest, unaddressable
from .driver import open_driver
from .plan_launches import ordered_program, program_of
from .programs import Placement


def make_program(
    plan: Plan, device_number: int, is_ordered: bool, *alignments: int
) -> native.DeviceProgram | None:
    """Return the program of a plan on a device, or None if the core cannot run the call.

    The alignments are those of data, indices, updates and the result, in bytes. If the updates are
    already sorted, the program reads the sorted keys instead of the indices.
    """
    if unaddressable(plan) >= 0:  # every call raises an error
        return None
    driver = open_driver()
    data, indices, updates, out = alignments
    placement = Placement(data, indices, updates, out, in_place=False)
    processors, nest = nvidia.processors_of(driver, device_number), device_nest(plan)
    if is_ordered:
        widths = sorted_updates.widths_of(nest, 0)
        program = ordered_program(plan, placement, processors, nest.entries, widths)
    else:
        program = program_of(plan, placement, processors)
    return nvidia.loaded_program(driver, program, device_number) if driver.replays else None
