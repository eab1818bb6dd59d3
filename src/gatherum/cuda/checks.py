"""Check indices on the device and raise errors for invalid ones.

In mode "raise", a separate launch checks the indices of a scatter and writes the result to a record
on the device. Later launches read the record first and write nothing if an index is invalid. So the
call waits for the device only once, at its end. A gather checks while it moves data, because its
result is undefined if an index is invalid.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from gatherum._plans.index_errors import raise_invalid
from gatherum._plans.plans import Plan

from .execution import Execution
from .programs import Slot

# Layout of ``Record`` in kernels/nest.cuh: count, inverse, found, component, value.
_RECORD = struct.Struct("=QQQQq")
RECORD_BYTES = _RECORD.size


def new_record(run: Execution) -> Slot | None:
    """Return a cleared record if the call can raise, else None."""
    if run.plan.call.mode != "raise" or not run.work.check_steps:
        return None
    return run.program.cleared(RECORD_BYTES)


def or_null(slot: Slot | None) -> int | Slot:
    """Return a slot, or a null address for None."""
    return 0 if slot is None else slot


def check_indices(run: Execution, record: Slot, only: int = -1) -> None:
    """Check every index tuple, or only one component of every tuple."""
    _launch("check", run, record, only)


def read_record(run: Execution, record: Slot | None) -> None:
    """Wait for the device and read the record."""
    if record is not None:
        run.program.read(record, RECORD_BYTES)


def find_first(run: Execution, only: int = -1) -> None:
    """Find the first invalid tuple again and record it for the error message."""
    record = run.program.cleared(RECORD_BYTES)
    check_indices(run, record, only)
    search_first(run, record, only)
    read_record(run, record)


def search_first(run: Execution, record: Slot, only: int = -1) -> None:
    """Record the component and the value at the position that a check has recorded."""
    _launch("first", run, record, only)


def _launch(name: str, run: Execution, record: Slot, only: int) -> None:
    parts = run.work.parts if only < 0 else run.work.parts[only : only + 1]
    steps = tuple(step for step in run.work.check_steps if step.extent != 1)
    macros = run.index_macros("raise")
    run.launch_nest(name, (record, run.indices), steps, parts, macros)


def is_invalid(record: bytes) -> bool:
    """Return True if a record holds an invalid index. A call that cannot raise has no record."""
    return bool(record) and _RECORD.unpack(record)[0] != 0


def raise_first(plan: Plan, record: bytes, only: int = -1) -> NoReturn:
    """Raise IndexError for the invalid index that `find_first` has recorded."""
    _, inverse, is_found, component, value = _RECORD.unpack(record)
    # Not found: another stream has changed the indices meanwhile.
    position = ~inverse & (1 << 64) - 1 if is_found else -1
    raise_invalid(plan, position, component + max(only, 0), value)
