"""A program of launches, which any device can run at any addresses.

A program contains no address. Its kernels' arguments have gaps. When the program runs, a patch
writes the address of a **slot** into each gap. The first four slots are the operands of the call;
the next ones are scratch memory and the results of sorts. So a program is recorded once for all
calls with the same plan and the same `Placement`.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import gcd
from typing import NamedTuple, TypeAlias

from .device import Device, Kernel, Pairs, Widths

# The greatest alignment that kernels distinguish.
WIDEST = 16
# Slots of the operands. If the updates of a scatter are sorted already, `INDICES` is the slot of
# the sorted keys. If the updates are weighted rows of `UPDATES`, `ROWS` and `WEIGHTS` are the row
# and the weight of each update.
DATA, INDICES, UPDATES, OUT, PAYLOAD, ROWS, WEIGHTS = range(7)
OPERANDS = 4
# Scratch memory begins at multiples of this number of bytes.
SCRATCH_ALIGNMENT = 256

# Addresses of data, indices, updates and out; 0 for a missing operand.
Addresses: TypeAlias = tuple[int, int, int, int]


class Placement(NamedTuple):
    """Everything about the operands' addresses that a program depends on.

    The alignments are powers of two, at most `WIDEST`.
    """

    data: int
    indices: int
    updates: int
    out: int
    in_place: bool  # whether a scatter's `out` is its data

    @classmethod
    def of(cls, addresses: Addresses, in_place: bool) -> Placement:
        """Return the placement of operands that have these addresses."""
        data, indices, updates, out = map(gcd, repeat(WIDEST), addresses)
        return cls(data, indices, updates, out, in_place)


class Slot(NamedTuple):
    """An address that is known when a program runs, and a distance from it in bytes."""

    number: int
    alignment: int = WIDEST  # of the address
    distance: int = 0


Field: TypeAlias = "int | Slot"


class Patch(NamedTuple):
    """A gap in a kernel's arguments: its offset in bytes, and the slot that fills it."""

    offset: int
    slot: int
    distance: int


class Arguments(NamedTuple):
    """The struct that a kernel takes, with zeros in its gaps."""

    content: bytes
    patches: tuple[Patch, ...] = ()

    @classmethod
    def of(cls, fields: Iterable[Field], tail: bytes = b"") -> Arguments:
        """Return a struct of 64-bit fields, signed or unsigned, followed by other bytes."""
        words, patches = [], []
        for i, field in enumerate(fields):
            if isinstance(field, Slot):
                patches.append(Patch(8 * i, field.number, field.distance))
            words.append(0 if isinstance(field, Slot) else field & _WORD)
        return cls(struct.pack(f"={len(words)}Q", *words) + tail, tuple(patches))

    def field(self, number: int) -> int:
        """Return the value of a 64-bit field."""
        return int.from_bytes(self.content[8 * number : 8 * number + 8], sys.byteorder)

    def with_addresses(self, addresses: Sequence[int]) -> bytes:
        """Return the struct with the addresses of all slots."""
        content = bytearray(self.content)
        for offset, slot, distance in self.patches:
            struct.pack_into("=Q", content, offset, addresses[slot] + distance)
        return bytes(content)


_WORD = (1 << 64) - 1


class Launch(NamedTuple):
    """A step that starts a kernel."""

    kernel: Kernel
    grid: int
    block: int
    arguments: Arguments


class Clear(NamedTuple):
    """A step that sets the first bytes of scratch memory to zero."""

    slot: int
    nbytes: int


class Sort(NamedTuple):
    """A step that sorts pairs by key, stably, and sets the slots of the results."""

    pairs: tuple[int, int]  # the slots of keys and payload
    results: tuple[int, int]
    length: int
    widths: Widths


class Read(NamedTuple):
    """A step that waits for the stream and reads the first bytes of scratch memory."""

    slot: int
    nbytes: int


Step: TypeAlias = Launch | Clear | Sort | Read


class Scratch(NamedTuple):
    """Scratch memory: its slot, its size in bytes, and its offset in a common allocation."""

    slot: int
    nbytes: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """The steps of a call in order, and their scratch memory. At most one step reads.

    Programs are equal only to themselves, so that a table finds them quickly.
    """

    steps: tuple[Step, ...]
    scratch: tuple[Scratch, ...]
    slots: int
    arena: int = 0  # bytes of a common allocation of all scratch memory


class Recorder:
    """Records a program. It has the same methods as a device, with slots in place of addresses.

    The core can only replay programs with at most `WEIGHTS` + 1 operands.
    """

    def __init__(self, operands: int = OPERANDS) -> None:
        self._steps: list[Step] = []
        self._scratch: list[Scratch] = []
        self._slots = operands
        self._arena = 0

    def program(self) -> DeviceProgram:
        """Return the steps recorded so far."""
        return DeviceProgram(tuple(self._steps), tuple(self._scratch), self._slots, self._arena)

    def _new_slot(self) -> Slot:
        self._slots += 1
        return Slot(self._slots - 1)

    def allocate(self, nbytes: int) -> Slot:
        """Return scratch memory, which lasts until the last step."""
        slot = self._new_slot()
        self._scratch.append(Scratch(slot.number, nbytes, self._arena))
        self._arena += -(-nbytes // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        return slot

    def cleared(self, nbytes: int) -> Slot:
        """Return scratch memory set to zero."""
        slot = self.allocate(nbytes)
        self._steps.append(Clear(slot.number, nbytes))
        return slot

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: Arguments) -> None:
        """Record a launch."""
        self._steps.append(Launch(kernel, grid, block, arguments))

    def sort(self, keys: Slot, payload: Slot, length: int, widths: Widths) -> tuple[Slot, Slot]:
        """Record a sort. Return the sorted keys and payload."""
        results = self._new_slot(), self._new_slot()
        pairs = keys.number, payload.number
        self._steps.append(Sort(pairs, (results[0].number, results[1].number), length, widths))
        return results

    def read(self, slot: Slot, nbytes: int) -> None:
        """Record the read of the first bytes of scratch memory."""
        self._steps.append(Read(slot.number, nbytes))


def run_steps(
    device: Device,
    program: DeviceProgram,
    operands: tuple[int, ...],
    results: list[Pairs] | None = None,
) -> bytes:
    """Run a program step by step.

    Return the bytes that it reads, or an empty value if it reads none.

    The results of its sorts are appended to `results`.
    """
    buffers = {buffer.slot: device.allocate(buffer.nbytes) for buffer in program.scratch}
    addresses = [*operands, *(0 for _ in range(len(operands), program.slots))]
    for slot, buffer in buffers.items():
        addresses[slot] = buffer.address
    content = b""
    for step in program.steps:
        match step:
            case Launch(kernel, grid, block, arguments):
                device.launch(kernel, grid, block, arguments.with_addresses(addresses))
            case Clear(slot, nbytes):
                device.clear(buffers[slot], nbytes)
            case Read(slot, nbytes):
                content = device.read(buffers[slot], nbytes)
            case Sort((keys, payload), slots, length, widths):
                unsorted = Pairs(buffers.pop(keys), buffers.pop(payload), length, widths)
                pairs = device.sort(unsorted)
                for slot, buffer in zip(slots, pairs[:2], strict=True):
                    buffers[slot] = buffer
                    addresses[slot] = buffer.address
                if results is not None:
                    results.append(pairs)
    return content
