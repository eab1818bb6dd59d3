"""Calls on arrays that two devices of this host share: the division of work, and the same bits."""

import functools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import DATA_DTYPES, OPERATORS, calls, outcome, same_outcome

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import gatherum.jax  # noqa: E402
from gatherum._model.call import Attributes  # noqa: E402
from gatherum.jax.dtypes import _WHOLE  # noqa: E402
from gatherum.jax.sharding import DimensionNumbering  # noqa: E402

pytestmark = pytest.mark.usefixtures("several_devices")
X = "x"
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((10, 8)).astype(np.float32)
CUBE = RNG.standard_normal((4, 5, 6))
# operator, shapes of data and indices, attributes; then each operand's sharding, the result's, and
# whether it needs shards to be gathered
DIVIDED = [
    ("gather", (10, 8), (6,), {}, [(None, None), (X,)], (X, None), False),
    ("gather", (10, 8), (6,), {}, [(None, X), (None,)], (None, X), False),
    ("gather", (10, 8), (6,), {}, [(X, None), (None,)], (None, None), True),
    ("gather", (4, 5, 6), (2, 3), {"axis": 1}, [(X, None, None), (None, None)],
     (X, None, None, None), False),
    ("gather", (4, 5, 6), (2, 4), {"axis": -2}, [(None, None, None), (None, X)],
     (None, None, X, None), False),
    ("gather_elements", (4, 6), (3, 6), {}, [(None, X), (None, X)], (None, X), False),
    ("gather_elements", (4, 6), (8, 6), {}, [(None, None), (X, None)], (X, None), False),
    ("gather_nd", (4, 5, 6), (4, 3, 1), {"batch_dims": 1}, [(X, None, None), (X, None, None)],
     (X, None, None), False),
    ("gather_nd", (4, 5, 6), (8, 2), {}, [(None, None, X), (None, None)], (None, X), False),
    ("gather_nd", (4, 5, 6), (8, 2), {}, [(None, None, None), (X, None)], (X, None), False),
    ("scatter_slices", (10, 8), (6,), {}, [(None, X), (None,), (None, X)], (None, X), False),
    ("scatter_slices", (10, 8), (6,), {}, [(None, None), (X,), (X, None)], (None, None), True),
    ("scatter_slices", (4, 5, 6), (2, 3), {"axis": 1},
     [(X, None, None), (None, None), (X, None, None, None)], (X, None, None), False),
    ("scatter_elements", (4, 6), (3, 6), {}, [(None, X)] * 3, (None, X), False),
    ("scatter_nd", (4, 5, 6), (4, 3, 1), {"batch_dims": 1}, [(X, None, None)] * 3,
     (X, None, None), False),
    ("scatter_nd", (4, 5, 6), (8, 2), {}, [(None, None, X), (None, None), (None, X)],
     (None, None, X), False),
]  # fmt: skip


@pytest.fixture(scope="module")
def mesh():
    assert len(jax.devices()) >= 2
    return Mesh(np.array(jax.devices()[:2]), (X,))


def operands_of(op, shape, index_shape, attributes):
    """Draw operands whose indices are valid, with duplicates."""
    data = RNG.standard_normal(shape)
    limit = min(shape) if op.endswith("nd") else shape[attributes.get("axis", 0)]
    indices = RNG.integers(-limit, limit, index_shape)
    if not op.startswith("scatter"):
        return [data, indices]
    inverse = {"scatter_slices": "gather"}.get(op, op.replace("scatter", "gather"))
    moved = gatherum.plan(inverse, data, indices, **attributes).shape
    return [data, indices, RNG.standard_normal(moved)]


def placed(mesh, operands, specs):
    return [
        jax.device_put(operand, NamedSharding(mesh, PartitionSpec(*spec)))
        for operand, spec in zip(operands, specs, strict=True)
    ]


def collectives(compiled):
    return re.findall(r"all-\w+\(|collective-\w+\(|dynamic-slice\(", compiled.as_text())


def parts(array):
    """Return the spec of an array's sharding, padded to its rank."""
    spec = tuple(array.sharding.spec)
    return spec + (None,) * (array.ndim - len(spec))


@pytest.mark.parametrize(
    ("op", "shape", "index_shape", "attributes", "specs", "result", "together"), DIVIDED, ids=str
)
def test_shards_stay_where_they_are(mesh, op, shape, index_shape, attributes, specs, result,
                                    together):  # fmt: skip
    operands = operands_of(op, shape, index_shape, attributes)
    sharded = placed(mesh, operands, specs)
    folds = [{}] if op.startswith("gather") else [{"reduction": r} for r in ("none", "add", "mean")]
    for more in folds:

        def run(*each, more=more):
            return getattr(gatherum.jax, op)(*each, **attributes, **more)

        compiled = jax.jit(run).lower(*sharded).compile()
        assert bool(collectives(compiled)) is together
        expected = getattr(gatherum, op)(*operands, **attributes, **more)
        for actual in (compiled(*sharded), getattr(gatherum, op)(*sharded, **attributes, **more)):
            assert parts(actual) == result
            np.testing.assert_array_equal(actual, expected)


def test_all_modes_and_fill_values(mesh):
    indices = np.array([-3, 0, 99, 2, 12, -11])
    for mode in ("clip", "wrap", "fill"):
        more = {"fill_value": 0.5} if mode == "fill" else {}
        table, places = placed(mesh, [ROWS, indices], [(None, None), (X,)])
        result = gatherum.gather(table, places, mode=mode, **more)
        np.testing.assert_array_equal(result, gatherum.gather(ROWS, indices, mode=mode, **more))


def test_derivatives_of_shards_stay_there(mesh):
    indices = np.array([3, 3, 0, 1, 9, 3])
    table, places = placed(mesh, [ROWS, indices], [(None, X), (None,)])

    def total(take, table, places):
        return (take(table, places) ** 2).sum()

    gradient = jax.jit(jax.grad(lambda *each: total(gatherum.jax.gather, *each)))
    compiled = gradient.lower(table, places).compile()
    assert not collectives(compiled)
    result = compiled(table, places)
    assert parts(result) == (None, X)
    wanted = jax.grad(lambda table: total(lambda t, i: jnp.take(t, i, 0), table, indices))(ROWS)
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


@pytest.mark.parametrize("spec", [(X, None), (None, X), (None, None)])
def test_a_softmax_of_shards_has_the_bits_of_numpy(mesh, spec):
    groups = np.array([0, 1, 0, 1, 2, 2, 0, 1, 2, 2])

    def call(values):
        return gatherum.groups.transform(values, groups, "softmax", size=3)

    values = jax.device_put(ROWS, NamedSharding(mesh, PartitionSpec(*spec)))
    expected = call(ROWS)
    assert np.asarray(jax.jit(call)(values)).tobytes() == expected.tobytes()
    assert np.asarray(call(values)).tobytes() == expected.tobytes()


def test_batches_of_shards(mesh):
    tables = RNG.standard_normal((4, 5, 3))
    indices = RNG.integers(0, 5, (4, 6))
    sharded = placed(mesh, [tables, indices], [(X, None, None), (X, None)])
    compiled = jax.jit(jax.vmap(gatherum.jax.gather)).lower(*sharded).compile()
    assert not collectives(compiled)
    expected = [gatherum.gather(*pair) for pair in zip(tables, indices, strict=True)]
    np.testing.assert_array_equal(compiled(*sharded), expected)


def test_sizes_that_devices_do_not_divide_are_whole(mesh):
    """A padded shard would contain indices that were never written."""
    rows = NamedSharding(mesh, PartitionSpec(X))

    def run(table, indices):
        indices = jax.lax.with_sharding_constraint(indices + 7, rows)
        taken = gatherum.jax.gather(table, indices)
        return jax.lax.with_sharding_constraint(taken, rows)

    indices = np.array([0, -3, 2])
    sharded = placed(mesh, [ROWS, indices], [(None, None), (None,)])
    np.testing.assert_array_equal(jax.jit(run)(*sharded), ROWS[indices + 7])


def test_an_index_that_is_invalid_in_a_shard(mesh):
    indices = np.array([0, 1, 2, 3, 77, 88])
    with pytest.raises(IndexError) as expected:
        gatherum.gather(ROWS, indices)
    sharded = placed(mesh, [ROWS, indices], [(None, None), (X,)])
    for call in (gatherum.gather, gatherum.jax.gather):
        with pytest.raises(IndexError) as caught:
            call(*sharded)
        assert str(caught.value) == str(expected.value)
    with pytest.raises((RuntimeError, ValueError), match=r"index 77 .* \(indices\[1\]\)"):
        jax.jit(gatherum.jax.gather)(*sharded).block_until_ready()  # of the second device's three
    np.testing.assert_array_equal(gatherum.gather(sharded[0], sharded[1] % 10), ROWS[indices % 10])


@pytest.mark.parametrize("spec", [(), (X,)])
def test_results_without_elements(mesh, spec):
    """XLA removes such calls on several devices, and an invalid index with them."""
    sharded = placed(mesh, [np.zeros((4, 0), np.float32), np.array([0, 7])], [(), spec])
    for call in (gatherum.gather, jax.jit(gatherum.jax.gather)):
        assert call(*sharded).shape == (2, 0)


def test_data_that_are_donated_are_written_in_place(mesh):
    data, indices, updates = placed(
        mesh, [ROWS, np.array([1, 1]), np.ones((2, 8), np.float32)], [(None, X), (None,), (None, X)]
    )
    where = [shard.data.unsafe_buffer_pointer() for shard in data.addressable_shards]
    run = functools.partial(gatherum.jax.scatter_slices, reduction="add")
    result = jax.jit(run, donate_argnums=0)(data, indices, updates)
    assert data.is_deleted()
    assert [s.data.unsafe_buffer_pointer() for s in result.addressable_shards] == where


def test_two_dimensions_on_two_axes_of_a_mesh():
    mesh = Mesh(np.array(jax.devices()[:2]).reshape(2, 1), ("x", "y"))
    sharded = placed(mesh, [ROWS, np.array([3, 0, 9, 9])], [(None, "y"), ("x",)])
    compiled = jax.jit(gatherum.jax.gather).lower(*sharded).compile()
    assert not collectives(compiled)
    np.testing.assert_array_equal(compiled(*sharded), ROWS[[3, 0, 9, 9]])
    both = placed(mesh, [ROWS, np.array([3, 0, 9, 9])], [(None, None), (("y", "x"),)])
    np.testing.assert_array_equal(gatherum.gather(*both), ROWS[[3, 0, 9, 9]])


def test_programs_for_one_device_and_exports_are_not_divided(mesh):
    import jax.export

    text = jax.jit(gatherum.jax.gather).lower(ROWS, np.array([1])).as_text()
    assert "CustomSPMDPartitioning" not in text
    sharded = placed(mesh, [ROWS, np.array([3, 1])], [(None, None), (X,)])
    assert "CustomSPMDPartitioning" in jax.jit(gatherum.jax.gather).lower(*sharded).as_text()
    trusted = jax.export.DisabledSafetyCheck.custom_call(gatherum.jax.TARGET)
    exported = jax.export.export(jax.jit(gatherum.jax.gather), disabled_checks=[trusted])(*sharded)
    assert "CustomSPMDPartitioning" not in exported.mlir_module()
    np.testing.assert_array_equal(exported.call(*sharded), ROWS[[3, 1]])


def test_dimensions_that_devices_may_divide():
    """Other sizes next to an axis, and repeated updates."""
    elements = Attributes("gather_elements", 1)
    numbered = DimensionNumbering.of(elements, (4, 5, 6), (3, 2, 6))
    assert numbered.operands == ((0, 1, 2), (3, 4, 2))
    assert numbered.result == (3, 4, 2)
    assert numbered.divisible == {4, 2}
    slices = Attributes("scatter_slices", reduction="add")
    numbered = DimensionNumbering.of(slices, (4, 5, 6), (3,), (1, 6))
    assert numbered.operands[0] == numbered.result == (0, 1, 2)
    assert numbered.operands[2][1] == 2
    assert numbered.operands[2][0] not in numbered.result
    assert numbered.divisible == {1, 2}


@pytest.mark.parametrize("op", OPERATORS)
@settings(max_examples=15)  # each compiles one or two programs
@given(data=st.data())
def test_random_calls_on_shards(mesh, op, data):
    """The bits of NumPy's call, for any sharding of the operands."""
    # XLA's own collectives change the bits of a NaN in floats of 8 and 16 bits, and of a boolean.
    known = [
        dtype for dtype in DATA_DTYPES
        if dtype.name in _WHOLE and dtype.isnative
        and (dtype.kind in "iu" or dtype.itemsize >= 4)
    ]  # fmt: skip
    call = data.draw(calls([op], data_dtypes=known, most_dimensions=4))
    expected = outcome(gatherum, call)
    if isinstance(expected, Exception):
        return  # test_random_calls covers that
    operands = []
    for array in call.args:
        if not isinstance(array, np.ndarray):
            operands.append(array)
            continue
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        even = [d for d, n in enumerate(array.shape) if n and n % 2 == 0]
        along = data.draw(st.sampled_from([None, *even]))
        operands += placed(mesh, [native], [[X if d == along else None for d in range(array.ndim)]])
    result = outcome(gatherum.jax, type(call)(op, tuple(operands), call.kwargs))
    assert not isinstance(result, Exception), result
    assert same_outcome(np.asarray(result), expected), (result, expected)
