"""Check and sort the indices of several calls once.

The **order** of a scatter is its updates sorted by destination: the sorted keys, and the number of
each update. Scatters with the same indices and destinations have the same order, for any data,
updates and reduction. While calls share results (`gatherum._plans.sharing`), the first
scatter that needs an order computes it, and later scatters fold with it. They do not check the
indices again, so they do not wait for the device.

If equal destinations are adjacent, as in the segments of a CSR matrix, the order is the order of
the updates, and nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from gatherum._model.call import ArraySpec
from gatherum._model.modes import MOVING
from gatherum._model.nests import Loop, collapse
from gatherum._plans.plans import Plan
from gatherum._plans.sharing import Shared
from gatherum._system import native

from . import checks, plan_launches, sorted_updates
from .device import Device, Pairs
from .device_nests import device_nest
from .driver import open_driver
from .programs import OPERANDS, OUT, PAYLOAD, WIDEST, DeviceProgram, Placement, Recorder, Slot


class SortPayload(NamedTuple):
    """The payload of a sort: updates, or update numbers if `update_bytes` is 0."""

    update_bytes: int
    address: Callable[[], int]  # returns the address of the updates
    identity: Hashable  # identifies the updates
    holder: object  # keeps the memory alive to which `identity` refers


def shares_order(count: int) -> bool:
    """Return True if scatters that share results share the order of this number of indices."""
    return count > sorted_updates.MOST_IN_BLOCK


POSITIONS = SortPayload(0, int, None, None)


class CallKey(NamedTuple):
    """A key for scatters with the same order. For each entry, only the last layout is kept."""

    entry: Hashable
    layout: Hashable


class SharedIndices(NamedTuple):
    """Indices in the memory of a device, and the results that calls on a stream share."""

    shared: Shared
    device_number: int
    stream: int
    address: int
    spec: ArraySpec
    holder: object  # keeps the memory alive
    call: CallKey | None = None

    def keep_adjacent(self) -> None:
        """Note that equal indices are adjacent along the last dimension."""
        self.shared.results["adjacent", self._memory] = self.holder

    def order(self, device: Device, plan: Plan) -> Pairs | None:
        """Return the order of a scatter, or None if it does not sort or sorts in one block.

        Raise IndexError as the scatter does.
        """
        if not plan_launches.sorts(plan) or sorted_updates.sorts_in_block(device_nest(plan)):
            self._note_call(None)
            return None
        return self.sorted_pairs(device, plan)

    def sorted_pairs(self, device: Device, plan: Plan, payload: SortPayload = POSITIONS) -> Pairs:
        """Return the pairs that a scatter sorts, or raise IndexError as the scatter does."""
        mode, memory = plan.call.mode, self._memory
        key = "order", memory, _order_key(plan), payload.identity
        found = self.shared.find(key)
        if found is not None and (found[0] or mode != "raise"):
            pairs: Pairs = found[1]
            self._note_call(pairs)
            return pairs
        are_adjacent = self.shared.find(("adjacent", memory)) is not None
        are_adjacent = are_adjacent and _stays_adjacent(plan)
        addresses = self.address, payload.address()
        pairs = _compute_pairs(device, plan, *addresses, payload.update_bytes, are_adjacent)
        if (keeper := self.keeper()) is not None:
            is_checked = mode == "raise"
            keeper.results[key] = is_checked, pairs, self.holder, payload.holder
            self._note_call(pairs)
        return pairs

    def keeper(self) -> Shared | None:
        """Return the object that keeps an order, or None if no later call can use the order."""
        keeper = self.shared.keeper(self.address)
        is_kept = keeper is not None and (keeper.address is None or not self._is_captured())
        return keeper if is_kept else None

    def _note_call(self, pairs: Pairs | None) -> None:
        """Let later calls with the same key find the order without a plan."""
        if self.call is None or (keeper := self.shared.keeper(self.address)) is None:
            return
        order = pairs and (self.stream, pairs.keys.address, pairs.payload.address)
        keeper.results[self.call.entry] = self.call.layout, order, pairs, self.holder

    @property
    def _memory(self) -> Hashable:
        return self.device_number, self.stream, self.address, self.spec

    def _is_captured(self) -> bool:
        """Return True if a graph captures the stream: the result exists only when it runs."""
        driver = open_driver()
        with driver.on(self.device_number):
            return driver.captures(self.stream)


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def _order_key(plan: Plan) -> Hashable:
    """Return everything that the order of a scatter depends on, except the values of indices."""
    call, nest = plan.call, device_nest(plan)
    loops = collapse(
        Loop(loop.extent, loop.destination, loop.index, 0) for loop in nest.tuple_loops
    )
    components = tuple(
        (each.size, each.offset, each.destination, each.from_end) for each in nest.components
    )
    mode = call.mode if call.mode in MOVING else "drop"
    return mode, tuple(loops), components, nest.entries, nest.destinations


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def _stays_adjacent(plan: Plan) -> bool:
    """Return True if adjacent indices lead to adjacent updates of the same destination."""
    nest = device_nest(plan)
    entries = [loop for loop in nest.tuple_loops if not loop.destination]
    return len(nest.components) == 1 and entries == list(nest.tuple_loops[-1:])


def _compute_pairs(
    device: Device, plan: Plan, indices: int, updates: int, carried_bytes: int, are_adjacent: bool
) -> Pairs:
    """Compute the pairs, or raise IndexError in mode "raise"."""
    placement = Placement(
        WIDEST, gcd(WIDEST, indices), gcd(WIDEST, updates), WIDEST, in_place=False
    )
    program = program_of(plan, placement, device.processors, carried_bytes, are_adjacent)
    if writes_results(plan, are_adjacent):
        nest = device_nest(plan)
        length, widths = nest.entries, sorted_updates.widths_of(nest, carried_bytes)
        keys, payload = (device.allocate(length * width) for width in widths[:2])
        record = device.run_program(program, (0, indices, updates, keys.address, payload.address))
        pairs = Pairs(keys, payload, length, widths)
    else:
        results: list[Pairs] = []
        record = device.run_program(program, (0, indices, updates, 0), results)
        (pairs,) = results
    if checks.is_invalid(record):
        plan_launches.raise_first(device, plan, placement, (0, indices, updates, 0))
    return pairs


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def program_of(
    plan: Plan, placement: Placement, processors: int, carried_bytes: int, are_adjacent: bool
) -> DeviceProgram:
    """Return the program that checks the indices and sorts the pairs.

    If it `writes_results`, it writes the pairs to the last two operands.
    """
    into = (Slot(OUT), Slot(PAYLOAD)) if writes_results(plan, are_adjacent) else None
    recorder = Recorder(PAYLOAD + 1 if into else OPERANDS)
    recording = plan_launches.recording_of(plan, placement, processors, recorder)
    record = checks.new_record(recording)
    if record:
        checks.check_indices(recording, record)
    if are_adjacent and into:
        sorted_updates.write_pairs(recording, carried_bytes, *into, in_block=False)
    else:
        sorted_updates.sort_updates(recording, carried_bytes, into)
    checks.read_record(recording, record)
    return recorder.program()


def writes_results(plan: Plan, are_adjacent: bool) -> bool:
    """Return True if launches write the sorted pairs, and False if a library sorts them.

    Equal destinations that are adjacent need no sort.
    """
    return are_adjacent or sorted_updates.sorts_in_launches(device_nest(plan))
