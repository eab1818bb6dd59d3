"""Functions over groups of JAX arrays: the oracle's bits, also jitted; derivatives, errors."""

import re
from functools import partial
from itertools import product

import numpy as np
import pytest

from group_calls import call, defined_pairs, has_derivatives, near_ties, outcome, run, values_of

jax = pytest.importorskip("jax", reason="install jax to test its arrays")

import jax.export  # noqa: E402, F811  # not loaded by jax itself
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from gatherum.groups import functions, reduce, transform  # noqa: E402
from gatherum.groups import namespace as of_numpy  # noqa: E402
from gatherum.groups.rows import Method  # noqa: E402
from gatherum.jax import TARGET, namespace  # noqa: E402
from gatherum.reference import groups as reference  # noqa: E402
from samples import diagonal, every  # noqa: E402
from strategies import DATA_DTYPES, same_bits  # noqa: E402

pytestmark = pytest.mark.slow
NAMES = ("bool", "uint8", "uint64", "int32", "float8_e5m2", "float16", "bfloat16", "float32",
         "float64", "complex128")  # fmt: skip
DTYPES = [dtype for dtype in DATA_DTYPES if dtype.isnative and dtype.name in NAMES]
COMPILED = [jnp.dtype(name) for name in ("float32", "bfloat16", "int32", "complex64")]
ALL = (*functions.REDUCES, *functions.TRANSFORMS)
SMOOTH = [name for name in ALL if has_derivatives(name)]


def is_arithmetic(func):
    """Return True if XLA computes a function, with subnormal numbers as 0, rather than the core."""
    row = functions.FUNCTIONS.get(func) or functions.TRANSFORMS[func]
    return row.result(np.dtype(np.int32)) == np.float64


def flushed(array):
    """Return an array with 0 for each subnormal number and each -0."""
    if array.dtype.kind == "c":
        out = array.copy()
        out.real, out.imag = flushed(array.real), flushed(array.imag)
        return out
    if array.dtype.kind in "biu":
        return array
    least = jnp.finfo(array.dtype).tiny
    with np.errstate(all="ignore"):
        return np.where(np.abs(array) < least, np.zeros((), array.dtype), array)


# Half of the functions run eagerly, and half jitted. Before a release, each runs both ways.
@pytest.mark.parametrize(("dtype", "func"), defined_pairs(DTYPES, ALL, every=2))
def test_the_bits_of_the_oracle(dtype, func):
    rng = np.random.default_rng([*func.encode(), *str(dtype).encode()])
    shape, groups, more = call(rng)
    groups = groups.astype(groups.dtype.newbyteorder("="))
    more |= {"func": func, "ddof": int(rng.integers(3))}
    if rng.random() < 0.4:
        more["fill_value"] = bool(rng.random() < 0.5)
    values = values_of(rng, dtype, shape)
    if is_arithmetic(func):
        values = flushed(values)
    expected = outcome(run, values, groups, module=reference, **more)
    result = outcome(run, jnp.asarray(values), jnp.asarray(groups), **more)
    if isinstance(expected, type):
        assert result is expected
    elif is_arithmetic(func):
        assert same_bits(flushed(np.asarray(result)), flushed(expected))
    else:
        assert same_bits(np.asarray(result), expected)


@pytest.mark.parametrize(("dtype", "func"), defined_pairs(COMPILED, ALL, every=2, first=1))
def test_jitted_the_bits_are_the_same(dtype, func):
    """XLA fuses neighbouring operations: here it contracts a product's difference with the mean."""
    rng = np.random.default_rng(4)
    values = (rng.standard_normal((40, 3)) * 9).astype(dtype)
    groups, more = rng.integers(0, 6, 40), {"func": func, "size": 7, "fill_value": False}

    def called(values, factor, groups):
        return run(values * factor, groups, **more)

    factor = np.asarray(3, values.dtype)
    expected = outcome(called, values, factor, groups)
    result = outcome(jax.jit(called), *map(jnp.asarray, (values, factor, groups)))
    if isinstance(expected, type):
        assert result is expected
    else:
        assert same_bits(flushed(np.asarray(result)), flushed(expected))


@pytest.mark.parametrize("func", every(18, SMOOTH))
def test_derivatives(func):
    whole = ALL.index(func) % 2  # of groups that differ from column to column
    rng = np.random.default_rng(3)
    values = rng.uniform(0.5, 2, (6, 2))
    groups = rng.integers(0, 3, (6, 2)) if whole else np.array([0, 2, 0, 2, 1, 2])
    if func == "normalize":  # a single value becomes NaN
        groups = np.array([0, 2, 0, 2, 0, 2])
    function = partial(run, groups=groups, func=func, size=3, fill_value=0)
    check_grads(function, (values,), 2, ("fwd", "rev"), rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "func"),
    diagonal(
        3,
        ["float32", "bfloat16", "float64"],
        ["softmax", "log_softmax", "logsumexp", "nanlogsumexp"],
    ),
)
def test_exponentials_are_exported(name, func):
    """The export has no Python callback, and NumPy's bits."""
    rng = np.random.default_rng(8)
    values, groups = (
        (rng.standard_normal((40, 3)) * 9).astype(jnp.dtype(name)),
        rng.integers(0, 6, 40),
    )
    called = partial(run, func=func, size=7, fill_value=0)
    trusted = jax.export.DisabledSafetyCheck.custom_call(TARGET)
    exported = jax.export.export(jax.jit(called), disabled_checks=[trusted])(values, groups)
    again = jax.export.deserialize(exported.serialize())
    assert "callback" not in again.mlir_module()
    assert same_bits(np.asarray(again.call(values, groups)), called(values, groups))


@pytest.mark.parametrize("func", every(5, SMOOTH))
def test_derivatives_in_graphs(func):
    """Differentiate compiled functions with unknown groups, backward or forward."""
    rng = np.random.default_rng(7)
    values, groups = rng.uniform(0.5, 2, (6, 2)), np.array([0, 2, 0, 2, 1, 2])
    change = rng.standard_normal((6, 2))

    def called(values, groups):
        return run(values, groups, func=func, size=4, fill_value=0)

    def back(values, groups):
        result, pull = jax.vjp(partial(called, groups=groups), values)
        return pull(jnp.cos(result))[0]

    def forth(values, groups):
        return jax.jvp(partial(called, groups=groups), (values,), (change,))[1]

    derivative = (back, forth)[ALL.index(func) % 2]
    arrays = jnp.asarray(values), jnp.asarray(groups)
    np.testing.assert_allclose(
        jax.jit(derivative)(*arrays), derivative(*arrays), rtol=1e-12, atol=1e-14
    )


def test_the_table_of_segments_in_the_documentation():
    """The table of docs/group-libraries.md, compared with jax.ops."""
    values, groups = jnp.array([2.0, 2.0, 3.0]), jnp.array([0, 0, 1])
    outside = jnp.array([0, 5, -1])
    sums = jax.ops.segment_sum(values, outside, 2)
    assert same_bits(np.asarray(sums), np.asarray(reduce(values, outside, 2, mode="drop")))
    for name in ("max", "min"):
        segment = getattr(jax.ops, f"segment_{name}")
        for derive in (
            lambda of: jax.grad(lambda v: of(v).sum())(values),
            lambda of: jax.jvp(of, (values,), (jnp.array([1.0, 3.0, 1.0]),))[1],
        ):
            theirs = derive(partial(segment, segment_ids=groups, num_segments=2))
            ours = derive(partial(reduce, groups=groups, size=2, func=name))
            assert same_bits(np.asarray(ours), np.asarray(theirs))
        assert jnp.isinf(segment(values, groups, 3)[2])
        assert jnp.isnan(reduce(values, groups, 3, name)[2])
    ones, zeros = jnp.ones(1000, jnp.bfloat16), jnp.zeros(1000, int)
    assert jax.ops.segment_sum(ones, zeros, 1)[0] == 256
    assert reduce(ones, zeros, 1)[0] == 1000
    with pytest.raises(NotImplementedError):
        jax.grad(lambda v: jax.ops.segment_prod(v, groups, 2).sum())(values)
    with pytest.raises(TypeError):
        jax.ops.segment_sum(jnp.array([True, True]), groups[:2], 1)
    least = np.array([1e-310, 2e-310])
    assert np.asarray(reduce(jnp.asarray(least), groups[:2], 1))[0] == least.sum()
    assert np.asarray(jax.jit(jax.ops.segment_sum, static_argnums=2)(least, groups[:2], 1))[0] == 0


@pytest.mark.parametrize("func", every(6, ALL))
def test_batches(func):
    rng = np.random.default_rng(5)
    values, groups = rng.standard_normal((3, 6, 2)), rng.integers(0, 3, (3, 6))
    function = partial(run, func=func, size=3, fill_value=0)
    alone = [function(*map(jnp.asarray, each)) for each in zip(values, groups, strict=True)]
    assert same_bits(np.asarray(jax.vmap(function)(values, groups)), np.stack(alone))


def test_a_deviation_of_equal_values_has_a_gradient_of_zero():
    gradient = jax.grad(lambda values: reduce(values, [0, 0, 1], func="std").sum())
    assert same_bits(np.asarray(gradient(jnp.array([2.0, 2.0, 5.0]))), np.zeros(3))


def test_without_wide_types_results_are_narrow():
    jax.config.update("jax_enable_x64", False)
    values, groups = jnp.arange(3), jnp.array([0, 0, 1])
    assert reduce(values, groups, func="var").dtype == jnp.float32
    assert reduce(values, groups, func="count").dtype == jnp.int32
    assert jnp.array_equal(reduce(values, groups, func="var"), jnp.array([0.25, 0]))


@pytest.mark.parametrize(
    ("func", "name", "jitted"),
    every(
        5,
        product(
            ["var", "nanstd", "centre"],
            ["float32", "bfloat16", "complex64", "int32"],
            [False, True],
        ),
    ),
)
def test_without_wide_types_spreads_are_computed_in_them(func, name, jitted):
    jax.config.update("jax_enable_x64", False)
    rng = np.random.default_rng(9)
    values = (1000 + rng.standard_normal((50, 2))).astype(jnp.dtype(name))
    groups = rng.integers(0, 4, 50)
    expected = run(values, groups, func, module=reference, size=4)
    called = partial(run, func=func, size=4)
    result = (jax.jit(called) if jitted else called)(jnp.asarray(values), jnp.asarray(groups))
    assert result.dtype == (jnp.float32 if name == "int32" else expected.dtype)
    assert same_bits(np.asarray(result), expected.astype(result.dtype))


@pytest.mark.parametrize("func", every(2, ["var", "std", "centre"]))
def test_derivatives_without_wide_types(func):
    rng = np.random.default_rng(10)
    values, groups = 1000 + rng.standard_normal((6, 2)), np.array([0, 2, 0, 2, 1, 2])

    def back(values):
        return jax.grad(lambda v: (run(v, groups, func, size=4, fill_value=0) ** 2).sum())(values)

    single = jnp.asarray(values.astype("f4"))
    expected = back(single.astype(jnp.float64))
    jax.config.update("jax_enable_x64", False)
    for result in (back(single), jax.jit(back)(single)):
        assert result.dtype == jnp.float32
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("func", ["var", "std", "centre"])
def test_spreads_are_exported(func):
    jax.config.update("jax_enable_x64", False)
    values, groups = jnp.float32([1e5 - 1, 1e5 + 1, 7]), jnp.array([0, 0, 1])
    called = partial(run, func=func, size=2, fill_value=0)
    trusted = jax.export.DisabledSafetyCheck.custom_call(TARGET)
    exported = jax.export.export(jax.jit(called), disabled_checks=[trusted])(values, groups)
    again = jax.export.deserialize(exported.serialize())
    assert same_bits(np.asarray(again.call(values, groups)), np.asarray(called(values, groups)))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_half_is_rounded_once(name, jitted):
    dtype = jnp.dtype(name)
    values = near_ties(np.random.default_rng(6), dtype)
    with np.errstate(all="ignore"):
        expected = of_numpy.rounded(values.copy(), dtype)
    function = partial(namespace.rounded, target=dtype)
    result = (jax.jit(function) if jitted else function)(jnp.asarray(values))
    assert same_bits(flushed(np.asarray(result)), flushed(expected))


def test_large_transforms_in_a_graph():
    rng = np.random.default_rng(6)
    values, groups = rng.standard_normal(500_000), rng.integers(0, 50, 500_000)

    @jax.jit
    def loss(values, groups):
        return (transform(values, groups, "softmax", size=50) ** 2).sum()

    for _ in range(3):
        assert jnp.isfinite(jax.grad(loss)(values, groups)).all()


@pytest.mark.parametrize("func", ["softmax", "log_softmax", "normalize", "centre"])
def test_a_dropped_value_of_a_transform_has_the_gradient_0(func):
    def loss(values, groups, weights):
        result = transform(values, groups, func, size=1, mode="drop")
        return jnp.where(groups == 0, result * weights, 0).sum()

    values, groups = jnp.array([1.0, jnp.nan, 3.0, 5.0]), jnp.array([0, 9, 0, 0])
    weights, kept = jnp.array([1.0, 9.0, 2.0, 5.0]), jnp.array([0, 2, 3])
    alone = jax.grad(loss)(values[kept], groups[kept], weights[kept])
    whole = jax.grad(loss)(values, groups, weights)
    assert same_bits(np.asarray(whole[kept]), np.asarray(alone))
    assert whole[1] == 0


@pytest.mark.parametrize(
    ("call", "error_type", "message"),
    [
        (lambda: reduce(jnp.ones(3), [0, 1, 5], 3), IndexError,
         "groups.reduce: group 5 is not in [0, 3) (groups[2])"),
        (lambda: reduce(jnp.ones(3), jnp.ones(3)), TypeError,
         "groups.reduce: `groups` must have an integer dtype, got float64"),
        (lambda: jax.jit(reduce)(jnp.ones(3), jnp.zeros(3, int)), TypeError,
         "groups.reduce: `size` must be given where JAX traces a call, because the values of "
         "`groups` are not known there"),
        (lambda: jax.jit(lambda v, g: reduce(v, g, 2, "argmax"))(jnp.ones(3), jnp.zeros(3, int)),
         RuntimeError,
         "groups.reduce: `fill_value` must be given for arrays of Dask, and where JAX or torch "
         "traces a call, because it is not known there which groups are empty"),
        (lambda: reduce(jnp.arange(3), [0, 0, 2], func="max"), ValueError,
         "groups.reduce: `fill_value` must be given for 'max' of dtype int64, which has no value "
         "for an empty group: group 1 is empty"),
        (lambda: reduce(jnp.array([1, jnp.nan]), [0, 0], dtype="int32"), ValueError,
         "groups.reduce: numbers must be in the range of `dtype`, int32, got nan (values[1])"),
    ],
)  # fmt: skip
def test_reduce_and_transform_check_the_arguments_of_jax_arrays(call, error_type, message):
    with pytest.raises(error_type, match=re.escape(message)):
        call()


@pytest.mark.parametrize("func", ["sum", "first", "var", "argmax", "nansum", "softmax"])
@pytest.mark.parametrize("rank", [1, 2])
def test_a_compiled_graph_names_the_function(func, rank):
    groups = np.array([0, 5, 1, 6])
    groups = groups if rank == 1 else np.stack([groups, groups], 1)
    whole = func == "softmax"

    def run(values, entries):
        if whole:
            return transform(values, entries, func, size=5)
        return reduce(values, entries, 5, func, fill_value=0)

    name, at = "transform" if whole else "reduce", "1" if rank == 1 else "1, 0"
    expected = f"groups.{name}: group 5 is not in [0, 5) (groups[{at}])"
    for way in (run, jax.jit(run)):
        with pytest.raises(Exception, match=re.escape(expected)):
            jax.block_until_ready(way(jnp.ones((4, 2)), jnp.asarray(groups)))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "logsumexp"])
def test_gradients_of_values_that_are_left_out(name):
    for func, value, groups in ((name, 1e3, [-1, 0, 0]), (f"nan{name}", np.nan, [0, 0, 0])):
        call = partial(reduce, groups=groups, size=1, func=func, mode="drop")
        gradient = jax.grad(lambda x, call=call: call(x).sum())
        result = gradient(jnp.array([value, 1, 3]))
        assert result[0] == 0 and not jnp.isnan(result).any()


FOLDS = [name for name, row in functions.TRANSFORMS.items() if row.method is Method.FOLD]


@pytest.mark.parametrize("func", FOLDS)
def test_cumulative_folds_are_for_the_cpu(func):
    called = jax.jit(partial(run, func=func, size=2))
    with pytest.raises(NotImplementedError) as caught:
        jax.export.export(called, platforms=["cuda"])(np.ones(2), np.zeros(2, int))
    assert str(caught.value) == (
        f"groups.transform: '{func}' is implemented for values on the CPU, got cuda; write "
        "jax.device_put(values, jax.devices('cpu')[0])"
    )


@pytest.mark.parametrize("func", FOLDS)
def test_cumulative_folds_are_exported_and_batched(func):
    rng = np.random.default_rng(8)
    values, groups = rng.standard_normal((3, 40, 2)), rng.integers(-1, 6, (3, 40))
    called = partial(run, func=func, size=5, mode="drop")
    expected = np.stack([called(*each) for each in zip(values, groups, strict=True)])
    trusted = jax.export.DisabledSafetyCheck.custom_call(TARGET)
    batched = jax.jit(jax.vmap(called))
    exported = jax.export.export(batched, disabled_checks=[trusted])(values, groups)
    again = jax.export.deserialize(exported.serialize())
    assert same_bits(np.asarray(again.call(values, groups)), expected)


def test_gradients_of_cumulative_folds():
    groups, weights = jnp.array([0, 1, 0, 0, 9]), jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def gradient(func, values):
        def total(values):
            folded = run(values, groups, func, size=2, mode="drop")
            return jnp.where(groups < 2, folded * weights, 0).sum()

        return jax.jit(jax.grad(total))(jnp.array(values)).tolist()

    assert gradient("cumsum", [5.0, 6.0, 7.0, 8.0, jnp.nan]) == [8, 2, 7, 4, 0]
    assert gradient("cumprod", [2.0, 6.0, 0.0, 8.0, jnp.nan]) == [1, 2, 70, 0, 0]
    assert gradient("cummax", [2.0, 6.0, 1.0, 2.0, jnp.nan]) == [6, 2, 0, 2, 0]
    assert gradient("cummin", [-0.0, 6.0, 0.0, 1.0, jnp.nan]) == [4.5, 2, 3.5, 0, 0]
