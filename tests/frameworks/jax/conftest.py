"""Settings of JAX before it starts: two devices on this host, and 64-bit types."""

import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
flags = os.environ.get("XLA_FLAGS", "")
if "device_count" not in flags:
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=2".strip()


@pytest.fixture
def several_devices():
    """Skip the test if JAX is too old for calls on several devices."""
    from gatherum.jax import private

    if private.is_old:
        pytest.skip("calls on several devices need JAX 0.7")


@pytest.fixture(autouse=True)
def _wide():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
