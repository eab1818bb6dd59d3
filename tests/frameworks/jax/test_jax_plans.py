"""`plan`, `explain` and `index_report` on JAX values, and fill values that are arrays."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.export  # noqa: E402, F811  # not loaded by jax itself
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gatherum.jax  # noqa: E402

DATA, INDICES = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2, 0, 9])
UPDATES = np.ones((4, 4), np.float32)
STRUCTS = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (DATA, INDICES, UPDATES)]


def test_plans_are_those_of_numpys_arrays():
    expected = gatherum.plan("scatter_slices", DATA, INDICES, UPDATES, reduction="add")
    seen = []

    def traced(*tracers):
        seen.append(gatherum.plan("scatter_slices", *tracers, reduction="add"))
        return tracers[0]

    arrays = [jnp.asarray(each) for each in (DATA, INDICES, UPDATES)]
    jax.jit(traced)(*arrays)
    for operands in (arrays, STRUCTS, [arrays[0], *STRUCTS[1:]]):
        seen.append(gatherum.plan("scatter_slices", *operands, reduction="add"))
    assert seen == [expected] * 4


def test_explanations_and_reports_read_values():
    table, rows = jnp.asarray(DATA), jnp.asarray(INDICES)
    expected = gatherum.explain("gather", DATA, INDICES)
    plan = gatherum.plan("gather", table, rows)
    for explained in (gatherum.explain("gather", table, rows), gatherum.explain(plan, table, rows)):
        assert explained.refusal == expected.refusal
        assert "index 9 is out of bounds" in explained.refusal
        assert explained.svg() == expected.svg()
    assert gatherum.explain("gather", *STRUCTS[:2]).refusal == ""
    report = gatherum.index_report("gather", DATA, INDICES)
    assert (report.invalid, report.duplicates) == (1, 1)
    for data in (table, STRUCTS[0], (3, 4)):
        assert gatherum.index_report("gather", data, rows) == report


def test_values_that_cannot_be_read():
    words = "gather: `indices` must have values that can be read here, got a jax."
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), "x")
    shards = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    for indices in (STRUCTS[1], jax.device_put(INDICES, shards)):
        with pytest.raises(TypeError) as caught:
            gatherum.index_report("gather", DATA, indices)
        assert str(caught.value).startswith(words)
    with pytest.raises(TypeError) as caught:
        jax.jit(lambda rows: gatherum.index_report("gather", DATA, rows))(INDICES)
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith("Tracer")


def test_operands_without_a_plan():
    (n,) = jax.export.symbolic_shape("n")
    for wrong, words in (
        (jax.ShapeDtypeStruct((3,), "int4"), "whole bytes"),
        (jax.ShapeDtypeStruct((n,), "float32"), "sizes that are numbers"),
        (jax.random.key(0), "whole bytes"),
    ):
        with pytest.raises(TypeError, match=f"^gather: `data` must have .*{words}"):
            gatherum.plan("gather", wrong, STRUCTS[1])
    with pytest.raises(TypeError, match="`out` must be None for JAX"):
        gatherum.plan("gather", *STRUCTS[:2], out=jnp.zeros((4, 4)))
    for operands in (STRUCTS[:2], [jnp.asarray(DATA), STRUCTS[1]]):
        with pytest.raises(TypeError, match="must be a NumPy array, got a jax"):
            gatherum.gather(*operands)


CALLS = {
    "gather": (DATA, np.array([[0, 3], [-1, -4]]), {"axis": 1, "negative": False}),
    "gather_elements": (DATA, np.array([[0, 9, 1, 2], [-9, 1, 1, 1]]), {}),
    "gather_nd": (DATA, np.array([[0, 0], [2, 9], [7, 1]]), {}),
}


@pytest.mark.parametrize("mode", ["fill", "drop", "clip"])
@pytest.mark.parametrize("op", CALLS)
def test_an_item_that_is_an_array(op, mode):
    data, indices, attributes = CALLS[op]
    expected = getattr(gatherum, op)(data, indices, mode=mode, fill_value=0.5, **attributes)

    def run(data, indices, item):
        return getattr(gatherum.jax, op)(data, indices, mode=mode, fill_value=item, **attributes)

    table, places = jnp.asarray(data), jnp.asarray(indices)
    for call in (run, jax.jit(run)):
        for item in (jnp.float32(0.5), jnp.asarray(0.5)):  # the second is weakly typed
            result = call(table, places, item)
            assert result.dtype == np.float32
            np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(jax.jit(run)(table, places, 0.5), expected)
    batch = jax.vmap(run, (None, None, 0))(table, places, jnp.array([0.5, 2.0], np.float32))
    np.testing.assert_array_equal(batch[0], expected)
    wide = jnp.asarray(data, np.float64)
    check_grads(lambda data, item: run(data, places, item) ** 2, (wide, jnp.asarray(0.5)), 2)


def test_items_that_do_not_fit():
    table, rows = jnp.asarray(DATA), jnp.array([0, 9])
    for item, error, words in (
        (jnp.ones(1), ValueError, "be one item, of shape (), got shape (1,)"),
        (jnp.int32(1), TypeError, "have the dtype of `data`, float32, got int32"),
        (jnp.asarray(1j), TypeError, "have the dtype of `data`, float32, got complex128"),
    ):
        for call in (gatherum.gather, jax.jit(gatherum.jax.gather, static_argnames="mode")):
            with pytest.raises(error) as caught:
                call(table, rows, mode="fill", fill_value=item)
            assert str(caught.value) == f"gather: `fill_value` must {words}"
    unused = gatherum.gather(table, rows[:1], fill_value=jnp.ones(1))
    assert unused.shape == (1, 4)
    plan = gatherum.plan("gather", table, rows, mode="fill", fill_value=jnp.float32(1))
    assert plan.shape == (2, 4)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("gather", {"mode": "clip"}),
        ("gather_elements", {}),
        ("scatter_slices", {"reduction": "add"}),
    ],
)
def test_calls_that_repeat_are_known_to_the_core(op, attributes, monkeypatch):
    """The core compares attributes by identity, so names are kept as interned objects."""
    arrays = [jnp.asarray(each) for each in (DATA, INDICES[:3], UPDATES[:3])]
    operands = arrays if op.startswith("scatter") else arrays[:2]
    if op == "gather_elements":
        operands[1] = jnp.asarray(INDICES[None, :3])
    call = getattr(gatherum, op)
    expected = [call(*operands, **attributes) for _ in range(2)]
    monkeypatch.delattr("gatherum.jax.adapter.JaxAdapter.call")
    assert np.array_equal(call(*operands, **attributes), expected[0])
