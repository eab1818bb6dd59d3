"""Accumulators of arrays on a device: scatters that accept their updates in batches.

The state is in scratch memory of the framework. It consists of a copy of the data, the sums in the
accumulation dtype, the number of updates of each item and, for floats without `include_self`, the
last update of each item. A batch folds its updates into the sums in place, after those of earlier
batches. Without `include_self`, sums begin with a number that does not change any update.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Never

import numpy as np

from gatherum import _core
from gatherum._arguments import plain_values
from gatherum._arguments.checks import check_before_updates, check_out_spec
from gatherum._core import Reduction
from gatherum._functions.accumulator import Accumulator
from gatherum._functions.accumulator_state import ALL, MOST_UPDATES, NAME, check_data, state_of
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.call_types import ReductionName
from gatherum._model.dtypes import AnyDType, accumulator_dtype, neutral_item, value_of
from gatherum._model.modes import ModeName, mode_after_check
from gatherum._plans.plans import Plan, build_once

from . import device_calls, kernel_tables, kernels, plan_launches
from . import errors as cuda_errors
from .device import Buffer, Device, Kernel
from .device_calls import Operand
from .device_views import DeviceFramework, View
from .driver import open_driver
from .kernel_tables import DeviceLoop
from .launch_sizes import THREADS, block_count, offset_bits
from .programs import WIDEST, Arguments

_INT64 = np.dtype(np.int64)
_COPY = Attributes("gather_nd", mode="clip")


class _Placed(NamedTuple):
    """The layout of an array on the device, and its address."""

    spec: ArraySpec
    address: int


@dataclass(frozen=True)
class _AccumulatorStream:
    """The device of an accumulator, and the stream of one of its calls."""

    framework: DeviceFramework
    device_number: int
    stream: int

    @property
    def device(self) -> Device:
        return device_calls.open_device(self.framework, self.device_number, self.stream)

    def allocate(self, spec: ArraySpec) -> Buffer:
        nbytes = int(np.prod(spec.shape, dtype=object)) * spec.dtype.itemsize
        return self.framework.allocate(max(nbytes, 1), self.device_number, self.stream)

    def copy(self, source: int, spec: ArraySpec, target: int) -> None:
        """Copy items of any strides to contiguous memory."""
        index = ArraySpec.of(ALL)
        plan_launches.run(self.device, _plan(_COPY, spec, index), source, 0, 0, target)

    def scatter(
        self, attributes: Attributes, target: _Placed, indices: _Placed, updates: _Placed
    ) -> None:
        """Scatter in place."""
        plan = _plan(attributes, target.spec, indices.spec, updates.spec, target.spec)
        addresses = target.address, indices.address, updates.address, target.address
        plan_launches.run(self.device, plan, *addresses)

    def launch(self, kernel_name: str, total: int, fields: list[int], **macros: object) -> None:
        if total:
            kernel = Kernel.of(kernel_name, **macros)
            blocks = block_count(self.device.processors, total, THREADS)
            self.device.launch(kernel, blocks, THREADS, Arguments.of(fields).content)


def _plan(attributes: Attributes, data: ArraySpec, *others: ArraySpec | None) -> Plan:
    return build_once(Call(attributes, data, *others, *[None] * (3 - len(others))))  # type: ignore[arg-type]  # indices are there


class DeviceAccumulator(Accumulator):
    """An accumulator of an array on a CUDA device; see `gatherum.Accumulator`."""

    def __init__(
        self,
        data: Any,
        reduction: ReductionName,
        *,
        include_self: bool = True,
        mode: ModeName = "raise",
        negative: bool = True,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise errors.unknown_argument(NAME, unknown, has_axis=False)
        attributes = plain_values.as_attributes(NAME, 0, reduction, include_self, mode, negative)
        framework = self._framework_of(data)
        view = framework.view(NAME, "data", data)
        spec = view.spec
        check_data(spec.shape, spec.dtype, attributes.reduction)  # type: ignore[arg-type]  # it also checks dtypes without arithmetic
        if not _is_supported(spec.dtype, attributes.reduction, attributes.include_self):
            raise cuda_errors.no_device_accumulator(attributes.reduction, spec.dtype)
        self._attributes, self._lock, self._update_count = attributes, threading.RLock(), 0
        self._host_items: tuple[object, ...] = ()  # host items, until the driver has read them
        self._spec = ArraySpec.contiguous(spec.shape, spec.dtype)
        self._allocate_state(framework, view, data)

    @staticmethod
    def _framework_of(data: Any) -> DeviceFramework:
        """Return the framework of the data. Subclasses implement this method."""
        raise NotImplementedError

    def _allocate_state(self, framework: DeviceFramework, view: View, data: Any) -> None:
        device_number = view.device_number or 0
        self._framework, self._device_number = framework, device_number
        self._stream = framework.stream(device_number, [data])
        device_stream = _AccumulatorStream(framework, device_number, self._stream)
        self._example, _ = framework.empty(
            (0,), self._spec.dtype, data, device_number, self._stream
        )
        dtype, reduction = self._spec.dtype, self._attributes.reduction
        self._device_data = device_stream.allocate(self._spec)
        device_stream.copy(view.address, view.spec, self._device_data.address)
        sum_dtype = dtype if reduction == "none" else accumulator_dtype(dtype, reduction)  # type: ignore[arg-type]  # exact sums have raised
        self._sum_spec = ArraySpec.contiguous(self._spec.shape, sum_dtype)
        self._counts_spec = ArraySpec.contiguous(self._spec.shape, _INT64)
        self._device_one = self._item(device_stream, np.array(1, np.int64))
        device_zero = self._item(device_stream, np.array(0, np.int64))
        self._device_counts = self._filled(device_stream, device_zero, self._counts_spec)
        self._device_last = None
        if reduction == "none":
            self._device_sums = device_stream.allocate(self._spec)
            device_stream.copy(self._device_data.address, self._spec, self._device_sums.address)
        elif self._attributes.include_self:
            self._device_sums = self._widened(device_stream, self._device_data.address, self._spec)
        else:
            neutral_bytes = neutral_item(sum_dtype, reduction)
            assert neutral_bytes is not None
            device_neutral = self._item(device_stream, np.frombuffer(neutral_bytes, np.uint8))
            self._device_sums = self._filled(device_stream, device_neutral, self._sum_spec)
            if reduction != "mean" and dtype.kind not in "iub":
                self._device_last = device_stream.allocate(self._spec)
                device_stream.copy(self._device_data.address, self._spec, self._device_last.address)
        framework.keep([view.holder, *self._host_items], device_number, self._stream)

    def _item(self, device_stream: _AccumulatorStream, item: np.ndarray[Any, Any]) -> Buffer:
        """Return device memory with one item."""
        buffer = device_stream.framework.allocate(
            item.nbytes, device_stream.device_number, device_stream.stream
        )
        driver = open_driver()
        with driver.on(device_stream.device_number):
            driver.copy_to_device(
                buffer.address, item.ctypes.data, item.nbytes, device_stream.stream
            )
        self._host_items = (*self._host_items, item)
        return buffer

    @staticmethod
    def _filled(device_stream: _AccumulatorStream, item: Buffer, spec: ArraySpec) -> Buffer:
        buffer = device_stream.allocate(spec)
        repeated = ArraySpec(spec.shape, spec.dtype, (0,) * len(spec.shape))
        device_stream.copy(item.address, repeated, buffer.address)
        return buffer

    def _widened(self, device_stream: _AccumulatorStream, address: int, spec: ArraySpec) -> Buffer:
        """Return items of any strides in the type of the sums, in C order."""
        target = ArraySpec.contiguous(spec.shape, self._sum_spec.dtype)
        buffer = device_stream.allocate(target)
        if self._sum_spec.dtype == spec.dtype:
            device_stream.copy(address, spec, buffer.address)
            return buffer
        loops = tuple(
            DeviceLoop(extent, data=step, moved=other)
            for extent, step, other in zip(spec.shape, spec.strides, target.strides, strict=True)
            if extent != 1
        )
        total = kernel_tables.count_points(loops)
        bits = offset_bits(kernel_tables.largest_number(loops, (), WIDEST))
        size = kernel_tables.table_size((loops,))
        align = kernel_tables.common_alignment(
            spec.dtype.itemsize, address, *(loop.data for loop in loops)
        )
        fields = [address, buffer.address, total]
        if total:
            fields += kernel_tables.loops_fields(loops, bits, size)
        macros = {"OFFSET_BITS": bits, "LOOPS": size, "VALUE_ALIGN": align}
        device_stream.launch("widen", total, fields, **macros, **self._value_macros())
        return buffer

    def _value_macros(self) -> dict[str, object]:
        value = kernels.value_macro(value_of(self._spec.dtype).name)
        return {"VALUE": value, "REDUCTION": self._attributes.reduction}

    @contextmanager
    def _on_stream_of(self, arrays: list[Any]) -> Iterator[_AccumulatorStream]:
        """Hold the lock. Make the stream of a call wait for the stream of the previous call."""
        with self._lock:
            stream = self._framework.stream(self._device_number, arrays)
            if stream != self._stream:
                driver = open_driver()
                with driver.on(self._device_number):
                    driver.wait(stream, self._stream)
            self._stream = stream
            yield _AccumulatorStream(self._framework, self._device_number, stream)

    def _apply_batch(
        self, op: str, indices: object, updates: object, axis: object
    ) -> DeviceAccumulator:
        framework, others = self._framework, self._attributes.positional[1:]
        attributes = plain_values.as_attributes(op, axis, *others)
        entries = device_calls.view_or_convert(framework, op, "indices", indices, None)
        check_before_updates(op, self._spec, entries.spec, attributes.axis)
        values = device_calls.view_or_convert(framework, op, "updates", updates, self._spec.dtype)
        plan = _plan(attributes, self._spec, entries.spec, values.spec)
        data = View(self._device_data.address, self._spec, self._device_number, self)
        operands: dict[str, Operand | None] = {"data": data, "indices": entries, "updates": values}
        device_calls.common_device(op, operands)
        batch_size = int(np.prod(entries.spec.shape, dtype=object))
        with self._on_stream_of(
            [each for each in (indices, updates) if framework.owns(each)]
        ) as device_stream:
            device_and_stream = device_stream.device_number, device_stream.stream
            device_calls.check_capture(framework, op, plan, operands, *device_and_stream)
            if self._update_count + batch_size > MOST_UPDATES:
                raise errors.too_many_updates(MOST_UPDATES)
            addresses, holders = device_calls.copy_host_operands(
                framework, operands, *device_and_stream
            )
            try:
                self._fold_batch(
                    device_stream,
                    attributes,
                    _Placed(entries.spec, addresses["indices"]),
                    _Placed(values.spec, addresses["updates"]),
                )
            finally:
                framework.keep(holders, *device_and_stream)
            self._update_count += batch_size
        return self

    def _fold_batch(
        self,
        device_stream: _AccumulatorStream,
        attributes: Attributes,
        indices: _Placed,
        updates: _Placed,
    ) -> None:
        """Fold a batch into the sums. Only the first scatter checks the indices."""
        values, values_buffer = updates, None  # the buffer keeps the memory until the fold runs
        if self._sum_spec.dtype != self._spec.dtype:
            values_buffer = self._widened(device_stream, updates.address, updates.spec)
            values_spec = ArraySpec.contiguous(updates.spec.shape, self._sum_spec.dtype)
            values = _Placed(values_spec, values_buffer.address)
        fold = attributes._replace(include_self=True)
        if attributes.reduction == "mean":
            fold = fold._replace(reduction="add")
        sums = _Placed(self._sum_spec, self._device_sums.address)
        device_stream.scatter(fold, sums, indices, values)
        unchecked = fold._replace(mode=mode_after_check(attributes.mode))
        counts = _Placed(self._counts_spec, self._device_counts.address)
        ones_spec = ArraySpec(updates.spec.shape, _INT64, (0,) * len(updates.spec.shape))
        ones = _Placed(ones_spec, self._device_one.address)
        device_stream.scatter(unchecked._replace(reduction="add"), counts, indices, ones)
        if self._device_last is not None:
            last = _Placed(self._spec, self._device_last.address)
            device_stream.scatter(unchecked._replace(reduction="none"), last, indices, updates)

    def counts(self) -> Any:
        """Return the number of updates of each element, as an array on the device."""
        with self._on_stream_of([]) as device_stream:
            result, address = self._framework.empty(
                self._spec.shape,
                _INT64,
                self._example,
                device_stream.device_number,
                device_stream.stream,
            )
            device_stream.copy(self._device_counts.address, self._counts_spec, address)
        return result

    def merge(self, other: Accumulator) -> Accumulator:
        """Raise NotImplementedError: accumulators on a device cannot be merged."""
        raise cuda_errors.no_device_merge()

    def finish(self, out: Any = None) -> Any:
        """Return the result of all batches so far, as an array on the device, or `out`."""
        op = f"{NAME}.finish"
        target = None
        if out is not None:
            if not self._framework.owns(out):
                raise cuda_errors.not_on_cuda(op, "out", type(out).__name__, None)
            target = self._framework.view(op, "out", out)
            check_out_spec(op, self._spec.shape, self._spec.dtype, target.spec)
            device_calls.common_device(op, {"data": self._data_view(), "out": target})
            if not target.writable:
                raise errors.out_read_only(op)
        with self._on_stream_of([] if out is None else [out]) as device_stream:
            device_and_stream = device_stream.device_number, device_stream.stream
            if target is not None and target.spec == self._spec:
                self._finish(device_stream, target.address)
            else:
                like = self._example, *device_and_stream
                fresh, address = self._framework.empty(self._spec.shape, self._spec.dtype, *like)
                self._finish(device_stream, address)
                if target is None:
                    return fresh
                self._store(device_stream, address, target)
                self._framework.keep([fresh, target.holder], *device_and_stream)
            self._framework.mark_written(out, *device_and_stream)
        return out

    def _data_view(self) -> View:
        return View(self._device_data.address, self._spec, self._device_number, self)

    def _store(self, device_stream: _AccumulatorStream, address: int, target: View) -> None:
        """Copy contiguous items to an array of any strides."""
        scatter = Attributes("scatter_nd", mode="clip")
        plan = _plan(scatter, target.spec, ArraySpec.of(ALL), self._spec, target.spec)
        plan_launches.run(device_stream.device, plan, target.address, 0, address, target.address)

    def _finish(self, device_stream: _AccumulatorStream, out: int) -> None:
        if self._attributes.reduction == "none":
            device_stream.copy(self._device_sums.address, self._spec, out)
            return
        total = int(np.prod(self._spec.shape, dtype=object))
        last = 0 if self._device_last is None else self._device_last.address
        fields = [
            self._device_sums.address,
            self._device_counts.address,
            self._device_data.address,
            last,
            out,
        ]
        fields += [int(self._attributes.include_self), total]
        macros = {"OFFSET_BITS": offset_bits(total), "LOOPS": kernel_tables.FEW_LOOPS}
        device_stream.launch("accumulated", total, fields, **macros, **self._value_macros())

    def __repr__(self) -> str:
        spec, attributes = self._spec, state_of(self._attributes).items()
        words = (f"{name}={value!r}" for name, value in attributes)
        device = f"cuda:{self._device_number}"
        return f"<{NAME} of {spec.dtype} {spec.shape} on {device}, {', '.join(words)}>"

    def __getstate__(self) -> dict[str, Any]:
        raise cuda_errors.no_device_pickle()


def _is_supported(dtype: AnyDType, reduction: str, include_self: bool) -> bool:
    """Return True if sums have a NumPy dtype, and a neutral element exists where one is needed."""
    if reduction == "none":
        return True
    if _core.is_exact(Reduction[reduction]):
        return False
    sums = accumulator_dtype(dtype, reduction)  # type: ignore[arg-type]  # with arithmetic
    return include_self or neutral_item(sums, reduction) is not None
