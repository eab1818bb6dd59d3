"""JAX's other transforms: loops, rematerialization, shards, exports, donated buffers."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.export  # noqa: E402, F811  # not loaded by jax itself
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import gatherum.jax  # noqa: E402
from gatherum.jax.primitives import TARGET  # noqa: E402

INDICES = np.array([[0, 2], [2, 2], [1, 0], [0, 0]], np.int32)


def step(carry, _=None):
    taken = gatherum.jax.gather_elements(carry, INDICES)
    return gatherum.jax.scatter_elements(carry, INDICES, taken * 0.1, reduction="add"), None


def steps_by_numpy(data, n):
    for _ in range(n):
        taken = gatherum.gather_elements(data, INDICES) * 0.1
        data = gatherum.scatter_elements(data, INDICES, taken, reduction="add")
    return data


def test_a_loop():
    data = np.random.default_rng(0).standard_normal((3, 2))
    result, _ = jax.jit(lambda data: jax.lax.scan(step, data, None, length=5))(data)
    np.testing.assert_array_equal(result, steps_by_numpy(data, 5))
    while_found = jax.lax.fori_loop(0, 5, lambda _, carry: step(carry)[0], jnp.asarray(data))
    np.testing.assert_array_equal(while_found, result)


def test_gradients_through_a_loop_and_rematerialized():
    data = jnp.asarray(np.random.default_rng(0).standard_normal((3, 2)))

    def total(one, data):
        return (jax.lax.scan(one, data, None, length=5)[0] ** 2).sum()

    plain = jax.grad(functools.partial(total, step))(data)
    again = jax.jit(jax.grad(functools.partial(total, jax.checkpoint(step))))(data)
    by_hand = data
    for _ in range(5):
        by_hand = step(by_hand)[0]
    np.testing.assert_allclose(again, plain, rtol=1e-12)
    slope = (total(step, data + 1e-6) - total(step, data - 1e-6)) / 2e-6
    np.testing.assert_allclose(plain.sum(), slope, rtol=1e-6)


def test_a_branch():
    data = jnp.arange(4.0)

    def run(first):
        return jax.lax.cond(first, lambda: gatherum.jax.gather(data, [0]), lambda: data[3:])

    assert [run(first).tolist() for first in (True, False)] == [[0.0], [3.0]]


TRANSPOSED = {
    "gather": ("scatter_slices", np.array([[0, 2], [2, 2]]), {"axis": -2}),
    "gather_elements": ("scatter_elements", INDICES, {}),
    "gather_nd": ("scatter_nd", np.array([[0, 1], [2, 0], [0, 1]]), {}),
}


@pytest.mark.parametrize("op", TRANSPOSED)
def test_linear_transposes(op):
    """The transpose of a gather is the scatter-add of the same indices, and vice versa."""
    inverse, indices, attributes = TRANSPOSED[op]
    data = np.random.default_rng(0).standard_normal((3, 2))
    taken = getattr(gatherum, op)(data, indices, **attributes)

    def take(table):
        return getattr(gatherum.jax, op)(table, indices, **attributes)

    def add(new):
        add = getattr(gatherum.jax, inverse)
        return add(jnp.zeros((3, 2)), indices, new, reduction="add", **attributes)

    (result,) = jax.jit(jax.linear_transpose(take, data))(taken)
    expected = getattr(gatherum, inverse)(
        np.zeros((3, 2)), indices, taken, reduction="add", **attributes
    )
    np.testing.assert_array_equal(result, expected)
    (back,) = jax.linear_transpose(add, taken)(result)
    np.testing.assert_array_equal(back, getattr(gatherum, op)(expected, indices, **attributes))


def test_checkify_changes_nothing():
    from jax.experimental import checkify

    table, rows = jnp.arange(4.0), jnp.array([3, 1])
    checked = jax.jit(checkify.checkify(gatherum.jax.gather, errors=checkify.all_checks))
    error, result = checked(table, rows)
    assert error.get() is None
    assert result.tolist() == [3.0, 1.0]
    with pytest.raises((RuntimeError, ValueError), match="index 4 is out of bounds"):
        jax.block_until_ready(checked(table, rows + 1))


def test_without_jit():
    with jax.disable_jit():
        assert gatherum.gather(jnp.arange(3.0), [2, 0]).tolist() == [2.0, 0.0]
        assert jax.grad(lambda a: gatherum.gather(a, [2, 2]).sum())(jnp.arange(3.0))[2] == 2


def test_shapes_without_a_run():
    result = jax.eval_shape(lambda a: gatherum.gather(a, INDICES), jnp.zeros((3, 5), "bfloat16"))
    assert (result.shape, result.dtype) == ((4, 2, 5), jnp.bfloat16)


def mesh():
    assert len(jax.devices()) >= 2
    return Mesh(np.array(jax.devices()[:2]), ("x",))


def shard_map(run, **specs):
    try:
        from jax import shard_map as wrapped
    except ImportError:  # before JAX 0.6
        from jax.experimental.shard_map import shard_map as wrapped
    return wrapped(run, mesh=mesh(), **specs)


ROWS, ALL = PartitionSpec("x"), PartitionSpec()


@pytest.mark.usefixtures("several_devices")
def test_shards_of_indices():
    table = np.random.default_rng(0).standard_normal((10, 3))
    indices = np.random.default_rng(1).integers(0, 10, 8)
    run = shard_map(gatherum.jax.gather, in_specs=(ALL, ROWS), out_specs=ROWS)
    expected = gatherum.gather(table, indices)
    for call in (run, jax.jit(run)):
        np.testing.assert_array_equal(call(table, indices), expected)
    gradient = jax.grad(lambda table: (run(table, indices) ** 2).sum())(jnp.asarray(table))
    wanted = jax.grad(lambda table: (jnp.take(table, indices, 0) ** 2).sum())(jnp.asarray(table))
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


@pytest.mark.usefixtures("several_devices")
def test_shards_of_a_scatter_stay_where_they_are():
    data = np.zeros((8, 3))
    indices = np.random.default_rng(1).integers(0, 4, 10)
    updates = np.random.default_rng(2).standard_normal((10, 3))

    def run(data, indices, updates):
        return gatherum.jax.scatter_slices(data, indices, updates, reduction="add")

    sharded = shard_map(run, in_specs=(ROWS, ALL, ALL), out_specs=ROWS)
    half = gatherum.scatter_slices(data[:4], indices, updates, reduction="add")
    for call in (sharded, jax.jit(sharded)):
        np.testing.assert_array_equal(call(data, indices, updates), np.concatenate([half, half]))
    text = jax.jit(sharded).lower(data, indices, updates).compile().as_text()
    assert "all-gather" not in text
    gradient = jax.grad(lambda new: sharded(data, indices, new).sum())(jnp.asarray(updates))
    np.testing.assert_array_equal(gradient, np.full((10, 3), 2.0))


def test_a_result_that_differs_between_shards_is_not_taken_for_one_that_does_not():
    if not hasattr(jax, "shard_map"):
        pytest.skip("this JAX does not tell")
    run = shard_map(gatherum.jax.gather, in_specs=(ALL, ROWS), out_specs=ALL)
    with pytest.raises(ValueError, match="out_specs"):
        run(np.zeros((4, 2)), np.zeros(4, int))


@pytest.mark.usefixtures("several_devices")
def test_custom_partitioning_keeps_rows_where_they_are():
    partitioned = pytest.importorskip("jax.experimental.custom_partitioning")

    @partitioned.custom_partitioning
    def take(table, indices):
        return gatherum.jax.gather(table, indices)

    def partition(mesh, arguments, _):
        shardings = tuple(argument.sharding for argument in arguments)
        spec = arguments[1].sharding.spec
        return mesh, gatherum.jax.gather, NamedSharding(mesh, PartitionSpec(*spec, None)), shardings

    def result(mesh, arguments, _):
        return NamedSharding(mesh, PartitionSpec(*arguments[1].sharding.spec, None))

    take.def_partition(
        partition=partition,
        infer_sharding_from_operands=result,
        sharding_rule="n d, i -> i d",
    )
    where = mesh()
    table = jax.device_put(np.arange(20.0).reshape(10, 2), NamedSharding(where, ALL))
    indices = np.random.default_rng(0).integers(0, 10, 8)
    placed = jax.device_put(indices, NamedSharding(where, ROWS))
    compiled = jax.jit(take).lower(table, placed).compile()
    actual = compiled(table, placed)
    np.testing.assert_array_equal(actual, gatherum.gather(np.asarray(table), indices))
    assert {shard.data.shape for shard in actual.addressable_shards} == {(4, 2)}
    assert "all-gather" not in compiled.as_text()


LOADED = """
import sys
import numpy as np
import jax
import jax.export
import gatherum.jax
jax.config.update("jax_enable_x64", True)
again = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
data, indices, updates = (np.load(path) for path in sys.argv[2:5])
print(np.asarray(again.call(data, indices, updates)).tobytes().hex())
try:
    again.call(data, indices + 100, updates).block_until_ready()
except (RuntimeError, ValueError) as error:
    print(str(error).splitlines()[0])
"""


def test_an_export_runs_in_another_process(tmp_path):
    import os
    import subprocess
    import sys

    from source import SOURCE

    rng = np.random.default_rng(0)
    data, updates = rng.standard_normal((50, 4)), rng.standard_normal((300, 4))
    indices = rng.integers(0, 50, 300)

    def run(data, indices, updates):
        summed = gatherum.jax.scatter_slices(data, indices, updates, reduction="mean")
        return gatherum.jax.gather(summed, indices[:7], mode="wrap")

    check = jax.export.DisabledSafetyCheck.custom_call(TARGET)
    exported = jax.export.export(jax.jit(run), disabled_checks=[check])(data, indices, updates)
    paths = [tmp_path / "exported", *(tmp_path / f"{n}.npy" for n in "diu")]
    paths[0].write_bytes(exported.serialize())
    for path, array in zip(paths[1:], (data, indices, updates), strict=True):
        np.save(path, array)
    environment = os.environ | {"PYTHONPATH": SOURCE}
    environment.pop("XLA_FLAGS", None)  # with one device
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, paths)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    bits, sentence = done.stdout.splitlines()
    summed = gatherum.scatter_slices(data, indices, updates, reduction="mean")
    assert bits == gatherum.gather(summed, indices[:7]).tobytes().hex()
    with pytest.raises(IndexError) as caught:
        gatherum.scatter_slices(data, indices + 100, updates)
    assert sentence.endswith(f"OUT_OF_RANGE: {caught.value}")


def test_a_donated_array_becomes_the_result():
    run = jax.jit(functools.partial(gatherum.jax.scatter_slices, reduction="add"), donate_argnums=0)
    data = jnp.zeros((1000, 16), np.float32)
    where = data.unsafe_buffer_pointer()
    result = run(data, np.array([3, 3]), jnp.ones((2, 16), np.float32))
    assert data.is_deleted()
    assert result.unsafe_buffer_pointer() == where
    assert result[3].tolist() == [2.0] * 16


def test_data_that_are_not_donated_stay_as_they_are():
    data = jnp.zeros((1000, 16), np.float32)
    updates = jnp.ones((2, 16), np.float32)
    for call in (gatherum.scatter_slices, jax.jit(gatherum.jax.scatter_slices)):
        result = call(data, np.array([3, 3]), updates)
        assert not data.any()
        assert result[3].all()


def test_calls_from_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    data = np.random.default_rng(0).standard_normal((1000, 8))
    indices = np.random.default_rng(1).integers(0, 1000, 20_000)
    run = jax.jit(gatherum.jax.gather)
    expected = gatherum.gather(data, indices)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: np.asarray(run(data, indices)), range(40)):
            np.testing.assert_array_equal(result, expected)


def test_arrays_that_a_compiled_function_holds():
    """Eager arrays inside of a trace: the call is compiled with the rest."""
    table, rows = jnp.arange(4.0), jnp.array([3, 0])
    assert gatherum.gather(table, rows).tolist() == [3.0, 0.0]
    doubled = jax.jit(lambda x: x * gatherum.gather(table, rows))
    assert doubled(2.0).tolist() == [6.0, 0.0]
    with jax.disable_jit():
        assert gatherum.gather(table, rows).tolist() == [3.0, 0.0]
        assert doubled(2.0).tolist() == [6.0, 0.0]


def test_equal_parameters_can_have_different_meanings():
    """Eager calls are cached by their attributes: True differs from 1, and -0.0 from 0."""
    table, rows = jnp.arange(4.0), jnp.array([3, 9])
    for fill, sign in ((0, False), (-0.0, True), (0.0, False), (0, False)):
        result = gatherum.gather(table, rows, mode="fill", fill_value=fill)
        assert bool(jnp.signbit(result[1])) is sign
    gatherum.gather(table, rows[:1], negative=True)
    with pytest.raises(TypeError, match="`negative` must be True or False, got 1"):
        gatherum.gather(table, rows[:1], negative=1)
    with pytest.raises(ValueError, match="`mode` must be one of"):
        gatherum.gather(table, rows[:1], mode=["raise"])


def test_a_call_that_is_known_raises_as_the_first_does():
    """The core runs the call and waits. A failing call runs again to produce its message."""
    table, rows = jnp.arange(4.0), jnp.array([3, 0])
    for _ in range(3):
        assert gatherum.gather(table, rows).tolist() == [3.0, 0.0]
        with pytest.raises(IndexError, match=r"^gather: index 9 is out of .* \(indices\[1\]\)$"):
            gatherum.gather(table, jnp.array([0, 9]))
        assert gatherum.scatter_elements(table, rows, rows * 2.0).tolist() == [0.0, 1.0, 2.0, 6.0]
        with pytest.raises(IndexError, match=r"^scatter_elements: index -5 is out of bounds "):
            gatherum.scatter_elements(table, jnp.array([0, -5]), rows * 2.0)
        with pytest.raises(ValueError, match=r"^gather: `axis` must be in"):
            gatherum.gather(table, rows, 1)


def test_updates_that_are_missing_where_a_call_is_known():
    data, rows = jnp.zeros((3, 2)), jnp.array([0])
    for updates in (jnp.ones((1, 2)), 1.0):
        assert gatherum.scatter_slices(data, rows, updates).sum() == 2
    with pytest.raises(TypeError) as expected:
        gatherum.scatter_slices(np.zeros((3, 2)), [0], None)
    for call in (gatherum.scatter_slices, gatherum.jax.scatter_slices):
        with pytest.raises(TypeError) as caught:
            call(data, rows, None)
        assert str(caught.value) == str(expected.value)
