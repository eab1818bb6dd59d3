"""Run a program as if this machine had a GPU with PyTorch and CuPy: the trial of tests/device.

    python tests/frameworks/cuda/gpu_double.py -m pytest test_cuda_gpu.py
    python tests/frameworks/cuda/gpu_double.py program.py argument

The driver is that of `doubles`, and the core replaces the kernels. torch is the real one: requests
for the device "cuda" return host tensors, whose calls use `gatherum.torch.cuda`. CuPy is
`cupy_double`. Streams do nothing, and a graph repeats the runs that were made while it was
captured. `gatherum verify` has few rows. As a pytest plugin (``-p gpu_double``), this keeps two
tests of each function, and none that only a device can run.
"""

import os
import runpy
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import ClassVar

from doubles import CompilerDouble, DriverDouble, run_on_core

DRIVER = DriverDouble()
STREAM, CUPY_STREAM = 40, 60


class Graph:
    """A graph: the runs that were requested during its capture, on CuPy's stream or torch's."""

    open: ClassVar[list["Graph"]] = []

    def __init__(self, *_):
        self.runs = []
        self.kept = []  # results of torch: a graph's memory lasts as long as the graph

    def capture_begin(self):
        DRIVER.capturing.update((STREAM, CUPY_STREAM))
        self.open.append(self)

    def capture_end(self):
        DRIVER.capturing.clear()
        self.open.remove(self)

    def replay(self):
        for run in self.runs:
            run_on_core(*run)


def run_or_capture(*run):
    """Run a plan, and add it to the graph that is being captured."""
    for graph in Graph.open:
        graph.runs.append(run)
    run_on_core(*run)


def double_driver():
    """Replace the driver and NVRTC by the doubles, and the kernels by the core."""
    import gatherum.cuda.plan_launches
    from gatherum._command import verify_cases
    from gatherum.cuda import driver, explain

    explain._COPIED_BYTES = 1 << 20
    rows = list(verify_cases.case_rows())[::60]
    verify_cases.case_rows = lambda: iter(rows)
    driver._import = {"driver": DRIVER, "nvrtc": CompilerDouble()}.__getitem__
    gatherum.cuda.plan_launches.run = run_or_capture
    gatherum.cuda.plan_launches.sorts = lambda plan: False


def double_cupy():
    """Replace CuPy by the double."""
    import cupy_double

    cupy_double.Graph = Graph
    sys.modules["cupy"] = cupy_double


def double_torch():
    """Let torch report a device, and return host tensors for tensors on it."""
    import torch
    from torch.overrides import TorchFunctionMode

    here = torch.device("cpu")

    def moved(value):
        on_device = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
        return here if on_device else value

    class OnHost(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.device:
                return function(*args, **(kwargs or {}))
            if function is torch.as_tensor and hasattr(args[0], "__cuda_array_interface__"):
                return torch.from_numpy(sys.modules["cupy"].asarray(args[0]).values)
            result = function(*map(moved, args), **{k: moved(v) for k, v in (kwargs or {}).items()})
            for graph in Graph.open:
                graph.kept.append(result)
            return result

    OnHost().__enter__()
    cuda = torch.cuda
    stream = SimpleNamespace(cuda_stream=STREAM, synchronize=lambda: None)
    cuda.is_available = lambda: True
    cuda.current_stream = lambda *_: stream
    cuda.get_device_name = lambda *_: "a double"
    cuda.mem_get_info = lambda *_: (1 << 30, 1 << 30)
    cuda.synchronize = cuda.empty_cache = lambda *_: None
    cuda.get_rng_state = torch.get_rng_state
    cuda.set_rng_state = lambda *_: None
    cuda.is_current_stream_capturing = lambda: STREAM in DRIVER.capturing
    cuda.set_sync_debug_mode = lambda *_: None
    cuda.Stream = lambda *_: stream
    cuda.stream = lambda *_: nullcontext()
    cuda.Event = Event
    cuda.CUDAGraph = Graph
    cuda.graph = captured
    _through_the_ops(torch)


@contextmanager
def captured(graph):
    """Capture the runs that are made meanwhile."""
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()


class Event:
    """An event of torch. The time between two events is a millisecond."""

    def __init__(self, **_):
        self.record = self.synchronize = lambda: None

    def elapsed_time(self, other):
        return 1.0


def _other_version(*_):
    raise ValueError("another version of DLPack")


def _through_the_ops(torch):
    """Use the kernels for CUDA tensors on host tensors."""
    import warnings

    from gatherum._model.operators import OPERATORS
    from gatherum._system import native

    native.set_torch = _other_version  # makes the core leave tensors to torch
    from gatherum.torch import adapter, cuda
    from gatherum.torch.autograd import autograd_kernels
    from gatherum.torch.library import ops

    library = torch.library.Library("gatherum", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about replaced kernels
        for row in OPERATORS.values():
            for name, kernel in ops.kernels(row, cuda.run).items():
                library.impl(name, kernel, "CPU")
    autograd_kernels._run_if_plain = lambda *_: None
    cuda.FRAMEWORK.__class__._place = lambda *_: torch.device("cpu")
    adapter.TorchAdapter.device = lambda self, value: "cuda"
    sys.modules["gatherum.torch"]._kept = library


# These query the device of a tensor, or torch's allocator.
ONLY_ON_A_DEVICE = {
    "test_calls_that_wait_raise_during_a_capture",
    "test_graphs_that_inductor_makes",
    "test_two_devices_are_named",
}


def pytest_collection_modifyitems(items):
    """Keep two tests of each function: this is a trial, not a test."""
    names = [item.originalname for item in items]
    items[:] = [
        item
        for number, (item, name) in enumerate(zip(items, names, strict=True))
        if name not in ONLY_ON_A_DEVICE and names[:number].count(name) < 2
    ]


def double():
    """Install all doubles."""
    double_driver()
    double_cupy()
    double_torch()


def run_program(program, *arguments):
    """Run a file, or a module after ``-m``."""
    if program == "-m":
        sys.argv = list(arguments)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        sys.path.insert(0, os.path.dirname(program))  # as Python does
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    double()
    run_program(*sys.argv[1:])
