"""Invalid indices: the record that kernels leave on the device, and what is raised for it.

In mode "raise" a scatter's indices are checked by a launch of their own; what is launched behind it
looks at the record first and writes nothing unless it is clean. So the call waits for the device
once, at its end. A gather checks while it moves, for nothing is promised of its result then.
"""

from __future__ import annotations

import struct

from ..callbacks import raise_invalid
from .device import Buffer
from .launches import Call
from .loops import unaddressable

# ``Record`` of kernels/nest.cuh: count, inverse, found, component, value.
_RECORD = struct.Struct("=QQQQq")
RECORD_BYTES = _RECORD.size


def new_record(call: Call) -> Buffer | None:
    """Return a clean record where the call can raise, else None."""
    if call.plan.signature.mode != "raise" or not call.work.checks:
        return None
    return call.cleared(RECORD_BYTES)


def address(record: Buffer | None) -> int:
    """Return what kernels are told: the record's address, or null."""
    return 0 if record is None else record.address


def check(call: Call, record: Buffer, only: int = -1) -> None:
    """Check every index tuple, or one component of each."""
    _launch("check", call, record, only)


def find_first(call: Call, record: Buffer, only: int = -1) -> None:
    """Read the first invalid tuple that a check has found again, for the sentence about it."""
    _launch("first", call, record, only)


def _launch(name: str, call: Call, record: Buffer, only: int) -> None:
    parts = call.work.parts if only < 0 else call.work.parts[only : only + 1]
    steps = tuple(step for step in call.work.checks if step.extent != 1)
    macros = call.index_macros("raise")
    call.launch_nest(name, (record.address, call.indices), steps, parts, macros)


def raise_found(call: Call, record: Buffer | None) -> None:
    """Wait for the device, and raise IndexError if the record holds an invalid index."""
    if record is not None and _read(call, record)[0]:
        _raise_first(call, record)


def refuse_unaddressable(call: Call) -> None:
    """Raise IndexError where clip or wrap have no place to go to, and there is an index."""
    only = unaddressable(call.plan.signature, call.work)
    if only >= 0:
        _raise_first(call, call.cleared(RECORD_BYTES), only)


def _read(call: Call, record: Buffer) -> tuple[int, ...]:
    fields: tuple[int, ...] = _RECORD.unpack(call.device.read(record, RECORD_BYTES))
    return fields


def _raise_first(call: Call, record: Buffer, only: int = -1) -> None:
    """Find the first invalid index in row-major order, and raise IndexError for it."""
    call.device.clear(record, RECORD_BYTES)
    check(call, record, only)
    find_first(call, record, only)
    _, inverse, found, component, value = _read(call, record)
    # Not found: another stream has changed the indices meanwhile.
    position = ~inverse & (1 << 64) - 1 if found else -1
    raise_invalid(call.plan, position, component + max(only, 0), value)
