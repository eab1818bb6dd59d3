"""Errors of calls on JAX arrays, and their messages."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.export  # noqa: E402, F811  # not loaded by jax itself
import jax.numpy as jnp  # noqa: E402

import gatherum.jax  # noqa: E402
from strategies import OPERATORS, SCATTERS  # noqa: E402

DATA = np.arange(12, dtype=np.float32).reshape(3, 4)
RIGHT = {
    "gather": (DATA, np.array([0, 2])),
    "gather_elements": (DATA, np.zeros((2, 4), int)),
    "gather_nd": (DATA, np.array([[0, 1], [2, 3]])),
    "scatter_slices": (DATA, np.array([0, 2]), DATA[:2]),
    "scatter_elements": (DATA, np.zeros((2, 4), int), DATA[:2]),
    "scatter_nd": (DATA, np.array([[0, 1], [2, 3]]), DATA[0, :2]),
}
RUNTIME = (RuntimeError, ValueError)  # XLA's error is either, by dispatch


def replaced(op, operand, value):
    operands = list(RIGHT[op])
    operands[operand] = value
    return operands


def bad(op):
    """Return a call whose last index is invalid."""
    indices = RIGHT[op][1].copy()
    indices.flat[-1] = -7
    return replaced(op, 1, indices)


def sentence(op, operands, **attributes):
    """Return the message of NumPy's call."""
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        getattr(gatherum, op)(*operands, **attributes)
    return type(caught.value), str(caught.value)


def arrays(operands):
    return [jnp.asarray(each) if isinstance(each, np.ndarray) else each for each in operands]


def wrong_calls(op):
    yield RIGHT[op], {"mode": "clamp"}
    yield RIGHT[op], {"negative": 1}
    yield RIGHT[op], {"batch_dims" if op.endswith("nd") else "axis": 9}
    yield RIGHT[op], {"batch_dims" if op.endswith("nd") else "axis": 0.5}
    yield replaced(op, 1, np.zeros((2, 4))), {}
    yield replaced(op, 1, np.zeros((2, 4), bool)), {}
    yield replaced(op, 0, np.zeros((), np.float32)), {}
    if op in SCATTERS:
        yield RIGHT[op], {"reduction": "sum"}
        yield replaced(op, 2, np.ones((7, 7), np.float32)), {}
        yield replaced(op, 2, np.ones(2, np.int32)), {}
        yield replaced(op, 2, 1j), {}
    else:
        yield RIGHT[op], {"mode": "fill", "fill_value": 1e300}
        yield RIGHT[op], {"mode": "fill", "fill_value": "x"}


@pytest.mark.parametrize("op", OPERATORS)
def test_sentences_are_those_of_numpys_calls(op):
    for operands, attributes in wrong_calls(op):
        expected = sentence(op, operands, **attributes)
        arguments = arrays(operands)
        for call in (getattr(gatherum, op), getattr(gatherum.jax, op)):
            assert sentence_of(call, arguments, attributes) == expected
        whole = [each for each in arguments if isinstance(each, jax.Array)]

        def run(*tracers, op=op, arguments=arguments, attributes=attributes):
            replaced_by = iter(tracers)
            each = [next(replaced_by) if isinstance(one, jax.Array) else one for one in arguments]
            return getattr(gatherum, op)(*each, **attributes)

        assert sentence_of(jax.jit(run), whole, {}) == expected


def sentence_of(call, operands, attributes):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(*operands, **attributes)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("op", OPERATORS)
def test_an_invalid_index(op):
    expected = sentence(op, bad(op))
    operands = arrays(bad(op))
    for call in (getattr(gatherum, op), getattr(gatherum.jax, op)):
        with pytest.raises(IndexError) as caught:
            call(*operands)
        assert (type(caught.value), str(caught.value)) == expected
    jitted = jax.jit(getattr(gatherum.jax, op))
    for _ in range(2):
        with pytest.raises(RUNTIME) as caught:
            jitted(*operands).block_until_ready()
        assert f"{expected[1]}" in str(caught.value)
    right = np.asarray(jitted(*RIGHT[op]))  # the process and the compiled call remain usable
    np.testing.assert_array_equal(right, getattr(gatherum, op)(*RIGHT[op]))
    for mode in ("clip", "wrap", "fill", "drop"):
        result = getattr(gatherum, op)(*operands, mode=mode)
        np.testing.assert_array_equal(result, getattr(gatherum, op)(*bad(op), mode=mode))


def test_both_classes_of_runtime_errors():
    """A function that has run before raises another class than one that has not."""
    right, wrong = arrays(RIGHT["gather"]), arrays(bad("gather"))
    _, expected = sentence("gather", bad("gather"))
    for runs, error in ((0, jax.errors.JaxRuntimeError), (2, ValueError)):
        jitted = jax.jit(functools.partial(gatherum.jax.gather, axis=0))  # not compiled before
        for call in (jitted, jitted.lower(*right).compile()):
            for _ in range(runs):
                np.testing.assert_array_equal(call(*right), gatherum.gather(*RIGHT["gather"]))
            with pytest.raises(error) as caught:
                call(*wrong).block_until_ready()
            assert str(caught.value).startswith(f"OUT_OF_RANGE: {expected}")


@pytest.mark.usefixtures("several_devices")
def test_several_devices():
    """Their runtime may prefix the sentence; an eager call raises only the sentence."""
    _, expected = sentence("gather", bad("gather"))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), "x")
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    operands = jax.device_put(arrays(bad("gather")), everywhere)
    with pytest.raises(RUNTIME) as caught:
        jax.jit(gatherum.jax.gather)(*operands).block_until_ready()
    assert expected in str(caught.value)
    with pytest.raises(IndexError) as caught:
        gatherum.gather(*operands)
    assert str(caught.value) == expected


@pytest.mark.parametrize("op", OPERATORS)
def test_every_index_is_checked_where_the_result_is_empty(op):
    empty = np.zeros((3, 0), np.float32)
    indices = np.array([[7]])
    operands = [empty, indices]
    if op in SCATTERS:
        operands.append(np.zeros((1, 1, 0) if op == "scatter_slices" else (1, 0), np.float32))
    if op.endswith("elements"):
        return  # there are no indices
    expected = sentence(op, operands)
    with pytest.raises(IndexError) as caught:
        getattr(gatherum, op)(*arrays(operands))
    assert (type(caught.value), str(caught.value)) == expected
    with pytest.raises(RUNTIME) as caught:
        jax.jit(getattr(gatherum, op))(*arrays(operands)).block_until_ready()
    assert expected[1] in str(caught.value)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_nothing_can_be_brought_into_an_empty_axis(mode):
    operands = np.zeros((0, 3)), np.array([1])
    expected = sentence("gather", operands, mode=mode)
    with pytest.raises(IndexError) as caught:
        gatherum.gather(*arrays(operands), mode=mode)
    assert (type(caught.value), str(caught.value)) == expected


def test_values_of_unsigned_indices():
    for dtype in (np.uint8, np.uint32, np.uint64):
        operands = DATA, np.array([np.iinfo(dtype).max], dtype)
        expected = sentence("gather", operands)
        with pytest.raises(IndexError) as caught:
            gatherum.gather(*arrays(operands))
        assert (type(caught.value), str(caught.value)) == expected


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "float4_e2m1fn"])
def test_packed_types_are_refused(name):
    if not hasattr(jnp, name):
        pytest.skip(f"this JAX has no {name}")
    packed = jnp.zeros((3, 4), name)
    for op in OPERATORS:
        operands = replaced(op, 0, packed)
        words = (
            f"{op}: `data` must have a dtype of JAX that stores each number in whole bytes, "
            f"got {name}"
        )
        for call in (getattr(gatherum, op), jax.jit(getattr(gatherum.jax, op))):
            with pytest.raises(TypeError) as caught:
                call(*arrays(operands))
            assert str(caught.value) == words
        if name.startswith(("int", "uint")):
            with pytest.raises(
                TypeError, match=f"`indices` must have an integer dtype, got {name}"
            ):
                getattr(gatherum, op)(*arrays(replaced(op, 1, packed[:2])))


def test_keys_are_refused():
    with pytest.raises(TypeError, match=r"^gather: `data` must have a dtype of JAX that "):
        gatherum.gather(jax.random.split(jax.random.key(0), 3), [0])


def test_out_is_refused():
    with pytest.raises(TypeError) as caught:
        gatherum.gather(jnp.asarray(DATA), [0], out=np.zeros((1, 4), np.float32))
    assert str(caught.value) == (
        "gather: `out` must be None for JAX arrays, which nothing can write to"
    )


def test_data_decides():
    with pytest.raises(TypeError) as caught:
        gatherum.gather(DATA, jnp.array([0]))
    assert str(caught.value).startswith(
        "gather: `indices` must be a NumPy array, got a jax."
    ) and str(caught.value).endswith("write np.asarray(indices)")


def test_symbolic_sizes_are_refused():
    (n,) = jax.export.symbolic_shape("n")
    shapes = jax.ShapeDtypeStruct((n, 2), np.float32), jax.ShapeDtypeStruct((3,), np.int32)
    with pytest.raises(TypeError, match=r"^gather: `data` must have sizes that are numbers, got "):
        jax.eval_shape(gatherum.jax.gather, *shapes)


def test_another_platform_is_refused_when_lowering():
    traced = jax.jit(gatherum.jax.gather).trace(jnp.asarray(DATA), jnp.array([0]))
    with pytest.raises(NotImplementedError) as caught:
        traced.lower(lowering_platforms=("tpu",))
    assert str(caught.value) == (
        "gather: JAX arrays must be on the CPU or on a CUDA device, got tpu, and gatherum has no "
        "kernels for it; write jax.device_put(data, jax.devices('cpu')[0])"
    )


def test_calls_are_lowered_for_cuda_devices_without_a_device():
    arrays = jnp.asarray(DATA), jnp.array([0])
    for mode, target in (("raise", "TARGET"), ("clip", "RECORDABLE_TARGET")):
        traced = jax.jit(lambda *each, m=mode: gatherum.jax.gather(*each, mode=m)).trace(*arrays)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        assert f"@{getattr(gatherum.jax, target)}(" in text


def without_x64():
    return (
        jax.enable_x64(False) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(False)
    )


@pytest.mark.parametrize("func", ["cumsum", "rank"])
@pytest.mark.parametrize("mode", ["raise", "drop"])
def test_without_x64_groups_and_columns_must_fit(func, mode):
    groups = np.array([0, 0, 1], np.int32)
    message = (
        f"^groups.transform: results for {2**29 * 9} groups and columns need 64-bit numbers; set "
        "jax_enable_x64$"
    )
    with without_x64(), pytest.raises(ValueError, match=message):
        values = jnp.ones((9, 3), jnp.int8)
        gatherum.groups.transform(values, groups, func, axis=1, size=2**29, mode=mode)


def test_without_x64_groups_of_a_batch_must_fit():
    def transform(values, groups):
        return gatherum.groups.transform(values, groups, "cumsum", size=2**30)

    with (
        without_x64(),
        pytest.raises(ValueError, match=r"^groups.transform: results for 3221225472"),
    ):
        jax.vmap(transform)(jnp.ones((3, 3), jnp.int8), jnp.zeros((3, 3), jnp.int32))


def test_without_x64_values_must_fit():
    with without_x64():
        data = jnp.asarray(DATA)
        assert gatherum.gather(data, np.array([2, -1])).shape == (2, 4)  # int64 that fits
        assert gatherum.jax.gather(data, [0]).dtype == np.float32
        for op, operand, array, known in (
            ("gather", "indices", np.array([2**32]), "int32"),
            ("gather", "indices", np.array([2**63], np.uint64), "uint32"),
            ("gather", "data", DATA.astype(np.float64), "float32"),
        ):
            operands = {"data": data, "indices": [0], operand: array}
            with pytest.raises(TypeError) as caught:
                getattr(gatherum.jax, op)(**operands, mode="wrap")
            assert str(caught.value) == (
                f"{op}: `{operand}` must fit in {known}, the widest that JAX has without "
                f"jax_enable_x64, got {array.dtype}"
            )


def test_explicit_shards_are_refused():
    if not hasattr(jax, "set_mesh"):
        pytest.skip("this JAX has no explicit axes")
    from jax.sharding import AxisType, PartitionSpec

    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        table = jax.device_put(jnp.arange(16.0).reshape(8, 2), PartitionSpec("x", None))
        rows = jax.device_put(jnp.array([7, 0, 3]), PartitionSpec())
        for call in (gatherum.gather, jax.jit(gatherum.jax.gather)):
            with pytest.raises(TypeError) as caught:
                call(table, rows)
            assert str(caught.value).startswith(
                "gather: `data` must not be sharded along explicit axes of a mesh, got "
            )
        whole = jax.device_put(table, PartitionSpec())
        gradient = jax.grad(lambda table: gatherum.gather(table, rows).sum())(whole)
        assert gradient.sum() == 6
        within = jax.sharding.auto_axes(gatherum.jax.gather, out_sharding=PartitionSpec())
        assert within(table, rows)[:, 0].tolist() == [14.0, 0.0, 6.0]


@pytest.mark.parametrize("op", OPERATORS)
def test_masks_are_not_lost(op):
    class Converts:
        def __array__(self, dtype=None, copy=None):
            return masked

    for operand in range(1, len(RIGHT[op])):
        masked = np.ma.array(RIGHT[op][operand], mask=True)
        data, *others = replaced(op, operand, Converts())
        with pytest.raises(TypeError, match="must not be a masked array"):
            getattr(gatherum, op)(jnp.asarray(data), *others)
