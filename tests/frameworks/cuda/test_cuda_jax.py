"""Calls on JAX arrays on a device; see `jax_cases.py`."""

import pytest
from shim.device import COMPILER, NO_COMPILER
from test_cuda_replays import HAS_BINDINGS, run_cases

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.frameworks,
    pytest.mark.skipif(not HAS_BINDINGS, reason="needs cuda.bindings: pip install cuda-bindings"),
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
]


@pytest.mark.parametrize("mark", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_jax(mark, tmp_path):
    pytest.importorskip("jax", reason="install jax to test its arrays")
    flags = "--xla_force_host_platform_device_count=2"
    run_cases("jax_cases.py", mark, tmp_path, JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
