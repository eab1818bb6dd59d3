"""On this processor, `exp` and `log` of the CUDA kernel and of the core have the same bits."""

import numpy as np
import pytest
from shim.device import COMPILER, NO_COMPILER, ShimDevice
from variants import AXES

from canaries import guarded, strays
from gatherum._derivatives import elementary
from gatherum._model import dtypes
from gatherum.cuda import elementary as on_device
from gatherum.cuda import launch_sizes
from strategies import same_bits

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
KINDS = ["float64", "float32", "float16", "bfloat16"]


def samples(dtype, count=3000):
    """Return values of arbitrary bits, and values with finite results, including subnormal ones."""
    rng = np.random.default_rng(5)
    anything = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -1.0, 0.5**0.5, 2.0**-1022, 5e-324]
    near = rng.uniform(-760, 720, count), rng.uniform(-110, 90, count), rng.normal(1, 0.3, count)
    with np.errstate(all="ignore"):
        parts = [np.array(special), *near]
        return np.concatenate([anything, *(part.astype(dtype) for part in parts)])


def mapped(function, values):
    result, device = guarded(values.shape, values.dtype), ShimDevice()
    addresses = (array.ctypes.data for array in (values, result))
    on_device.map_on_device(device, function, values.dtype.name, *addresses, values.size)
    assert strays(result) == []
    return result, device


@pytest.mark.parametrize("function", ["exp", "log"])
@pytest.mark.parametrize("dtype_name", KINDS)
def test_the_bits_are_those_of_the_core(function, dtype_name):
    if dtype_name == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="needs ml_dtypes for bfloat16")
    values = samples(dtypes.read_dtype(dtype_name))
    result, device = mapped(function, values)
    assert same_bits(result, getattr(elementary, function)(values))
    (kernel,) = device.launches
    axes = AXES["elementary"]
    assert {name for name, _ in kernel.macros} == set(axes)
    assert all(value in map(str, axes[name]) for name, value in kernel.macros)


def test_nothing_is_launched_for_no_items():
    assert mapped("exp", np.empty(0))[1].launches == []


def test_offsets_of_64_bits(monkeypatch):
    monkeypatch.setattr(launch_sizes, "OFFSET_LIMIT", 1)
    values = samples(np.dtype("f8"), 100)
    result, device = mapped("exp", values)
    assert same_bits(result, elementary.exp(values))
    assert ("OFFSET_BITS", "64") in device.launches[0].macros


def test_threads_take_more_where_the_grid_is_full(monkeypatch):
    monkeypatch.setattr(launch_sizes, "BLOCKS_PER_PROCESSOR", 1)
    values = samples(np.dtype("f4"), 1000)
    assert same_bits(mapped("log", values)[0], elementary.log(values))
