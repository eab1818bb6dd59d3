"""Runs a program as if this machine had a GPU with PyTorch and CuPy: the trial of tests/device.

    python tests/frameworks/cuda/gpu_double.py -m pytest test_cuda_gpu.py
    python tests/frameworks/cuda/gpu_double.py program.py argument

The driver is that of `doubles`, and the core stands for the kernels. torch is the real one: what
asks for a device "cuda" gets tensors of the host, whose calls go through `gatherum.torch.cuda`.
CuPy is `cupy_double`. Streams do nothing, and a graph runs again what was run while it was
captured. `gatherum verify` has few rows. Given to pytest by ``-p gpu_double``, this leaves two
tests of each function, and none of those that only a device answers.
"""

import runpy
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import ClassVar

from doubles import CompilerDouble, DriverDouble, run_on_core

DRIVER = DriverDouble()
STREAM, CUPY_STREAM = 40, 60


class Graph:
    """A graph: the runs that were asked for while it was captured, on CuPy's stream or torch's."""

    open: ClassVar[list["Graph"]] = []

    def __init__(self, *_):
        self.runs = []

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
    """Run a plan, and keep it for a graph that is captured."""
    for graph in Graph.open:
        graph.runs.append(run)
    run_on_core(*run)


def double_driver():
    """Put the doubles in the place of the driver and of NVRTC, and the core in that of kernels."""
    import gatherum.cuda.plan_launches
    from gatherum._command import verify_cases
    from gatherum.cuda import driver, explain

    explain._COPIED = 1 << 20
    rows = list(verify_cases.case_rows())[::60]
    verify_cases.case_rows = lambda: iter(rows)
    driver._import = {"driver": DRIVER, "nvrtc": CompilerDouble()}.__getitem__
    gatherum.cuda.plan_launches.run = run_or_capture


def double_cupy():
    """Put the small CuPy in the place of CuPy."""
    import cupy_double

    cupy_double.Graph = Graph
    sys.modules["cupy"] = cupy_double


def double_torch():
    """Let torch say that it has a device, and give tensors of the host for those on it."""
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
            return function(*map(moved, args), **{k: moved(v) for k, v in (kwargs or {}).items()})

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
    """Capture what is run meanwhile."""
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()


class Event:
    """An event of torch, which takes a millisecond."""

    def __init__(self, **_):
        self.record = self.synchronize = lambda: None

    def elapsed_time(self, other):
        return 1.0


def _other_version(*_):
    raise ValueError("another version of DLPack")


def _through_the_ops(torch):
    """Give tensors of the host the kernels of those on a CUDA device."""
    import warnings

    from gatherum._model.operators import OPERATORS
    from gatherum._system import native

    native.set_torch = _other_version  # then the core leaves tensors to torch
    from gatherum.torch import adapter, cuda
    from gatherum.torch.autograd import gradients
    from gatherum.torch.library import ops

    library = torch.library.Library("gatherum", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are replaced
        for row in OPERATORS.values():
            for name, kernel in ops.kernels(row, cuda.run).items():
                library.impl(name, kernel, "CPU")
    gradients._plain = lambda *_: None
    cuda.FRAMEWORK.__class__._place = lambda *_: torch.device("cpu")
    adapter.TorchAdapter.device = lambda self, value: "cuda"
    sys.modules["gatherum.torch"]._kept = library


# These ask torch where a tensor is, or for its allocator.
ONLY_ON_A_DEVICE = {
    "test_a_graph_refuses_what_waits",
    "test_graphs_that_inductor_makes",
    "test_two_devices_are_named",
}


def pytest_collection_modifyitems(items):
    """Leave two tests of each function: a trial, not a test."""
    names = [item.originalname for item in items]
    items[:] = [
        item
        for number, (item, name) in enumerate(zip(items, names, strict=True))
        if name not in ONLY_ON_A_DEVICE and names[:number].count(name) < 2
    ]


def double():
    """Set all doubles."""
    double_driver()
    double_cupy()
    double_torch()


def run_program(program, *rest):
    """Run a file, or a module after ``-m``."""
    if program == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *rest]
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    double()
    run_program(*sys.argv[1:])
