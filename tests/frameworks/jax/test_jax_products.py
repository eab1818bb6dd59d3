"""Derivatives of products, which are known exactly: zeros, infinities, under- and overflow."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402

import gatherum.jax  # noqa: E402
from gatherum._derivatives import derivatives  # noqa: E402
from product_cases import DIRECTION, EDGES, SUBNORMAL, WEIGHTS, ZEROS  # noqa: E402


def products(case, op="scatter_elements"):
    """Return a case as a function of its vector."""
    indices = jnp.array(case.indices)
    indices = indices[:, None] if op == "scatter_nd" else indices

    def run(vector):
        data, updates = vector[: case.places], vector[case.places :]
        more = {"mode": "drop", "negative": False, "include_self": case.include_self}
        return getattr(gatherum.jax, op)(data, indices, updates, reduction="mul", **more)

    return run


FIRST = {
    "grad": jax.grad,
    "grad, compiled": lambda run: jax.jit(jax.grad(run)),
    "vmap of grad": lambda run: lambda x: jax.vmap(jax.grad(run))(x[None])[0],
    "grad of vmap": lambda run: lambda x: jax.grad(lambda t: jax.vmap(run)(t).sum())(x[None])[0],
    "checkpoint": lambda run: jax.grad(jax.checkpoint(run)),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives_at_the_edges(name):
    for what, case in EDGES.items():
        if name != "grad" and what not in ("overflow", "two zeros", "skipped"):
            continue
        run = products(case)
        gradient = FIRST[name](lambda x, run=run: run(x).sum())(jnp.array(case.vector))
        assert np.allclose(gradient, case.gradient(), 1e-14, 0, equal_nan=True), what


def test_subnormal_products_as_in_xla():
    """A product of subnormal numbers, as in JAX's own prod."""
    case = SUBNORMAL["subnormal"]
    gradient = jax.grad(lambda x: products(case)(x).sum())(jnp.array(case.vector))
    assert gradient.tolist() == jax.grad(jnp.prod)(jnp.array(case.vector)).tolist()


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_slices", "scatter_nd"])
def test_tangents_at_the_edges(op):
    for name, case in EDGES.items():
        x = jnp.array(case.vector)
        _, result = jax.jvp(products(case, op), (x,), (jnp.ones_like(x),))
        assert np.allclose(result, case.tangent(), 1e-14, 0, equal_nan=True), name


def test_an_operand_without_a_tangent_is_left_out():
    """A missing tangent is not 0, which an infinite factor would turn into NaN."""

    def run(updates):
        data = jnp.ones(1, jnp.float32)
        return gatherum.jax.scatter_elements(data, [0, 0], updates, reduction="mul")

    updates = jnp.array([1e30, 1e30], jnp.float32)
    _, result = jax.jvp(run, (updates,), (jnp.array([1.0, 0], jnp.float32),))
    assert result.tolist() == updates[:1].tolist()
    assert jax.jacfwd(run)(updates).tolist() == [updates.tolist()]


BATCHES = {
    "scatter_slices": ((4, 3), [[0, 2, 2], [3, 0, 0]], (3, 3)),
    "scatter_elements": ((4, 3), [[[0, 2, 1]] * 3, [[3, 3, 0]] * 3], (3, 3)),
    "scatter_nd": ((4, 3), [[[0], [2], [2]], [[3], [0], [0]]], (3, 3)),
}


@pytest.mark.parametrize("op", BATCHES)
def test_gradients_of_batches_of_indices(op):
    shape, indices, moved = BATCHES[op]
    rng = np.random.default_rng(8)
    data, updates = jnp.asarray(rng.uniform(1, 2, shape)), jnp.asarray(rng.uniform(1, 2, moved))

    def run(data, indices, updates):
        return (getattr(gatherum.jax, op)(data, indices, updates, reduction="mul") ** 2).sum()

    gradient = jax.grad(run, (0, 2))
    both = jax.vmap(gradient, (None, 0, None))(data, jnp.array(indices), updates)
    shared = jax.vmap(gradient, (0, None, 0))(data[None], jnp.array(indices[0]), updates[None])
    for k, each in enumerate(indices):
        for result, batched in zip(gradient(data, jnp.array(each), updates), both, strict=True):
            np.testing.assert_allclose(batched[k], result, 1e-14)
    for result, batched in zip(gradient(data, jnp.array(indices[0]), updates), shared, strict=True):
        np.testing.assert_array_equal(batched[0], result)


@pytest.mark.usefixtures("several_devices")
def test_gradients_on_several_devices():
    """They equal those on one device; XLA distributes the multiplications."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    rng = np.random.default_rng(9)
    data, updates = jnp.asarray(rng.uniform(1, 2, (4, 6))), jnp.asarray(rng.uniform(1, 2, (9, 6)))
    indices = jnp.asarray(rng.integers(0, 4, 9))

    def run(data, updates):
        return gatherum.jax.scatter_slices(data, indices, updates, reduction="mul").sum()

    gradient = jax.jit(jax.grad(run, (0, 1)))
    mesh = Mesh(np.array(jax.devices()), "x")
    columns = NamedSharding(mesh, PartitionSpec(None, "x"))
    shares = [jax.device_put(each, columns) for each in (data, updates)]
    for one, several in zip(gradient(data, updates), gradient(*shares), strict=True):
        np.testing.assert_allclose(several, one, 1e-14)


def test_a_reduction_without_a_rule_is_refused(monkeypatch):
    """It is not handled as a max or min."""
    monkeypatch.delitem(derivatives.FACTORS, "max")
    run = lambda x: gatherum.jax.scatter_elements(x, [0, 0], x, reduction="max").sum()  # noqa: E731
    x, refused = jnp.ones(2), "^no derivative of `reduction` 'max' is defined"
    with pytest.raises(NotImplementedError, match=refused):
        jax.grad(run)(x)
    with pytest.raises(NotImplementedError, match=refused):
        jax.jvp(jax.jit(run), (x,), (x,))
    assert run(x) == 2


@pytest.mark.parametrize(  # no zero, some zeros, all zeros; more only before a release
    "name",
    [
        pytest.param(name, marks=() if turn % 3 == 0 else pytest.mark.release)
        for turn, name in enumerate(ZEROS)
    ],
)
def test_derivatives_along_a_direction_to_the_fourth_order(name):
    case = ZEROS[name]
    run, x, v = products(case), jnp.array(case.vector), jnp.array(DIRECTION)

    def derivative(vector):
        return (run(vector) * WEIGHTS).sum()

    for order in range(1, 5):
        gradient = jax.grad(derivative)
        expected = case.along(WEIGHTS, order, DIRECTION)
        assert np.array_equal(jax.jit(gradient)(x), expected), order
        if order == 2:  # the third order is backward over forward over backward
            derivative = lambda x, f=derivative: jax.jvp(f, (x,), (v,))[1]  # noqa: E731
        else:
            derivative = lambda x, g=gradient: (g(x) * v).sum()  # noqa: E731


# The directional derivatives above are sums of these; one case has all of them on each change.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if turn == 2 else pytest.mark.release)
        for turn, name in enumerate(ZEROS)
    ],
)
def test_all_derivatives_to_the_fourth_order(name):
    case = ZEROS[name]
    run, x = products(case), jnp.array(case.vector)

    def function(vector):
        return (run(vector) * WEIGHTS).sum()

    ways = (jax.jacrev, jax.jacfwd, jax.jacrev, jax.jacfwd)
    for order, way in enumerate(ways, 1):
        function = way(function)
        result = jax.jit(function)(x)
        assert np.array_equal(result, case.derivative(WEIGHTS, order)), order
