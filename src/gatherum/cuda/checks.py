"""Check indices on the device and raise errors for invalid ones.

In mode "raise", a separate launch checks the indices of a scatter and writes the result to a record
on the device. Later launches read the record first and write nothing if an index is invalid. So the
call waits for the device only once, at its end. The only launch of a small scatter does all of
this. A gather checks while it moves data, because its result is undefined if an index is invalid.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, NoReturn

from gatherum._plans.index_errors import raise_invalid
from gatherum._plans.plans import Plan

from .kernel_tables import count_points
from .programs import Slot
from .recording import CallRecording, Macros

# The most index tuples that one block checks, 16 for each of its threads. Not measured. Such a
# check saves the call that sets the record to zero. On the host, this call is about as long as a
# launch.
MOST_CHECKED_BY_BLOCK = 4096


class Record(NamedTuple):
    """``Record`` of kernels/nest.cuh, which describes it."""

    invalid_tuples: int
    inverse_position: int
    found: int
    component: int
    value: int


_RECORD = struct.Struct("=QQQQq")
RECORD_BYTES = _RECORD.size


def raises(recording: CallRecording) -> bool:
    """Return True if a call raises an error for an invalid index."""
    return recording.plan.call.mode == "raise" and bool(recording.nest.check_loops)


def new_record(recording: CallRecording, cleared: bool = True) -> Slot | None:
    """Return a record, or None if the call cannot raise. Only a cleared record has any content."""
    if not raises(recording):
        return None
    recorder = recording.recorder
    return recorder.cleared(RECORD_BYTES) if cleared else recorder.allocate(RECORD_BYTES)


def check_before_writing(recording: CallRecording) -> Slot | None:
    """Check every index of a scatter before it writes.

    Return the record, or None if the call cannot raise. If there are few indices, one block checks
    them and fills the record, so nothing clears it.
    """
    few = 0 < count_points(recording.nest.check_loops) <= MOST_CHECKED_BY_BLOCK
    record = new_record(recording, cleared=not few)
    if record is not None:
        check_indices(recording, record, one_block=few)
    return record


def or_null(slot: Slot | None) -> int | Slot:
    """Return a slot, or a null address if the slot is None."""
    return 0 if slot is None else slot


def check_indices(
    recording: CallRecording, record: Slot, only_component: int = -1, one_block: bool = False
) -> None:
    """Check every index tuple, or only one component of every tuple.

    Several blocks add to a cleared record. One block fills a record.
    """
    _launch("check", recording, record, only_component, {"ONE_BLOCK": int(one_block)})


def read_record(recording: CallRecording, record: Slot | None) -> None:
    """Wait for the device and read the record."""
    if record is not None:
        recording.recorder.read(record, RECORD_BYTES)


def find_first_invalid(recording: CallRecording, only_component: int = -1) -> None:
    """Find the first invalid tuple again and record it for the error message."""
    record = recording.recorder.cleared(RECORD_BYTES)
    check_indices(recording, record, only_component)
    find_component(recording, record, only_component)
    read_record(recording, record)


def find_component(recording: CallRecording, record: Slot, only_component: int = -1) -> None:
    """Record the invalid component, and its value, at the position that a check has recorded."""
    _launch("first", recording, record, only_component)


def _launch(
    kernel_name: str,
    recording: CallRecording,
    record: Slot,
    only_component: int,
    macros: Macros | None = None,
) -> None:
    nest = recording.nest
    components = (
        nest.components
        if only_component < 0
        else nest.components[only_component : only_component + 1]
    )
    loops = tuple(loop for loop in nest.check_loops if loop.extent != 1)
    macros = recording.index_macros("raise") | (macros or {})
    most_blocks = 1 if macros.get("ONE_BLOCK") else None
    recording.launch_nest(
        kernel_name,
        (record, recording.indices),
        loops,
        components,
        macros,
        most_blocks=most_blocks,
    )


def is_invalid(record: bytes) -> bool:
    """Return True if a record holds an invalid index. A call that cannot raise has no record."""
    return bool(record) and Record(*_RECORD.unpack(record)).invalid_tuples != 0


def raise_first(plan: Plan, record: bytes, only_component: int = -1) -> NoReturn:
    """Raise IndexError for the invalid index that `find_first_invalid` has recorded."""
    first = Record(*_RECORD.unpack(record))
    # Not found: another stream has changed the indices meanwhile.
    position = ~first.inverse_position & (1 << 64) - 1 if first.found else -1
    raise_invalid(plan, position, first.component + max(only_component, 0), first.value)
