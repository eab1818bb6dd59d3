"""Calls and derivatives under JAX's strict settings: no promotion of dtypes or ranks."""

import contextlib
from functools import partial
from itertools import product

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402

import gatherum  # noqa: E402
import gatherum.groups  # noqa: E402
import gatherum.jax  # noqa: E402
from gatherum._model.reductions import REDUCTIONS  # noqa: E402
from gatherum.groups import functions  # noqa: E402
from group_calls import has_derivatives  # noqa: E402
from samples import every  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _strict():
    with contextlib.ExitStack() as settings:
        settings.enter_context(jax.numpy_dtype_promotion("strict"))
        settings.enter_context(jax.numpy_rank_promotion("raise"))
        yield


DTYPES = ("bfloat16", "float32", "float64", "complex64")
MODES = ("raise", "drop", "clip")
DATA, GROUPS = (4, 3), np.array([0, 2, 2, 0])

# The arguments of an operator: indices, the shape of updates, and attributes.
SCATTERS = {
    "scatter_slices": (GROUPS, DATA, {}),
    "scatter_slices across": (np.array([[0, 2], [2, -1]]), (4, 2, 2), {"axis": 1}),
    "scatter_slices, one row": (GROUPS, (3,), {}),
    "scatter_elements": (np.array([[0, 2, 1], [0, 0, 1]]), (2, 3), {"axis": 0}),
    "scatter_nd": (np.array([[0, 1], [2, 2], [0, 1]]), (3,), {}),
    "scatter_nd, batches": (np.array([[[1]], [[0]], [[2]], [[0]]]), (4, 1), {"batch_dims": 1}),
    "scatter_nd, one number": (np.array([[0], [2], [0]]), (), {}),
}
GATHERS = {
    "gather": (GROUPS, {}),
    "gather across": (np.array([[0, 2], [2, -1]]), {"axis": 1}),
    "gather_elements": (np.array([[0, 2, 1], [0, 0, 1]]), {"axis": 0}),
    "gather_nd": (np.array([[0, 1], [2, 2], [0, 1]]), {}),
    "gather_nd, batches": (np.array([[[1]], [[0]], [[2]], [[0]]]), {"batch_dims": 1}),
}


def numbers(shape, dtype, seed=1):
    values = np.random.default_rng(seed).uniform(0.5, 2, shape)
    values = values + 1j * values[..., ::-1] if dtype.startswith("complex") and shape else values
    return jnp.asarray(values).astype(dtype)


def derive(function, *operands):
    """Compute a function, and trace its first and second derivatives, which checks all types."""
    places = tuple(range(len(operands)))

    def total(*operands):
        result = function(*operands)
        return jnp.real(result * jnp.conj(result)).astype(np.float32).sum()

    def gradients(*operands):
        return jax.grad(total, places)(*operands)

    def changes(*operands):
        return jax.jvp(gradients, operands, operands)

    def changes_of_changes(*operands):
        return jax.grad(lambda *arguments: jax.jvp(total, arguments, arguments)[1], places)(
            *operands
        )

    def backward_twice(*operands):
        return jax.vjp(gradients, *operands)[1](operands)

    function(*operands)
    for each in (gradients, changes, changes_of_changes, backward_twice):
        jax.eval_shape(each, *operands)
        batch = tuple(jnp.stack([each, each]) for each in operands)
        jax.eval_shape(jax.vmap(each), *batch)
    if operands[0].dtype.kind == "f":
        jax.eval_shape(jax.hessian(total, places), *operands)
    for derived, operand in zip(jax.eval_shape(gradients, *operands), operands, strict=True):
        assert (derived.dtype, derived.shape) == (operand.dtype, operand.shape)


@pytest.mark.parametrize(("name", "mode"), every(4, product(GATHERS, MODES)))
def test_gathers(name, mode):
    indices, attributes = GATHERS[name]
    op = getattr(gatherum.jax, name.split()[0].rstrip(","))
    for dtype in DTYPES:
        derive(lambda data: op(data, indices, mode=mode, **attributes), numbers(DATA, dtype))


@pytest.mark.parametrize(
    ("name", "reduction", "include_self"), every(5, product(SCATTERS, REDUCTIONS, [True, False]))
)
def test_scatters(name, reduction, include_self):
    indices, moved, attributes = SCATTERS[name]
    op = getattr(gatherum.jax, name.split()[0].rstrip(","))
    turn = list(SCATTERS).index(name) + list(REDUCTIONS).index(reduction) + include_self
    dtypes = [DTYPES[(turn + step) % len(DTYPES)] for step in (0, 1)]
    if reduction in ("max", "min"):  # complex numbers do not support these
        dtypes = ["float16" if dtype == "complex64" else dtype for dtype in dtypes]
    attributes = {"reduction": reduction, "include_self": include_self, **attributes}
    for dtype, mode in zip(dtypes, (MODES[turn % 3], "raise"), strict=True):
        run = partial(scattered, op, indices, {"mode": mode, **attributes})
        derive(run, numbers(DATA, dtype), numbers(moved, dtype, 2))


def scattered(op, indices, attributes, data, updates):
    return op(data, indices, updates, **attributes)


@pytest.mark.parametrize("name", every(3, [*functions.REDUCES, *functions.TRANSFORMS]))
def test_groups(name):
    run = gatherum.groups.transform if name in functions.TRANSFORMS else gatherum.groups.reduce
    more = {} if name in functions.TRANSFORMS else {"fill_value": 0}
    more |= {"q": 0.3} if name.endswith("quantile") else {}
    for dtype in ("bfloat16", "float32", "complex64"):
        if dtype == "complex64" and not _takes(run, name, more):
            continue

        def called(values):
            return run(values, GROUPS, func=name, size=4, **more)

        values = numbers(DATA, dtype)
        if has_derivatives(name):
            derive(called, values)
        else:
            called(values)
            jax.eval_shape(called, values)


def _takes(run, name, more):
    try:
        run(numbers(DATA, "complex64"), GROUPS, func=name, size=4, **more)
    except TypeError as error:
        assert "is not defined for dtype" in str(error)
        return False
    return True


@pytest.mark.parametrize("reduction", every(3, REDUCTIONS))
def test_aggregate(reduction):
    sources, targets = jnp.array([0, 3, 1, 2]), jnp.array([1, 1, 0, 3])
    pointer = jnp.array([0, 1, 1, 4])
    if reduction == "none":
        pytest.skip("an aggregation reduces")
    for dtype, mode in (("bfloat16", "drop"), ("float32", "raise"), ("float64", "clip")):

        def by_edges(data, weights, mode=mode):
            return gatherum.aggregate(data, sources, targets, 4, reduction, weights, mode=mode)

        def by_pointer(data, weights):
            return gatherum.aggregate(data, sources, None, None, reduction, weights, indptr=pointer)

        derive(by_edges, numbers(DATA, dtype), numbers((4,), dtype, 2))
        derive(by_pointer, numbers(DATA, dtype), numbers((4,), dtype, 2))
        derive(lambda data: by_edges(data, None), numbers(DATA, dtype))
        derive(lambda data: by_edges(data, 2.0), numbers(DATA, dtype))
        jax.eval_shape(
            lambda data, ends: gatherum.aggregate(
                data, sources, None, None, reduction, indptr=ends
            ),
            numbers(DATA, dtype),
            pointer,
        )


@pytest.mark.parametrize("reduction", ["add", "mean", "mul", "max"])
def test_derivatives_of_eager_calls(reduction):
    for dtype in ("float32", "bfloat16"):

        def total(data, updates):
            result = gatherum.scatter_slices(data, GROUPS, updates, reduction=reduction)
            return result.astype(np.float32).sum()

        operands = numbers(DATA, dtype), numbers(DATA, dtype, 2)
        for result, operand in zip(jax.grad(total, (0, 1))(*operands), operands, strict=True):
            assert result.dtype == operand.dtype
