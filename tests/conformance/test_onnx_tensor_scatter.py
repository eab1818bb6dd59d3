"""TensorScatter in ONNX's evaluator: its published cases, the pseudocode of its text, messages."""

import re

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="install onnx for gatherum.onnx: pip install onnx")
ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")
if not onnx.defs.has("TensorScatter"):
    pytest.skip("TensorScatter begins with onnx 1.19", allow_module_level=True)

from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from test_onnx_node_cases import CACHE_CASES  # noqa: E402

from gatherum.onnx import Evaluator, backend, reference_ops  # noqa: E402

CACHE = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
UPDATE = -np.ones((2, 2, 3), np.float32)
NAMES = ["past_cache", "update", "write_indices"]


def node_of(names=NAMES, **attributes):
    return helper.make_node("TensorScatter", names, ["present"], name="cache", **attributes)


def evaluator(node, opset=24):
    imports = [helper.make_opsetid("", opset)]
    return Evaluator(helper.make_function("l", "f", NAMES, ["present"], [node], imports))


def run(*operands, **attributes):
    node = node_of(NAMES[: len(operands)], **attributes)
    return backend.run_node(node, list(operands), opset_version=24)[0]


def pseudocode(past_cache, update, write_indices, mode="linear", axis=-2):
    """Return the result of the text's own loop."""
    axis %= past_cache.ndim
    present = past_cache.copy()
    for prefix in np.ndindex(past_cache.shape[:axis]):
        for position in range(update.shape[axis]):
            place = int(write_indices[prefix[0]]) + position
            if mode == "circular":
                place %= past_cache.shape[axis]
            present[(*prefix, place)] = update[(*prefix, position)]
    return present


def says(error, message):
    place = "TensorScatter (node 'cache', output 'present'): "
    return pytest.raises(error, match=f"^{re.escape(place + message)}$")


def test_the_published_cases_are_there():
    names = ["test_tensorscatter", "test_tensorscatter_3d", "test_tensorscatter_circular"]
    assert set(names) <= set(CACHE_CASES)


@pytest.mark.parametrize("name", sorted(CACHE_CASES))
@pytest.mark.parametrize(
    "evaluator", [Evaluator, lambda m: ReferenceEvaluator(m, new_ops=reference_ops())]
)
def test_published(name, evaluator):
    case = CACHE_CASES[name]
    session = evaluator(case.model)
    assert type(session.rt_nodes_[0]).__module__ == "gatherum.onnx.tensor_scatter"
    for inputs, (expected,) in case.data_sets:
        feeds = {i.name: a for i, a in zip(case.model.graph.input, inputs, strict=True)}
        (result,) = session.run(None, feeds)
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("seed", range(20))
def test_as_the_pseudocode(mode, seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 6))
    axis = int(rng.integers(1, rank))
    shape = tuple(int(size) for size in rng.integers(1, 5, rank))
    length = int(rng.integers(0, shape[axis] + 1))
    low, high = (0, shape[axis] - length) if mode == "linear" else (-9, 9)
    starts = rng.integers(low, high, shape[0], endpoint=True)
    cache = rng.integers(0, 2**32, shape, np.uint32).view(np.float32)
    update = rng.integers(0, 2**32, (*shape[:axis], length, *shape[axis + 1 :]), np.uint32)
    kept = cache.tobytes()
    axis -= rank * int(rng.integers(2))
    result = run(cache, update.view(np.float32), starts, mode=mode, axis=axis)
    expected = pseudocode(cache, update.view(np.float32), starts, mode, axis)
    assert result.shape == shape
    assert result.tobytes() == expected.tobytes()
    assert cache.tobytes() == kept


def test_without_positions_it_writes_from_0():
    assert run(CACHE, UPDATE).tolist() == run(CACHE, UPDATE, np.array([0, 0])).tolist()
    omitted = helper.make_node("TensorScatter", ["past_cache", "update", ""], ["present"])
    (present,) = backend.run_node(omitted, [CACHE, UPDATE])
    assert present[:, :2].tolist() == UPDATE.tolist()


def test_positions_wrap_around_without_overflow():
    starts = np.array([2**63 - 1, -(2**63)])  # 3 and 0 modulo 4
    present = run(CACHE, UPDATE, starts, mode="circular")
    assert np.flatnonzero(present[0, :, 0] == -1).tolist() == [0, 3]
    assert np.flatnonzero(present[1, :, 0] == -1).tolist() == [0, 1]
    with says(
        IndexError,
        "input `write_indices` ('write_indices') must be in [0, 2], so that 2 positions fit into "
        "the cache's 4, got 9223372036854775807 (write_indices[0])",
    ):
        run(CACHE, UPDATE, starts)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 0, 3), (2, 4, 0)])
def test_empty(mode, shape):
    cache = np.zeros(shape, np.float32)
    update = cache[:, :1]
    assert run(cache, update, np.zeros(shape[0], np.int64), mode=mode).shape == shape


NUMBERS = [
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn, ml_dtypes.int4,
    ml_dtypes.uint4, np.float16, np.float64, np.int8, np.uint64, np.bool_, np.complex64,
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_type_of_the_text(dtype):
    cache, update = np.ones((1, 3, 1)).astype(dtype), np.full((1, 1, 1), 2).astype(dtype)
    present = run(cache, update, np.array([1]))
    assert present.dtype == dtype
    assert present.tobytes() == cache[0, 0].tobytes() + update.tobytes() + cache[0, 0].tobytes()


def test_the_types_are_all_of_the_text():
    (types,) = onnx.defs.get_schema("TensorScatter", 24).type_constraints
    assert len(types.allowed_type_strs) == 24
    for text in types.allowed_type_strs:
        element_type = getattr(onnx.TensorProto, text[7:-1].upper())
        cache = np.zeros((1, 2, 1), helper.tensor_dtype_to_np_dtype(element_type))
        assert run(cache, cache[:, :1]).dtype == cache.dtype, text


def test_strings():
    cache = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
    update = np.array([["X", "Y"], ["Z", "W"]], object)
    present = run(cache, update, np.array([2, 0]), mode="circular", axis=1)
    assert present.tolist() == [["Y", "b", "X"], ["Z", "W", "f"]]


STARTS = np.array([0, 1])
WRONG = [
    (IndexError, (CACHE, UPDATE, np.array([2, 3])), {},
     "input `write_indices` ('write_indices') must be in [0, 2], so that 2 positions fit into "
     "the cache's 4, got 3 (write_indices[1])"),
    (IndexError, (CACHE, UPDATE, np.array([-1, 0])), {},
     "input `write_indices` ('write_indices') must be in [0, 2], so that 2 positions fit into "
     "the cache's 4, got -1 (write_indices[0])"),
    (ValueError, (CACHE, np.zeros((2, 5, 3), np.float32), STARTS), {},
     "input `update` ('update') must have shape (2, 0 to 4, 3), got (2, 5, 3)"),
    (ValueError, (CACHE, np.zeros((1, 2, 3), np.float32), STARTS), {},
     "input `update` ('update') must have shape (2, 0 to 4, 3), got (1, 2, 3)"),
    (ValueError, (CACHE, np.zeros((2, 2), np.float32), STARTS), {},
     "input `update` ('update') must have shape (2, 0 to 4, 3), got (2, 2)"),
    (ValueError, (CACHE, np.float32(0)[...], STARTS), {},
     "input `update` ('update') must have shape (2, 0 to 4, 3), got ()"),
    (ValueError, (CACHE, UPDATE, STARTS[:1]), {},
     "input `write_indices` ('write_indices') must have shape (2,), got (1,)"),
    (ValueError, (CACHE[0, 0], CACHE[0, 0], STARTS), {},
     "input `past_cache` ('past_cache') must have at least 2 dimensions, got 1"),
    (ValueError, (CACHE, UPDATE, STARTS), {"axis": -3},
     "`axis` must not be that of the batch, 0, got -3"),
    (ValueError, (CACHE, UPDATE, STARTS), {"axis": 3}, "`axis` must be in [-3, 3), got 3"),
    (ValueError, (CACHE, UPDATE, STARTS), {"mode": "ring"},
     "`mode` must be one of 'linear', 'circular', got 'ring'"),
    (TypeError, (CACHE, UPDATE, STARTS.astype(np.int32)), {},
     "input `write_indices` ('write_indices') must be int64, got int32"),
    (TypeError, (CACHE, UPDATE.astype(np.float64), STARTS), {},
     "input `update` ('update') must have the type of `past_cache`, float, got double"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "operands", "attributes", "message"), WRONG)
def test_messages(error, operands, attributes, message):
    session = evaluator(node_of(**attributes))
    with says(error, message):
        session.run(None, dict(zip(NAMES, operands, strict=True)), attributes={})


def test_before_opset_24():
    with says(ValueError, "begins with opset 24, the model imports opset 23"):
        evaluator(node_of(), 23)


def test_the_number_of_inputs():
    with says(
        ValueError,
        "must have 2 or 3 inputs (past_cache, update, write_indices), got ['past_cache']",
    ):
        evaluator(node_of(NAMES[:1]))
