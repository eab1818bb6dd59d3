"""Describe the launches, the scratch memory and the minimum time of a plan on a device."""

from __future__ import annotations

from typing import NamedTuple

from gatherum._model.operators import find_operator
from gatherum._plans.plans import Description, Plan, planned

from .device import Kernel
from .device_nests import unaddressable
from .driver import LEGACY_STREAM, open_driver
from .launch_sizes import WARP
from .plan_launches import program_of, scratch_bytes, usual_placement
from .programs import Launch, Sort
from .radix_sort import SORT_KERNELS

# Maps the launch that determines the choice to the reason for the plan's launches.
_REASONS = {
    "fold_small": "the scatter is small: each block sorts all updates by destination",
    "scatter_small": "the scatter is small: each block sorts all updates by destination",
    "fold_exact": "the updates are sorted by destination, then added up exactly",
    "sort": "the updates are sorted by destination, then folded in order",
    "sorted_keys": "the updates are sorted by destination, then folded in order",
    "scatter_lines": "a block finds the last updates of each line",
    "winners": "a table of all destinations stores the last update of each destination",
    "fold_table": "the order of folding integers does not matter",
    "fold_atomic": "the order of folding integers does not matter",
    "scatter": "no two updates have the same destination",
    "gather": "every item of the result is read independently",
}
# Maps each kernel to the purpose of its launch. In a scatter, `gather` copies the data.
_PURPOSES = {
    "check": "checks every index",
    "gather": "moves the items that the indices address",
    "copy": "copies the data",
    "winners": "finds the last update of each destination",
    "scatter": "moves the updates",
    "keys": "computes the destination number of each update",
    "sorted_keys": "computes the destination number of each update, and sorts the updates by it",
    "sort": "sorts the updates by destination: {sorter}",
    "scatter_lines": "moves the last update of each destination, line by line",
    "scatter_sorted": "moves the last update of each destination",
    "fold": "folds each destination's updates in order, by a thread",
    "fold_long": "folds destinations with more than {more_than} updates, by a {group}",
    "fold_exact": "adds up each destination's updates without rounding, by a thread",
    "fold_exact_long": "folds destinations with more than {more_than} updates, by a {group}",
    "fold_small": "sorts the updates, folds those of each destination, copies the rest",
    "scatter_small": "sorts the updates, moves the last of each destination, copies the rest",
    "fold_atomic": "folds each update directly into its destination",
    "fold_table": "folds the updates of each block in shared memory, then into the destinations",
}
# The number of the field `more_than` in the arguments that segments.cuh defines.
_MORE_THAN = 4


def _line(launch: Launch, copies: bool) -> str:
    """Return the line that describes a launch's purpose and variant."""
    name, macros = launch.kernel.name, dict(launch.kernel.macros)
    purpose = _PURPOSES["copy" if copies else name]
    if "GROUP_THREADS" in macros:
        group = "warp" if macros["GROUP_THREADS"] == str(WARP) else "block"
        purpose = purpose.format(more_than=launch.arguments.field(_MORE_THAN), group=group)
    phrases = [purpose]
    if (index := macros.get("INDEX")) and not copies:
        order = " of the other byte order" if macros["INDEX_SWAPPED"] == "1" else ""
        phrases.append(f"{index} indices{order}")
    if "CHUNK_BYTES" in macros:
        phrases.append(f"{macros['CHUNK_BYTES']} bytes at a time")
    if "REDUCTION" in macros:
        phrases.append(f"{macros['REDUCTION']} of {macros['VALUE'].removeprefix('value_')}")
    if int(macros.get("CHUNK_ITEMS", 1)) > 1:
        phrases.append(f"{macros['CHUNK_ITEMS']} items at a time")
    return f"{name:<14} {'; '.join(phrases)}; {macros['OFFSET_BITS']}-bit offsets"


class Listing(NamedTuple):
    """The launches of a plan: names (including the sort), kernels, and a description of each."""

    steps: list[str]
    kernels: list[Kernel]
    lines: list[str]


def list_launches(plan: Plan) -> Listing:
    """Return the launches of a plan, for operands with the usual allocator alignment."""
    listing = Listing([], [], [])
    if _raises(plan):
        return listing
    for step in program_of(plan, usual_placement(plan), processors=1).steps:
        match step:
            case Launch(kernel) if kernel.name in SORT_KERNELS:
                listing.kernels.append(kernel)
                if listing.steps[-1:] != ["sort"]:
                    macros = dict(kernel.macros)
                    widths = int(macros["KEY_BYTES"]), int(macros["PAYLOAD_BYTES"])
                    _list_sort(listing, "launches for each digit of the keys", *widths)
            case Launch(kernel):
                copies = plan.call.operator.scatters and kernel.name == "gather"
                listing.lines.append(_line(step, copies))
                listing.steps.append(kernel.name)
                listing.kernels.append(kernel)
            case Sort(widths=widths):
                _list_sort(listing, "torch.sort, cupy.argsort or CUB", widths.key, widths.payload)
    return listing


def _list_sort(listing: Listing, sorter: str, key: int, payload: int) -> None:
    """Add a sort of keys and payload of the given sizes in bytes."""
    purpose = _PURPOSES["sort"].format(sorter=sorter)
    listing.steps.append("sort")
    listing.lines.append(f"{'sort':<14} {purpose}; keys of {key} bytes, payload of {payload} bytes")


def _raises(plan: Plan) -> bool:
    """Return True if every call raises IndexError: clip or wrap in a dimension of size 0."""
    return unaddressable(plan) >= 0


def describe(plan: Plan) -> Description:
    """Return a plan's launches in order, the reason for them, and the scratch in bytes."""
    listing = list_launches(plan)
    steps = listing.steps
    reason = next((why for name, why in _REASONS.items() if name in steps), "no data is moved")
    return Description(
        " + ".join(steps) or "none", reason, scratch_bytes(plan), tuple(listing.lines)
    )


def plan(op: object, data: object, indices: object, updates: object = None, /,
         **attributes: object) -> Plan:  # fmt: skip
    """Return the plan of a call on a device, like `gatherum.plan` for arrays on a device.

    Parameters
    ----------
    op, data, indices, updates, **attributes
        As in `gatherum.plan`. Operands may be descriptions ``(shape, dtype)``.

    Returns
    -------
    Plan
        The plan. `algorithm` names the launches in order; `scratch` is the device memory used.

    Examples
    --------
    >>> p = gatherum.cuda.plan("gather", ((4, 8), "f4"), ((3,), "i8"), mode="clip")
    >>> p.device, p.algorithm, p.scratch
    ('cuda', 'gather', 0)
    """
    return planned(find_operator(op), data, indices, updates, dict(attributes), "cuda")


_COPIED_BYTES = 1 << 28
_COPIES = 5


def copy_bandwidth(device_number: int = 0) -> float:
    """Return the bandwidth of device copies in bytes per second, read plus write.

    The result is the best of several copies. The function briefly allocates half a gigabyte and
    waits for the device.
    """
    driver = open_driver()
    stream = LEGACY_STREAM
    with driver.on(device_number):
        source, target = (driver.allocate(_COPIED_BYTES, stream) for _ in range(2))
        try:
            seconds = [
                driver.time_copy(source, target, _COPIED_BYTES, stream) for _ in range(_COPIES)
            ]
        finally:
            for address in (source, target):
                driver.free(address, stream)
    return 2 * _COPIED_BYTES / min(seconds)
