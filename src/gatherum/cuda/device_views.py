"""Define the framework interface of `gatherum.cuda`, and views of a framework's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

from .device import Buffer, Pairs


class View(NamedTuple):
    """An array in a device's memory."""

    address: int  # address of the first element
    spec: ArraySpec
    device_number: int | None  # None for an array without memory
    holder: object  # keeps the memory alive
    writable: bool = True


class DeviceFramework(Protocol):
    """A framework's arrays, memory, streams and sort."""

    name: str
    captures_graphs: bool  # whether CUDA graphs can capture calls

    def owns(self, value: object) -> bool:
        """Return True if a value is an array of the framework, on any device."""

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return a view of an array. Raise TypeError if the array is not on a CUDA device."""

    def stream(self, device_number: int, operands: Sequence[object]) -> int:
        """Return the stream to run a call on, which is the current stream of the caller.

        Work on the operands that has already been submitted to other streams completes before any
        later work on this stream.
        """

    def empty(
        self, shape: Shape, dtype: AnyDType, like: Any, device_number: int, stream: int
    ) -> tuple[object, int]:
        """Return a new array in C order, of the same kind as `like`, and the array's address."""

    def allocate(self, nbytes: int, device_number: int, stream: int) -> Buffer:
        """Return scratch memory, which is freed in stream order."""

    def sort(self, pairs: Pairs, device_number: int, stream: int) -> Pairs:
        """Sort like `Device.sort`. The pairs are in memory returned by `allocate`."""

    def call_key(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> Any:
        """Return the `orders.CallKey` of a scatter, or None if calls do not use it."""
        return None

    def keep_captured_memory(
        self, result: Any, device_number: int, stream: int
    ) -> AbstractContextManager[None]:
        """Return a context in which allocated memory lasts as long as `result` during a capture.

        A replay of the captured graph uses that memory again. A framework that captures no graphs,
        or that has a separate pool for each graph, returns an empty context.
        """
        return nullcontext()

    def mark_written(self, out: Any, device_number: int, stream: int) -> None:
        """Make the stream that `out` names wait for a call that wrote to `out`."""
        return

    def keep(self, holders: Sequence[object], device_number: int, stream: int) -> None:
        """Keep memory alive until the work submitted to the stream so far has finished.

        `holders` own the memory of operands and the host memory that is being copied.
        """
