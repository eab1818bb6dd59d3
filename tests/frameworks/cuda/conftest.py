"""A simulated machine with CUDA devices: see `doubles`, and `shim` for the kernels.

The shim is a separate package, for the tests of this folder and for `nox -s cuda`.
"""

import sys
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import DriverDouble, run_on_core, sort_on_host
from shim.device import COMPILER, NO_COMPILER, ShimDevice

from gatherum.cuda import driver, orders, plan_launches, radix_sort, small_scatters, sorted_updates
from gatherum.cuda.nvidia import Nvidia


@pytest.fixture
def machine(monkeypatch):
    """Replace the driver by a test double, and return the double."""
    double = DriverDouble()
    opened = driver.Driver(double)
    for module in (
        "driver",
        "device_calls",
        "nvidia",
        "array_protocols",
        "accumulator",
        "cub",
        "explain",
        "orders",
        "prepared",
        "replays",
    ):
        monkeypatch.setattr(f"gatherum.cuda.{module}.open_driver", lambda: opened)
    return double


@pytest.fixture
def on_core(machine, monkeypatch):
    """Like `machine`, with the core in place of the kernels: quick, and without a compiler."""
    monkeypatch.setattr("gatherum.cuda.plan_launches.run", run_on_core)
    monkeypatch.setattr("gatherum.cuda.plan_launches.sorts", lambda plan: False)
    return machine


@pytest.fixture
def several_launches(monkeypatch):
    """Run small scatters by the launches of larger ones."""
    monkeypatch.setattr(small_scatters, "MOST_TUPLES", 0)


@pytest.fixture
def library_sorts(monkeypatch, several_launches):
    """Let the framework sort the updates of small scatters, too."""
    monkeypatch.setattr(sorted_updates, "MOST_IN_BLOCK", 0)
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    monkeypatch.setattr(plan_launches, "program_of", plan_launches.program_of.__wrapped__)
    monkeypatch.setattr(orders, "program_of", orders.program_of.__wrapped__)


class ShimGpu(Nvidia):
    """A GPU whose kernels g++ compiles and this processor runs. The double handles other calls."""

    shim = ShimDevice()

    def launch(self, kernel, grid, block, arguments):
        self.shim.launch(kernel, grid, block, arguments)


@pytest.fixture
def on_shim(machine, monkeypatch):
    """Like `machine`, with the real kernels on the shim."""
    if COMPILER is None:
        pytest.skip(NO_COMPILER)

    monkeypatch.setattr("gatherum.cuda.cub.sort_with_cub", sort_on_host)
    monkeypatch.setattr("gatherum.cuda.device_calls.open_device", ShimGpu)
    return machine


@pytest.fixture
def as_cuda(monkeypatch):
    """Use the kernels for CUDA tensors on tensors in host memory."""
    torch = pytest.importorskip("torch", reason="install torch to test tensors: pip install torch")
    from gatherum._model.operators import OPERATORS
    from gatherum.torch import cuda, namespace, plain_folds, shared_results
    from gatherum.torch.autograd import autograd_kernels
    from gatherum.torch.functions import aggregation, elementary, quantized
    from gatherum.torch.library import ops
    from gatherum.torch.torch_scatter import softmax

    ran = []

    def run(attributes, *operands):
        ran.append(attributes.op)
        return cuda.run(attributes, *operands)

    def through_ops(
        op, data, indices, updates, axis, reduction, include_self, mode, negative, fill, _
    ):
        if updates is None:
            return ops.overload(op)(data, indices, axis, mode, negative, fill)
        fold = reduction, include_self, mode, negative
        return ops.overload(op)(data, indices, updates, axis, *fold)

    kernels = {}
    for row in OPERATORS.values():
        kernels |= ops.kernels(row, run)
    for name in elementary.NAMES:
        kernels |= dict.fromkeys(ops.with_below(name), partial(elementary._on_cuda, name))
    kernels |= dict.fromkeys(ops.with_below(softmax.NAME), softmax._on_cuda)
    kernels |= dict.fromkeys(ops.with_below(aggregation.NAME), aggregation._on_cuda)
    kernels[quantized.NAME] = quantized._on_cuda
    library = torch.library.Library("gatherum", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about replaced kernels
        for name, kernel in kernels.items():
            library.impl(name, kernel, "CPU")
    monkeypatch.setattr(cuda.FRAMEWORK.__class__, "stream", lambda *_: 40)
    monkeypatch.setattr(cuda.FRAMEWORK.__class__, "_place", lambda *_: torch.device("cpu"))
    # The core cannot read a device's memory, so all calls use the ops.
    monkeypatch.setattr(autograd_kernels, "_run_if_plain", lambda *_: None)
    monkeypatch.setattr(plain_folds, "_specs_and_views", lambda *_: None)
    monkeypatch.setattr(shared_results, "on_device", lambda x: True)
    monkeypatch.setattr(cuda, "replayed", lambda *_: None)
    replaced = {**vars(namespace.native), "dispatch_call": through_ops}
    monkeypatch.setattr(namespace, "native", SimpleNamespace(**replaced))
    yield ran
    library._destroy()
