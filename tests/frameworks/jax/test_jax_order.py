"""XLA on the CPU applies the updates of JAX's own scatters in order, as the docs say."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install jax to test its arrays: pip install jax")


@pytest.mark.parametrize("jit", [False, True])
def test_updates_are_applied_in_order(jit):
    rng = np.random.default_rng(0)
    index = rng.integers(0, 50, 20_000)
    updates = rng.standard_normal(20_000).astype(np.float32)
    expected = np.zeros(50, np.float32)
    for place, value in zip(index, updates, strict=True):
        expected[place] += value

    def added(index, updates):
        return jax.numpy.zeros(50, "float32").at[index].add(updates)

    total = functools.partial(jax.ops.segment_sum, num_segments=50)
    for call in (added, lambda index, updates: total(updates, index)):
        result = np.asarray((jax.jit(call) if jit else call)(index, updates))
        assert result.tobytes() == expected.tobytes()
