"""Check indices on the device and raise errors for invalid ones.

In mode "raise", a separate launch checks the indices of a scatter and writes the result to a record
on the device. Later launches read the record first and write nothing if an index is invalid. So the
call waits for the device only once, at its end. A gather checks while it moves data, because its
result is undefined if an index is invalid.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, NoReturn

from gatherum._plans.index_errors import raise_invalid
from gatherum._plans.plans import Plan

from .programs import Slot
from .recording import CallRecording


class Record(NamedTuple):
    """``Record`` of kernels/nest.cuh, which describes it."""

    invalid_tuples: int
    inverse_position: int
    found: int
    component: int
    value: int


_RECORD = struct.Struct("=QQQQq")
RECORD_BYTES = _RECORD.size


def new_record(recording: CallRecording) -> Slot | None:
    """Return a cleared record, or None if the call cannot raise."""
    if recording.plan.call.mode != "raise" or not recording.nest.check_loops:
        return None
    return recording.recorder.cleared(RECORD_BYTES)


def or_null(slot: Slot | None) -> int | Slot:
    """Return a slot, or a null address if the slot is None."""
    return 0 if slot is None else slot


def check_indices(recording: CallRecording, record: Slot, only_component: int = -1) -> None:
    """Check every index tuple, or only one component of every tuple."""
    _launch("check", recording, record, only_component)


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


def _launch(kernel_name: str, recording: CallRecording, record: Slot, only_component: int) -> None:
    nest = recording.nest
    components = (
        nest.components
        if only_component < 0
        else nest.components[only_component : only_component + 1]
    )
    loops = tuple(loop for loop in nest.check_loops if loop.extent != 1)
    macros = recording.index_macros("raise")
    recording.launch_nest(kernel_name, (record, recording.indices), loops, components, macros)


def is_invalid(record: bytes) -> bool:
    """Return True if a record holds an invalid index. A call that cannot raise has no record."""
    return bool(record) and Record(*_RECORD.unpack(record)).invalid_tuples != 0


def raise_first(plan: Plan, record: bytes, only_component: int = -1) -> NoReturn:
    """Raise IndexError for the invalid index that `find_first_invalid` has recorded."""
    first = Record(*_RECORD.unpack(record))
    # Not found: another stream has changed the indices meanwhile.
    position = ~first.inverse_position & (1 << 64) - 1 if first.found else -1
    raise_invalid(plan, position, first.component + max(only_component, 0), first.value)
