"""What `gatherum.cuda` requires of a framework, and a view of one of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from gatherum._model.call import ArraySpec
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

from .device import Buffer, Pairs


class View(NamedTuple):
    """An array in a device's memory."""

    address: int  # of its first element
    spec: ArraySpec
    device: int | None  # its number; None for an array without memory
    holder: object  # keeps the memory


class DeviceFramework(Protocol):
    """Where arrays come from, and their results and scratch memory with them."""

    name: str
    captures_graphs: bool  # whether calls can be part of a CUDA graph that their stream captures

    def owns(self, value: object) -> bool:
        """Whether a value is an array of the framework, on whatever device."""

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return a view of an array, or raise TypeError for one that is elsewhere."""

    def stream(self, device: int, operands: Sequence[object]) -> int:
        """Return the stream that a call on operands goes to: the caller's current one.

        What other streams have been given for the operands comes before what it is given next.
        """

    def empty(
        self, shape: Shape, dtype: AnyDType, like: Any, device: int, stream: int
    ) -> tuple[object, int]:
        """Return a new array in C order, of the dtype of the array `like`, and its address."""

    def allocate(self, nbytes: int, device: int, stream: int) -> Buffer:
        """Return scratch memory, which goes back in the order of the stream."""

    def sort(self, pairs: Pairs, device: int, stream: int) -> Pairs:
        """Sort as `Device.sort` does; the pairs lie in memory that `allocate` has returned."""

    def lasting(self, result: Any, device: int, stream: int) -> AbstractContextManager[None]:
        """Return a context: what memory is taken in it lasts as long as `result` where the stream
        captures a graph, which will use that memory whenever it is replayed. A framework that
        captures none, or gives each of its graphs a pool of its own, has nothing to do.
        """
        return nullcontext()

    def keep(self, holders: Sequence[object], device: int, stream: int) -> None:
        """Keep memory for as long as what the stream has been given until now may use it: that of
        operands, and that of the host which is being copied.
        """
