"""Updates in order of their destination, and what is done with them: folds, and moves."""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import value_of
from ..signature import Signature
from . import tables
from .checks import address
from .device import Buffer, Kernel
from .launches import NARROW, THREADS, Call
from .movement import WIDEST, writing_mode
from .tables import Fields, Steps, points
from .work import Work

# Runs of more entries than this have a block of their own, where a row has no more items than
# that block has threads that fold. Both wait for a measurement on a device.
LONGEST = 64
FOLDERS = 32
LONG_THREADS = 128

_ATOMIC_VALUES = ("int32", "int64", "uint32", "uint64")
_ATOMIC_REDUCTIONS = ("add", "max", "min")


class Widths(NamedTuple):
    """Bytes of a key and of a payload, and the bits of a key that count."""

    key: int
    payload: int
    bits: int


class Sorted(NamedTuple):
    """Pairs of keys and payload in order."""

    keys: Buffer
    payload: Buffer
    widths: Widths


def widths_of(work: Work) -> Widths:
    """Return the widths for a call: keys number the destinations, and one more stands for none."""
    bits = max(work.destinations.bit_length(), 1)
    return Widths(4 if bits < 32 else 8, 4 if work.entries < 1 << 31 else 8, bits)


def sort(call: Call) -> Sorted:
    """Return the tuples in order of their destination, those of each in row-major order."""
    device, work, widths = call.device, call.work, widths_of(call.work)
    n = work.entries
    keys, payload = device.allocate(n * widths.key), device.allocate(n * widths.payload)
    macros = call.index_macros(writing_mode(call))
    macros |= {"KEY_WIDTH": widths.key, "PAYLOAD_WIDTH": widths.payload}
    first = call.indices, keys.address, payload.address, work.destinations
    call.launch_nest("keys", first, work.tuples, work.parts, **macros)
    return Sorted(*device.sort(keys, payload, n, *widths), widths)


def scatter_sorted(call: Call, guard: Buffer | None) -> None:
    """Move the last update of every destination."""
    width = call.alignment(WIDEST, call.work.block)
    row = call.work.chunks(width)
    total = call.work.entries * points(row)
    _launch(call, "scatter_sorted", sort(call), row, guard, [], total, WIDTH=width)


def fold(call: Call, guard: Buffer | None) -> None:
    """Fold the updates of every destination, in row-major order."""
    s, work = call.plan.signature, call.work
    item = s.data.dtype.itemsize
    row = work.chunks(item)
    pairs, items = sort(call), points(row)
    macros = {
        "VALUE": _value(s),
        "VALUE_ALIGN": call.alignment(item),
        "REDUCTION": s.reduction,
        "INCLUDE_SELF": int(s.include_self),
    }
    longest = LONGEST if items <= FOLDERS and work.entries > LONGEST else 0
    total = work.entries * items
    _launch(call, "fold", pairs, row, guard, [longest], total, **macros)
    if longest:
        macros["THREADS"] = LONG_THREADS
        candidates = -(-work.entries // longest)
        _launch(call, "fold_long", pairs, row, guard, [longest], candidates, **macros)


def _value(s: Signature) -> str:
    return f"value_{value_of(s.data.dtype).name}"


def _launch(
    call: Call,
    name: str,
    pairs: Sorted,
    row: Steps,
    guard: Buffer | None,
    more: Fields,
    total: int,
    **macros: object,
) -> None:
    """Launch a kernel whose arguments end with ``Sorted`` of kernels/sorted.cuh."""
    work, items = call.work, points(row)
    all_steps = work.to, work.tuples, row
    most = max(tables.reach(steps, (), WIDEST) for steps in all_steps)
    most = max(most, total, work.entries + LONGEST, work.destinations)
    bits, room = 32 if most < NARROW else 64, tables.room_for(all_steps)
    fields = [call.data, call.other, address(guard), total, *more]
    fields += [pairs.keys.address, pairs.payload.address, work.entries, work.destinations]
    for steps in all_steps:
        fields += tables.loops(steps, bits, room)
    fields += tables.divisor(items, bits)
    macros |= {"OFFSET_BITS": bits, "LOOPS": room}
    macros |= {"KEY_WIDTH": pairs.widths.key, "PAYLOAD_WIDTH": pairs.widths.payload}
    threads = LONG_THREADS if "THREADS" in macros else THREADS
    call.launch(Kernel.of(name, **macros), total, fields, threads=threads)


def may_be_atomic(s: Signature) -> bool:
    """Whether atomics on integers fold where the data lie, if these are aligned."""
    ordered = s.reduction not in _ATOMIC_REDUCTIONS or not s.include_self
    return not ordered and value_of(s.data.dtype).name in _ATOMIC_VALUES


def is_atomic(call: Call) -> bool:
    """Whether they do."""
    s = call.plan.signature
    item = s.data.dtype.itemsize
    return may_be_atomic(s) and call.alignment(item) == item


def fold_atomic(call: Call, guard: Buffer | None) -> None:
    """Fold integers where they lie."""
    s, work = call.plan.signature, call.work
    macros = call.index_macros(writing_mode(call))
    macros |= {"VALUE": _value(s), "REDUCTION": s.reduction}
    first = call.data, call.indices, call.other, address(guard)
    steps = (*work.tuples, *work.chunks(s.data.dtype.itemsize))
    call.launch_nest("fold_atomic", first, steps, work.parts, **macros)
