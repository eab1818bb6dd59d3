"""Check indices on the device and raise errors for invalid ones.

In mode "raise", a separate launch checks the indices of a scatter and writes the result to a record
on the device. Later launches read the record first and write nothing if an index is invalid. So the
call waits for the device only once, at its end. A gather checks while it moves data, because its
result is undefined if an index is invalid.
"""

from __future__ import annotations

import struct

from gatherum._plans.index_errors import raise_invalid

from .device import Buffer
from .execution import Execution
from .loops import unaddressable

# Layout of ``Record`` in kernels/nest.cuh: count, inverse, found, component, value.
_RECORD = struct.Struct("=QQQQq")
RECORD_BYTES = _RECORD.size


def new_record(run: Execution) -> Buffer | None:
    """Return a cleared record if the call can raise, else None."""
    if run.plan.call.mode != "raise" or not run.work.checks:
        return None
    return run.cleared(RECORD_BYTES)


def address(record: Buffer | None) -> int:
    """Return the record's address for kernels, or 0 (null)."""
    return 0 if record is None else record.address


def check_indices(run: Execution, record: Buffer, only: int = -1) -> None:
    """Check every index tuple, or only one component of every tuple."""
    _launch("check", run, record, only)


def find_first(run: Execution, record: Buffer, only: int = -1) -> None:
    """Find the first invalid tuple again and record it for the error message."""
    _launch("first", run, record, only)


def _launch(name: str, run: Execution, record: Buffer, only: int) -> None:
    parts = run.work.parts if only < 0 else run.work.parts[only : only + 1]
    steps = tuple(step for step in run.work.checks if step.extent != 1)
    macros = run.index_macros("raise")
    run.launch_nest(name, (record.address, run.indices), steps, parts, macros)


def raise_found(run: Execution, record: Buffer | None) -> None:
    """Wait for the device. Raise IndexError if the record holds an invalid index."""
    if record is not None and _read(run, record)[0]:
        _raise_first(run, record)


def refuse_unaddressable(run: Execution) -> None:
    """Raise IndexError if clip or wrap must resolve an index in a dimension of size 0."""
    only = unaddressable(run.plan.call, run.work)
    if only >= 0:
        _raise_first(run, run.cleared(RECORD_BYTES), only)


def _read(run: Execution, record: Buffer) -> tuple[int, ...]:
    fields: tuple[int, ...] = _RECORD.unpack(run.device.read(record, RECORD_BYTES))
    return fields


def _raise_first(run: Execution, record: Buffer, only: int = -1) -> None:
    """Find the first invalid index in row-major order and raise IndexError for it."""
    run.device.clear(record, RECORD_BYTES)
    check_indices(run, record, only)
    find_first(run, record, only)
    _, inverse, is_found, component, value = _read(run, record)
    # Not found: another stream has changed the indices meanwhile.
    position = ~inverse & (1 << 64) - 1 if is_found else -1
    raise_invalid(run.plan, position, component + max(only, 0), value)
