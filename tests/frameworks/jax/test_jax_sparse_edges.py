"""`aggregate` on JAX arrays by a pointer and by SciPy matrices: bits, jit, derivatives."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install jax to test its arrays")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gatherum  # noqa: E402
from strategies import same_bits  # noqa: E402

pytestmark = pytest.mark.slow
INDPTR = np.array([0, 2, 2, 3, 7])
SOURCES = np.array([0, 4, 2, 1, 3, 3, 1])


def edge_operands(name="float32"):
    rng = np.random.default_rng(3)
    return rng.standard_normal((5, 2)).astype(name), rng.uniform(1, 2, 7).astype(name)


def call(data, sources, weights=None, indptr=INDPTR, reduction="add"):
    return gatherum.aggregate(data, sources, None, None, reduction, weights, indptr=indptr)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min", "mean"])
def test_the_bits_of_numpy(reduction):
    data, weights = edge_operands()
    expected = call(data, SOURCES, weights, INDPTR, reduction)
    arrays = tuple(map(jnp.asarray, (data, SOURCES, weights, INDPTR)))
    assert same_bits(np.asarray(call(*arrays, reduction)), expected)
    assert same_bits(np.asarray(jax.jit(call, static_argnums=4)(*arrays, reduction)), expected)
    known = jax.jit(lambda data, weights: call(data, SOURCES, weights, INDPTR, reduction))
    assert same_bits(np.asarray(known(data, weights)), expected)


def test_derivatives():
    data, weights = edge_operands("float64")

    def of(data, weights):
        return call(data, SOURCES, weights)

    check_grads(of, (data, weights), 2, ("fwd", "rev"), rtol=1e-3)
    traced = jax.jit(jax.grad(lambda d, p: call(d, SOURCES, weights, p).sum()))
    expected = jax.grad(lambda d: of(d, weights).sum())(jnp.asarray(data))
    assert same_bits(np.asarray(traced(data, INDPTR)), np.asarray(expected))


@pytest.mark.parametrize("hostile", [[1, 2, 2, 3, 7], [0, 3, 2, 3, 7], [0, 2, 2, 3, 9],
                                     [0, -2, 2, 3, 7], [0, 2, 2, 3, 6]])  # fmt: skip
def test_hostile_pointers(hostile):
    data, weights = map(jnp.asarray, edge_operands())
    with pytest.raises(ValueError, match=r"^aggregate: `indptr` must (begin|not|end).* got -?\d"):
        call(data, SOURCES, weights, jnp.asarray(hostile))
    with pytest.raises(Exception, match="out of bounds"):
        jax.jit(call)(data, SOURCES, weights, jnp.asarray(hostile)).block_until_ready()


def test_no_edges():
    none = jnp.zeros(0, int)
    for indptr in ([0], [0, 0, 0]):
        result = jax.jit(call)(jnp.ones((5, 2)), none, None, jnp.asarray(indptr))
        assert same_bits(np.asarray(result), np.zeros((len(indptr) - 1, 2)))
    with pytest.raises(ValueError, match=r"^aggregate: `indptr` must have at least 1 entry, got 0"):
        jax.jit(call)(jnp.ones((5, 2)), none, None, none)


def test_aggregate_checks_indptr_of_jax_arrays():
    with pytest.raises(TypeError, match=re.escape(
        "aggregate: `indptr` must have an integer dtype, got float32"
    )):  # fmt: skip
        call(jnp.ones((5, 2)), SOURCES, None, jnp.ones(2, "f4"))
    with pytest.raises(ValueError, match=re.escape("`indptr` must have 1 dimension, got 2")):
        call(jnp.ones((5, 2)), SOURCES, None, jnp.ones((2, 2), int))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_matrices_of_scipy(form):
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to try its matrices")
    data = edge_operands()[0]
    matrix = sparse.csr_array((edge_operands()[1], SOURCES, INDPTR), (4, 5)).asformat(form)
    expected = gatherum.aggregate(data, matrix, None, None, "add")
    assert same_bits(
        np.asarray(gatherum.aggregate(jnp.asarray(data), matrix, None, None, "add")), expected
    )
    jitted = jax.jit(lambda data: gatherum.aggregate(data, matrix, None, None, "add"))
    assert same_bits(np.asarray(jitted(data)), expected)
