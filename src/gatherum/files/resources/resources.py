"""The resources of a call on files: memory, scratch files, counters, and the settings of inputs."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from gatherum._model.defaults import MEMORY
from gatherum.files import errors

from .disk import DiskFile
from .stats import Meter, Progress

REQUEST_BYTES = 48  # the memory of a request, with its position in the sorted order
SMALLEST = 64 << 10
LARGEST = 1 << 60
LONGEST_NUMBER = 60
UNITS = {"": 1, "b": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
UNITS |= {f"{u}b": n for u, n in UNITS.items() if u in "kmgt" and u}
UNITS |= {f"{u}ib": 1024 ** (i + 1) for i, u in enumerate("kmgt")}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", re.ASCII)


def size_of(op: str, operand: str, size: object) -> int:
    """Parse a number of bytes, such as ``"512MiB"``, for an argument of `op`.

    Raise TypeError for types other than str and int. Raise ValueError for strings that are not a
    size, and for 1 EiB and more.
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None or match[2].lower() not in UNITS:
            raise errors.not_a_size(op, operand, size)
        # longer than any size; the float could be infinite
        amount = float(match[1]) if len(match[1]) <= LONGEST_NUMBER else float(LARGEST)
        total = int(amount * UNITS[match[2].lower()])
    elif isinstance(size, int) and not isinstance(size, bool):
        total = size
    else:
        raise errors.other_type_of_size(op, operand, size)
    if total >= LARGEST:
        raise errors.size_too_large(op, operand, size)
    return total


@dataclass(frozen=True)
class Budget:
    """A limit on anonymous memory, and the shares of the limit for each purpose.

    The sum of the shares is less than `total`, because NumPy's temporary arrays also need memory.
    """

    total: int

    @classmethod
    def parse(cls, op: str, memory: str | int) -> Budget:
        """Parse the `memory` of a call of `op`: bytes, or a number with a unit.

        Units are k, M, G, T (powers of 1000), KiB, MiB, GiB and TiB. Raise TypeError for types
        other than str and int. Raise ValueError for strings that are not a size, for less than 64
        KiB, and for 1 EiB and more.
        """
        total = size_of(op, "memory", memory)
        if total < SMALLEST:
            raise errors.memory_too_small(op, total)
        return cls(total)

    def check_item(self, name: object, nbytes: int) -> None:
        """Raise ValueError for an element that is too large for the memory budget."""
        if nbytes > self.window:
            raise ValueError(
                f"{name}: one element has {nbytes} bytes, too much for a memory budget of "
                f"{self.total} bytes (four times the element is needed)"
            )

    def check_chunk(
        self, name: object, nbytes: int, chunk: str = "chunk", advice: str = ""
    ) -> None:
        """Raise ValueError for a chunk, or shard, that does not fit in memory twice."""
        if nbytes > self.total // 2:
            raise ValueError(
                f"{name}: one {chunk} has {nbytes} bytes, too much for a memory budget of "
                f"{self.total} bytes (twice the {chunk} is needed){advice}"
            )

    @property
    def window(self) -> int:
        """Bytes for the rows of one output window, or for the updates in memory."""
        return self.total // 4

    @property
    def whole_output(self) -> int:
        """The most bytes of a whole output in memory, with its requests.

        Larger than `window`, because no other window is in memory.
        """
        return self.total * 3 // 4

    @property
    def piece(self) -> int:
        """Bytes for a piece of the table's rows. Up to three pieces are in memory."""
        return min(self.total // 16, 8 << 20)

    @property
    def fold(self) -> int:
        """Bytes for the accumulators of rows whose updates are applied in several slices."""
        return self.total // 3

    @property
    def entries(self) -> int:
        """The number of requests in memory, with their sorted order."""
        return max(64, self.total // 4 // REQUEST_BYTES)

    @property
    def slab(self) -> int:
        """Bytes of a complete operand that may stay in memory."""
        return self.total // 8


@dataclass(frozen=True)
class Resources:
    """The resources of a call, and the settings for opening its inputs.

    `at_end` registers a function to run when the call ends. `watched`: the caller will check
    whether an input changed. `storage_options` contains the options of fsspec's filesystems for
    URLs, and is never shown. `decode`: whether to decode packed numbers.
    """

    meter: Meter
    budget: Budget
    spill_dir: str
    at_end: Callable[[Callable[[], object]], object]
    watched: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    decode: bool = True

    @classmethod
    def of(
        cls,
        op: str,
        stack: ExitStack,
        memory: str | int = MEMORY,
        spill_dir: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        decode: bool = True,
    ) -> Resources:
        """Return the checked settings of the call of `op`. `stack` closes the opened files."""
        budget, options = Budget.parse(op, memory), checked_options(op, storage_options)
        if not (spill_dir is None or isinstance(spill_dir, (str, os.PathLike))):
            raise errors.several_folders(op, spill_dir)
        folder = os.fspath(spill_dir or tempfile.gettempdir())
        if not os.path.isdir(folder):
            raise errors.no_folder(op, folder)
        meter, at_end = Meter(progress), stack.callback
        return cls(meter, budget, folder, at_end, storage_options=options, decode=decode)

    def scratch(self) -> DiskFile:
        """Return an unnamed file that is deleted when the call ends."""
        file = DiskFile.scratch(self.spill_dir, self.meter)
        self.at_end(file.close)
        return file


def checked_options(op: str, options: object) -> dict[str, Any]:
    """Return the `storage_options` of a call.

    Raise TypeError if they are not a mapping with keys of type str. The error shows only a type.
    """
    if options is None:
        return {}
    found = type(options).__name__
    if isinstance(options, Mapping):
        key_types = [type(key).__name__ for key in options if not isinstance(key, str)]
        if not key_types:
            return dict(options)
        found = f"a key of type {key_types[0]}"
    raise errors.not_options(op, found)
