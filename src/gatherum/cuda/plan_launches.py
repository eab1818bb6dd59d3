"""Turn a plan into a program of launches, and run it.

A gather is one launch, and so are most small scatters (`small_scatters`). Other scatters are, in
order: a check of every index (mode "raise"); a copy of the data (unless it works in place); and one
of

- movement if no two tuples have the same destination: one launch;
- movement along lines, if a block finds the last updates of a line in shared memory: one launch;
- movement by a table of winners: find the last update of every destination, then move the winners;
- movement by a sort, if that table would be larger than the buffers of a sort;
- atomics for `add`, `max` and `min` of 32- and 64-bit integers, in shared memory first if there are
  few destinations;
- every other fold: sort the updates by destination, stably, then fold the segment of each
  destination in row-major order of the indices, or sum it exactly. A thread, a warp or a block
  folds a segment, depending on its length.

Only mode "raise" waits for the device.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple, NoReturn

from gatherum._model.call import Call
from gatherum._plans.plans import Plan
from gatherum._system import native

from . import checks, folds, movement, radix_sort, small_scatters, sorted_updates
from .device import Device, Pairs, Widths
from .device_nests import DeviceNest, device_nest, unaddressable
from .programs import (
    DATA,
    INDICES,
    OUT,
    PAYLOAD,
    UPDATES,
    WEIGHTS,
    WIDEST,
    Addresses,
    DeviceProgram,
    Placement,
    Recorder,
    Slot,
)
from .recording import CallRecording

# The size in bytes that a table of winners may always have, even in small calls. Not measured.
SMALL_TABLE_BYTES = 1 << 24


class Weights(NamedTuple):
    """Arrays that contain, for each update, the number of its row and its weight."""

    row_number_bytes: int
    row_numbers: int  # address
    weights: int  # address


def run(
    device: Device,
    plan: Plan,
    data: int,
    indices: int,
    updates: int,
    out: int,
    fill_item: bytes = b"",
    order: Pairs | None = None,
    weights: Weights | None = None,
) -> None:
    """Run a plan on a device's memory, or raise IndexError for an invalid index.

    Parameters
    ----------
    device : Device
        Device whose stream runs the call.
    plan : Plan
        Plan of the call, from the operands' shapes, dtypes and strides.
    data, indices, updates, out : int
        Addresses of the operands' first elements; a gather ignores `updates`. `out` has the layout
        of the plan's ``out``, or is in C order if the plan has none. If `out` is `data` with the
        same layout, a scatter works in place.
    fill_item : bytes
        The item that a gather stores for an invalid index in modes "fill" and "drop"; empty for
        zeros.
    order : Pairs, optional
        The updates of a scatter sorted by destination, with their numbers as the payload. The call
        then reads no indices and does not wait.
    weights : Weights, optional
        The row and the weight of each update, if the updates are weighted rows; only with `order`.

    Raises
    ------
    IndexError
        In mode "raise", if an index is invalid. The call waits for the stream. A scatter has then
        not written to `out`; the result of a gather is undefined. In modes "clip" and "wrap", if an
        index addresses a dimension of size 0.
    """
    if order is not None:
        _run_ordered(device, plan, (data, order.keys.address, updates, out), order, weights)
        return
    operands = data, indices, updates, out
    placement = Placement.of(operands, data == out and is_in_place(plan))
    component = unaddressable(plan)
    if component >= 0:
        raise_first(device, plan, placement, operands, component)
    record = device.run_program(program_of(plan, placement, device.processors, fill_item), operands)
    if checks.is_invalid(record):
        raise_first(device, plan, placement, operands)


def _run_ordered(
    device: Device, plan: Plan, operands: Addresses, order: Pairs, weights: Weights | None
) -> None:
    """Run a scatter whose updates are sorted. `operands` contains keys in place of indices."""
    data, _, _, out = operands
    placement = Placement.of(operands, data == out and is_in_place(plan))
    row_number_bytes, *weight_addresses = weights or (0,)
    ordered = order.length, order.widths, row_number_bytes
    program = ordered_program(plan, placement, device.processors, *ordered)
    device.run_program(program, (*operands, order.payload.address, *weight_addresses))


def is_in_place(plan: Plan) -> bool:
    """Return True if a scatter with `data` as `out` works in place.

    The strides of dimensions of size 1 have no effect, as in the core.
    """
    call = plan.call
    if not call.operator.scatters or call.out is None:
        return False
    steps = zip(call.data.shape, call.data.strides, call.out.strides, strict=True)
    return all(extent <= 1 or step == other for extent, step, other in steps)


def raise_first(
    device: Device, plan: Plan, placement: Placement, operands: Addresses, only_component: int = -1
) -> NoReturn:
    """Find the first invalid index in row-major order and raise IndexError for it."""
    program = finding_program(plan, placement, device.processors, only_component)
    checks.raise_first(plan, device.run_program(program, operands), only_component)


def finding_program(
    plan: Plan, placement: Placement, processors: int, only_component: int = -1
) -> DeviceProgram:
    """Return the program that records the first invalid index, or the first of one component."""
    recording = recording_of(plan, placement, processors, Recorder())
    checks.find_first_invalid(recording, only_component)
    return recording.recorder.program()


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def program_of(
    plan: Plan, placement: Placement, processors: int, fill: bytes = b""
) -> DeviceProgram:
    """Return the program that runs a plan on operands with this placement.

    `processors` is the number of multiprocessors of the device. A gather stores `fill`.
    """
    recording = recording_of(plan, placement, processors, Recorder())
    if plan.call.operator.scatters:
        record = _scatter(recording, _source(placement))
    else:
        record = checks.new_record(recording)
        _gather(recording, record, fill)
    checks.read_record(recording, record)
    return recording.recorder.program()


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def ordered_program(
    plan: Plan,
    placement: Placement,
    processors: int,
    length: int,
    widths: Widths,
    row_number_bytes: int = 0,
) -> DeviceProgram:
    """Return the program of a scatter whose updates are sorted already.

    Its operands are the data, the sorted keys, the updates, the result and the sorted payload. If
    the updates are weighted rows, the row and the weight of each update follow. `row_number_bytes`
    is the size of a row number.
    """
    order = Pairs(Slot(INDICES), Slot(PAYLOAD), length, widths)
    recorder = Recorder((WEIGHTS if row_number_bytes else PAYLOAD) + 1)
    recording = recording_of(plan, placement, processors, recorder)
    recording = replace(recording, order=order, row_number_bytes=row_number_bytes)
    _copy_and_write(recording, _source(placement), None)
    return recorder.program()


def usual_placement(plan: Plan) -> Placement:
    """Return the placement of operands with the usual alignment of an allocator."""
    return Placement(WIDEST, WIDEST, WIDEST, WIDEST, is_in_place(plan))


def _source(placement: Placement) -> Slot | None:
    """Return the data that a scatter copies, or None if it works in place."""
    return None if placement.in_place else Slot(DATA, placement.data)


def recording_of(
    plan: Plan, placement: Placement, processors: int, recorder: Recorder
) -> CallRecording:
    """Return a call whose program has no steps yet.

    For a scatter, `out` takes the place of the data.
    """
    data, indices, updates, out = map(Slot, (DATA, INDICES, UPDATES, OUT), placement[:4])
    moved = (out, indices, updates) if plan.call.operator.scatters else (data, indices, out)
    return CallRecording(recorder, processors, plan, device_nest(plan), *moved)


def _gather(recording: CallRecording, record: Slot | None, fill: bytes) -> None:
    if recording.nest.block:
        movement.gather(recording, record, fill)
    elif record:
        checks.check_indices(recording, record)


def _scatter(recording: CallRecording, source: Slot | None) -> Slot | None:
    """Record a scatter, which copies the data from `source`, unless it is None.

    Return the record of invalid indices, or None if the call cannot raise.
    """
    if small := small_scatters.small_scatter(recording, source):
        return small_scatters.launch(recording, source, small)
    record = checks.check_before_writing(recording)
    _copy_and_write(recording, source, record)
    return record


def _copy_and_write(recording: CallRecording, source: Slot | None, record: Slot | None) -> None:
    """Copy the data from `source`, unless it is None, and write the updates."""
    if recording.nest.copy_block and source:
        movement.copy_data(recording, source, record)
    _write(recording, record)


class Method(Enum):
    """How a scatter writes the updates; see the module's docstring."""

    NOTHING = auto()  # there are no bytes to write
    ATOMICS = auto()
    SORTED_FOLD = auto()
    DISTINCT = auto()  # no two tuples have the same destination
    LINES = auto()
    TABLE = auto()  # of winners
    SORTED_MOVE = auto()


def method_of(call: Call, nest: DeviceNest, atomic: bool) -> Method:
    """Return the method of a call. `atomic` is True if integer atomics can fold the updates."""
    if not call.operator.scatters or not nest.block or not nest.destinations:
        return Method.NOTHING
    if call.reduction != "none":
        return Method.ATOMICS if atomic else Method.SORTED_FOLD
    if nest.most_updates <= 1:
        return Method.DISTINCT
    if movement.updates_of_line(nest):
        return Method.LINES
    return Method.TABLE if _has_table(call, nest) else Method.SORTED_MOVE


def _write(recording: CallRecording, record: Slot | None) -> None:
    """Write the updates, unless the record holds an invalid index."""
    call = recording.plan.call
    method = method_of(call, recording.nest, folds.is_atomic(recording))
    if recording.order and method is not Method.NOTHING:
        method = Method.SORTED_MOVE if call.reduction == "none" else Method.SORTED_FOLD
    match method:
        case Method.ATOMICS:
            folds.fold_atomic(recording, record)
        case Method.SORTED_FOLD:
            folds.fold_updates(recording, record)
        case Method.SORTED_MOVE:
            sorted_updates.scatter_sorted(recording, record)
        case Method.DISTINCT:
            movement.scatter(recording, record, None)
        case Method.LINES:
            movement.scatter_lines(recording, record)
        case Method.TABLE:
            movement.scatter(recording, record, movement.find_winners(recording))


def sorts(plan: Plan) -> bool:
    """Return True if a plan sorts the updates by destination, for aligned operands."""
    method = method_of(plan.call, device_nest(plan), folds.may_be_atomic(plan.call))
    return method in (Method.SORTED_FOLD, Method.SORTED_MOVE)


def _has_table(call: Call, nest: DeviceNest) -> bool:
    """Return True if a table of all destinations finds the last updates, and False for a sort."""
    return _table_bytes(nest) <= max(SMALL_TABLE_BYTES, _sort_bytes(call, nest))


def _table_bytes(nest: DeviceNest) -> int:
    return nest.destinations * movement.winner_bytes(nest)


def _sort_bytes(call: Call, nest: DeviceNest) -> int:
    widths = sorted_updates.widths_of(nest, sorted_updates.carried_bytes_of(call, nest))
    copies = 1 if sorted_updates.sorts_in_block(nest) else 2
    in_launches = sorted_updates.sorts_in_launches(nest)
    counts = radix_sort.scratch_bytes(nest.entries, widths) if in_launches else 0
    return copies * nest.entries * (widths.key + widths.payload) + counts


def scratch_bytes(plan: Plan) -> int:
    """Return the size in bytes of the working memory that a plan uses on a device.

    With `n` index tuples that move something and `d` distinct destinations::

        gathers, small scatters               0
        movement along lines                  0
        movement, if tuples may collide       min(4 d, other folds), 4 d up to 16 MiB
        add, max, min of 32- and 64-bit ints  0
        other folds                           16 n, 8 n for up to 4096 tuples,
                                              up to 18 n + 8192 for up to 2^20

    and 40 bytes for the record of mode "raise". ``4 d`` becomes ``8 d`` if a destination may have
    ``2**32`` updates or more. ``16 n`` is two copies of keys and payload, 4 bytes each. With
    ``2**31`` destinations or more, keys have 8 bytes. The payload has 8 bytes with ``2**31`` tuples
    or more, and for folds of single 8-byte items. Memory that a library's sort needs besides its
    input and output is not included.
    """
    call, nest = plan.call, device_nest(plan)
    placement = usual_placement(plan)
    recording = recording_of(plan, placement, 1, Recorder())
    record = checks.RECORD_BYTES if checks.raises(recording) else 0
    if call.operator.scatters and small_scatters.small_scatter(recording, _source(placement)):
        return record
    match method_of(call, nest, folds.may_be_atomic(call)):
        case Method.TABLE:
            return record + _table_bytes(nest)
        case Method.SORTED_FOLD | Method.SORTED_MOVE:
            return record + _sort_bytes(call, nest)
    return record
