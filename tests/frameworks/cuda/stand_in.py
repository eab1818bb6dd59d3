"""A machine whose driver is `libcuda.c`, and tensors that the core believes to be on a device.

Start a process with `environment`, and call `use` in it. Then tensors of a torch without CUDA take
every step of a tensor on a device; their kernels do nothing unless `run_kernels` is called.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

COMPILER = shutil.which("cc") or shutil.which("gcc")
STREAM, CAPTURED = 48, 40  # libcuda.c reports a capture of the second one
HERE = Path(__file__).parent
LIBRARIES = {
    "libcuda.so.1": "libcuda.c",
    "libexchange.so": "exchange.c",
    "libxla_device.so": "xla_device.c",
}


def build(folder: Path) -> dict[str, str]:
    """Compile the libraries, and return the environment of a process that uses them."""
    options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    for name, source in LIBRARIES.items():
        command = [str(COMPILER), *options, f"-Wl,-soname,{name}", "-o", str(folder / name)]
        subprocess.run([*command, str(HERE / source), "-ldl"], check=True)
    paths = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, paths))}


class Driver:
    """What tests set and read in the library."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self._set("fake_log", 2)
        self.events_are_done(True)

    def _set(self, name: str, value: int) -> None:
        ctypes.c_int.in_dll(self.library, name).value = value

    def fail_after(self, launches: int) -> None:
        """Let the launch after this number of launches fail."""
        self._set("fake_launches_left", launches)

    def events_are_done(self, done: bool) -> None:
        """Let queries of events return that they are done, or not yet."""
        self._set("fake_events_done", int(done))

    def run(self, function: Any) -> None:
        """Run kernels by a function of ctypes, or not at all."""
        self.function = function
        pointer = ctypes.c_void_p.in_dll(self.library, "fake_run")
        pointer.value = ctypes.cast(function, ctypes.c_void_p).value if function else None

    @contextmanager
    def logged(self) -> Iterator[list[str]]:
        """Collect the lines of the driver's calls, without changes of the context."""
        lines: list[str] = []
        ctypes.c_size_t.in_dll(self.library, "fake_length").value = 0
        self._set("fake_log", 1)
        yield lines
        self._set("fake_log", 2)
        length = ctypes.c_size_t.in_dll(self.library, "fake_length").value
        text = ctypes.string_at(
            ctypes.addressof(ctypes.c_char.in_dll(self.library, "fake_text")), length
        )
        lines += [
            each for each in text.decode().splitlines() if not each.startswith(("push", "pop"))
        ]


_kept: list[object] = []
_stream = SimpleNamespace(cuda_stream=STREAM)


def use() -> Any:
    """Let tensors in host memory be on device 0. Return the module `gatherum.torch.cuda`."""
    import torch

    from gatherum._model.operators import OPERATORS
    from gatherum.torch import adapter, cuda, dlpack, private, shared_results
    from gatherum.torch.autograd import recorded_functions
    from gatherum.torch.functions import aggregation, elementary
    from gatherum.torch.library import ops
    from gatherum.torch.torch_scatter import softmax

    exchange = ctypes.CDLL("libexchange.so").exchange
    exchange.restype, exchange.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
    pointer, capsule = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    api = b"dlpack_exchange_api"
    private.exchange = capsule(exchange(pointer(private.exchange, api), STREAM), api, None)
    dlpack.open_exchange(recorded_functions.record, recorded_functions.record_total)
    library = torch.library.Library("gatherum", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about replaced kernels
        for row in OPERATORS.values():
            for op, kernel in ops.kernels(row, cuda.run).items():
                for each in ops.with_below(op):
                    library.impl(each, kernel, "CPU")
        others = {name: partial(elementary._on_cuda, name) for name in elementary.NAMES}
        others |= {aggregation.NAME: aggregation._on_cuda, softmax.NAME: softmax._on_cuda}
        for name, kernel in others.items():
            for each in ops.with_below(name):
                library.impl(each, kernel, "CPU")
    _kept.append(library)  # kernels last as long as their library
    adapter.TorchAdapter.device = lambda self, value: "cuda"  # type: ignore[method-assign]
    shared_results.on_device = lambda x: True
    framework = type(cuda.FRAMEWORK)
    framework._place = lambda *_: torch.device("cpu")  # type: ignore[method-assign]
    torch.cuda.current_stream = lambda *_: _stream  # type: ignore[assignment]
    torch.cuda.is_current_stream_capturing = lambda: _stream.cuda_stream == CAPTURED
    return cuda


def stream(handle: int) -> None:
    """Set torch's current stream."""
    _stream.cuda_stream = handle
    ctypes.CDLL("libexchange.so").set_stream(ctypes.c_void_p(handle))


def struct_bytes(kernel: Any) -> int:
    """Return the bytes of the struct of a kernel, which g++ compiles."""
    from shim.device import compiled

    size = compiled(kernel).shim_bytes
    size.restype = ctypes.c_ulonglong
    return int(size())


def compile_nothing(sizes: dict[Any, int] | None = None) -> None:
    """Use a text as the code of each kernel: the bytes of its struct, if known, and its macros."""
    from gatherum.cuda import nvidia

    def kernel_code(kernel: Any, architecture: str) -> bytes:
        macros = " ".join(f"{name}={value}" for name, value in kernel.macros)
        size = (sizes or {}).get(kernel)
        struct = "shown 64" if size is None else f"struct {size}"
        return f"{struct} {kernel.name} {macros}\0".encode()

    nvidia.kernel_code = kernel_code
