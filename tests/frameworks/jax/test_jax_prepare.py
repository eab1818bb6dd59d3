"""`prepare` on JAX arrays: the operators' bits and derivatives, also jitted."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install jax to test its arrays")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gatherum  # noqa: E402
from strategies import same_bits  # noqa: E402


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_a_scatter(reduction):
    rng = np.random.default_rng(1)
    data, updates, indices = rng.random((5, 2)), rng.random((4, 2)), jnp.array([4, 0, -1, 3])
    prepared = gatherum.prepare("scatter_slices", jnp.asarray(data), indices, reduction=reduction)
    expected = gatherum.scatter_slices(data, np.asarray(indices), updates, reduction=reduction)
    operands = jnp.asarray(data), jnp.asarray(updates)
    for call in (prepared, jax.jit(prepared)):
        assert same_bits(np.asarray(call(*operands)), expected)
    check_grads(prepared, operands, 2, ("fwd", "rev"), rtol=1e-3)


def test_a_gather_and_errors():
    prepared = gatherum.prepare("gather", ((3,), "f8"), [2, 0])
    assert same_bits(np.asarray(prepared(jnp.arange(3.0))), np.array([2.0, 0]))
    with pytest.raises(
        ValueError, match=r"^gather: the call was prepared for `data` of shape \(3,\)"
    ):
        prepared(jnp.ones(4))
    with pytest.raises(
        TypeError, match=r"^gather: the call was prepared for .* float64, got float32"
    ):
        prepared(jnp.ones(3, "f4"))
