"""A `Device` without a GPU: the kernels' own source, compiled by g++, on NumPy memory.

Blocks and threads run in an order that a seed determines, or concurrently on real threads for
ThreadSanitizer. g++ also detects errors that the processor would tolerate: unaligned addresses and
overflowing sums of 32-bit offsets.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatherum.cuda import kernels, programs
from gatherum.cuda.device import Kernel, Pairs

__all__ = ["AT_ONCE", "COMPILER", "NO_COMPILER", "ShimBuffer", "ShimDevice", "compiled"]

SHIM = Path(__file__).parent
COMPILER = shutil.which("g++") if sys.platform == "linux" else None
NO_COMPILER = "needs g++ on Linux, which compiles the kernels"
# Bytes around every scratch buffer that no kernel may change; initial content of the buffer.
MARGIN, CANARY, JUNK = 256, 0xC5, 0xA9
# Run threads concurrently, under ThreadSanitizer, with which Python is then started.
AT_ONCE = os.environ.get("GATHERUM_SHIM_AT_ONCE") == "1"
# Kernels whose threads wait for each other, in a block or in a warp.
WAITING = (
    "fold_long", "fold_exact_long", "fold_table", "scatter_lines", "sort_count", "sort_move",
    "sort_offsets", "sorted_keys", "fold_small", "scatter_small",
)  # fmt: skip
_OPTIONS = ["-std=c++20", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
_KERNEL_OPTIONS = ["-O0", "-fno-strict-aliasing", "-ffp-contract=off", "-fvisibility=hidden"]
_CHECKS = "-fsanitize=alignment,signed-integer-overflow,shift,bounds,integer-divide-by-zero"


@cache
def _folder() -> Path:
    """Return the folder of compiled variants, which runs share in GATHERUM_SHIM_CACHE."""
    kept = os.environ.get("GATHERUM_SHIM_CACHE")
    if kept is None:
        return Path(tempfile.mkdtemp(prefix="gatherum-shim-"))
    Path(kept).mkdir(parents=True, exist_ok=True)
    return Path(kept)


@cache
def _sources() -> Path:
    """Return a folder with the kernels' sources, including generated ones, as passed to NVRTC."""
    sources = kernels.sources()
    key = hashlib.blake2b(repr(sources).encode(), digest_size=8).hexdigest()
    folder = _folder() / f"sources-{key}"
    if not folder.exists():
        fresh = Path(tempfile.mkdtemp(dir=_folder()))
        for name, text in sources.items():
            (fresh / name).write_text(text)
        with suppress(OSError):  # another process was first
            fresh.rename(folder)
    return folder


@cache
def _text() -> bytes:
    parts = [f"{name}\n{text}" for name, text in kernels.sources().items()]
    parts += [path.read_text() for path in sorted(SHIM.glob("*.[ch]pp"))]
    return "\n".join(parts).encode()


def _sanitizer() -> list[str]:
    return ["-fsanitize=thread"] if AT_ONCE else [_CHECKS, "-fno-sanitize-recover=all"]


def _build(name: str, source: Path, options: list[str]) -> ctypes.CDLL:
    assert COMPILER is not None
    key = hashlib.blake2b(_text() + repr(options).encode(), digest_size=8).hexdigest()
    library = _folder() / f"{name}-{key}.so"
    if not library.exists():
        fresh = library.with_suffix(f".{os.getpid()}")
        command = [COMPILER, *_OPTIONS, *options, str(source), "-o", str(fresh)]
        subprocess.run(command, check=True)
        fresh.rename(library)
    return ctypes.CDLL(str(library), mode=os.RTLD_GLOBAL | os.RTLD_NOW if name == "runner" else 0)


@cache
def _runner() -> ctypes.CDLL:
    # Fibers are not instrumented; threads are, or ThreadSanitizer would not see their joins.
    options = ["-O1", "-pthread", *(_sanitizer() if AT_ONCE else [])]
    runner = _build("runner", SHIM / "runner.cpp", options)
    runner.shim_launch.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_uint,
        ctypes.c_uint,
        ctypes.c_bool,
        ctypes.c_bool,
        ctypes.c_ulonglong,
    ]
    return runner


@cache
def compiled(kernel: Kernel) -> ctypes.CDLL:
    """Return the library of a kernel compiled with its macros."""
    _runner()
    options = [*_KERNEL_OPTIONS, *_sanitizer(), f"-I{_sources()}"]
    options += ["-include", str(SHIM / "shim.hpp"), f"-DKERNEL={kernel.name}"]
    options += [f'-DKERNEL_FILE="{kernel.name}.cu"']
    options += [f"-D{name}={value}" for name, value in kernel.macros]
    return _build(kernel.name, SHIM / "entry.cpp", options)


class ShimBuffer:
    """A scratch buffer between canaries."""

    def __init__(self, nbytes: int) -> None:
        self.memory = np.full(nbytes + 3 * MARGIN, CANARY, np.uint8)
        start = -self.memory.ctypes.data % MARGIN + MARGIN
        self.inside = self.memory[start : start + nbytes]
        self.inside[...] = JUNK
        self.address: int = self.inside.ctypes.data
        self.before, self.after = self.memory[:start], self.memory[start + nbytes :]
        self.behind = self.after.copy()

    def put_behind(self, value: NDArray[np.uint8]) -> None:
        """Write a value directly after the end, for kernels that read there."""
        self.behind[: value.size] = value
        self.after[...] = self.behind

    def strays(self) -> bool:
        """Return True if a byte around the buffer changed."""
        return bool((self.before != CANARY).any() or (self.after != self.behind).any())


class ShimDevice:
    """Runs kernels on this processor, and records requests for tests to inspect."""

    processors = 2

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.launches: list[Kernel] = []
        self.buffers: list[ShimBuffer] = []
        self.reads = 0

    def allocate(self, nbytes: int) -> ShimBuffer:
        assert nbytes >= 1
        self.buffers.append(ShimBuffer(nbytes))
        return self.buffers[-1]

    def clear(self, buffer: ShimBuffer, nbytes: int) -> None:
        assert nbytes <= buffer.inside.size
        buffer.inside[:nbytes] = 0

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: bytes) -> None:
        assert 1 <= grid < 2**31 and 1 <= block <= 1024 and len(arguments) <= 32764
        library = compiled(kernel)
        library.shim_bytes.restype = ctypes.c_ulonglong
        assert library.shim_bytes() == len(arguments), kernel
        entry = ctypes.cast(library.shim_entry, ctypes.c_void_p)
        self.launches.append(kernel)
        self.seed += 1
        waits = kernel.name in WAITING or ("ONE_BLOCK", "1") in kernel.macros
        _runner().shim_launch(entry, arguments, grid, block, waits, AT_ONCE, self.seed)

    def sort(self, pairs: Pairs) -> Pairs:
        keys, payload, count, (key, other, bits) = pairs
        assert count >= 1 and 1 <= bits <= 8 * key - 1
        unsorted = _integers(keys, count, key)
        assert int(unsorted.max()) < 2**bits
        order = np.argsort(unsorted, kind="stable")
        outs = self.allocate(count * key), self.allocate(count * other)
        _integers(outs[0], count, key)[...] = unsorted[order]
        _integers(outs[1], count, other)[...] = _integers(payload, count, other)[order]
        outs[0].put_behind(outs[0].inside[-key:])  # as if the last run continued
        keys.inside[...] = JUNK
        payload.inside[...] = JUNK
        return Pairs(*outs, count, pairs.widths)

    def read(self, buffer: ShimBuffer, nbytes: int) -> bytes:
        self.reads += 1
        return buffer.inside[:nbytes].tobytes()

    run_program = programs.run_steps

    def names(self) -> list[str]:
        """Return the names of the launched kernels, in order."""
        return [kernel.name for kernel in self.launches]

    def scratch(self) -> int:
        """Return the total bytes of all buffers."""
        return sum(buffer.inside.size for buffer in self.buffers)

    def strays(self) -> bool:
        """Return True if a byte around any buffer changed."""
        return any(buffer.strays() for buffer in self.buffers)


def _integers(buffer: ShimBuffer, count: int, width: int) -> NDArray[np.unsignedinteger]:
    return buffer.inside[: count * width].view(f"u{width}")
