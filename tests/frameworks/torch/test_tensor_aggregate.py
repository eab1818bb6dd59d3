"""`aggregate` on tensors: NumPy's bits, derivatives to data and weights, batches, graphs."""

import re
import sys
import warnings

import numpy as np
import pytest
from tensors import array_of, compiled, tensor_of, torch
from torch.autograd import gradcheck, gradgradcheck

import gatherum
from command_lines import shell
from gatherum._edges import edge_reductions
from gatherum._model.dtypes import is_reducible
from gatherum._model.reductions import FOLDS
from gatherum.torch import namespace
from strategies import DATA_DTYPES, MODES, value_bytes

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

NAMES = ("uint8", "int32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64")
DTYPES = [dtype for dtype in DATA_DTYPES if dtype.isnative and dtype.name in NAMES]


def drawn(rng, dtype, mode="raise"):
    """Return rows of arbitrary bits, edges, and weights of some of their dimensions."""
    beyond = 2 * (mode != "raise")
    data = np.frombuffer(value_bytes(rng, dtype, 15), dtype).reshape(5, 3)
    sources = rng.integers(-5 - beyond, 5 + beyond, (4, 6))
    targets = rng.integers(-3 - beyond, 3 + beyond, (4, 6))
    weights = np.frombuffer(value_bytes(rng, dtype, 6), dtype)
    return data, sources, targets, weights


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_bits_of_numpy(dtype, reduction, mode):
    if not is_reducible(dtype, reduction):
        return
    rng = np.random.default_rng(len(dtype.name) + len(reduction))
    data, sources, targets, weights = drawn(rng, dtype, mode)
    more = {"mode": mode, "negative": bool(rng.random() < 0.7)}
    if mode == "raise":
        more["negative"] = True
    options = edge_reductions.AggregateOptions(3, reduction, mode, more["negative"])
    for scale in (None, weights):
        expected = gatherum.aggregate(data, sources, targets, 3, reduction, scale, **more)
        operands = [None if each is None else tensor_of(each)
                    for each in (data, sources, targets, scale)]  # fmt: skip
        result = gatherum.aggregate(*operands[:3], 3, reduction, operands[3], **more)
        assert array_of(result, dtype).tobytes() == expected.tobytes()
        same = edge_reductions.aggregate_with_messages(namespace, *operands, options)
        assert array_of(same, dtype).tobytes() == expected.tobytes()
        out = torch.empty_like(result)
        assert gatherum.aggregate(*operands[:3], 3, reduction, operands[3], out=out, **more) is out
        assert array_of(out, dtype).tobytes() == expected.tobytes()


def edge_operands(dtype=torch.float64):
    torch.manual_seed(1)
    data = torch.randn(5, 2, dtype=dtype, requires_grad=True)
    weights = torch.randn(7, dtype=dtype, requires_grad=True)
    return data, torch.randint(0, 5, (7,)), torch.tensor([0, 0, 3, 1, 3, 3, 1]), weights


def call(reduction, **more):
    return lambda data, sources, targets, weights=None: gatherum.aggregate(
        data, sources, targets, 4, reduction, weights, **more
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", FOLDS)
def test_derivatives(reduction, weighted):
    data, sources, targets, weights = edge_operands()
    function = call(reduction)
    operands = (data, weights) if weighted else (data,)

    def of(data, weights=None):
        return function(data, sources, targets, weights)

    assert gradcheck(of, operands, check_forward_ad=True)
    assert gradgradcheck(of, operands)


def test_derivatives_of_complex_numbers_and_of_broadcast_weights():
    data, sources, targets, weights = edge_operands(torch.complex128)
    for reduction in ("add", "mean"):
        function = call(reduction)
        assert gradcheck(lambda d, w, f=function: f(d, sources, targets, w), (data, weights))
        one = weights.detach()[:1].requires_grad_()
        assert gradcheck(lambda d, w, f=function: f(d, sources, targets, w), (data, one))


@pytest.mark.parametrize("reduction", ["add", "mean", "max"])
def test_edges_that_are_left_out_have_no_gradient(reduction):
    data, sources, targets, weights = edge_operands()
    sources, targets = sources.clone(), targets.clone()
    sources[2], targets[4] = 9, -9
    function = call(reduction, mode="drop")
    assert gradcheck(lambda d, w: function(d, sources, targets, w), (data, weights))
    function(data, sources, targets, weights).sum().backward()
    assert weights.grad[2] == weights.grad[4] == 0


def test_the_gradient_is_an_aggregate_with_its_ends_exchanged():
    data, sources, targets, weights = edge_operands(torch.float32)
    out = call("add")(data, sources, targets, weights)
    gradient = torch.randn_like(out)
    out.backward(gradient)
    expected = gatherum.aggregate(gradient, targets, sources, 5, "add", weights.detach())
    assert torch.equal(data.grad, expected)


@pytest.mark.parametrize("reduction", FOLDS)
def test_transforms(reduction):
    data, sources, targets, weights = (each.detach() for each in edge_operands())
    function = call(reduction)
    many = torch.randn(3, 5, 2, dtype=torch.float64)
    heads = torch.randn(3, 7, dtype=torch.float64)
    for operands, dims in (
        ((many, sources, targets), (0, None, None)),
        ((many, sources, targets, weights), (0, None, None, None)),
        ((many, sources, targets, heads), (0, None, None, 0)),
        ((data, sources.expand(3, 7), targets, heads), (None, 0, None, 0)),
    ):
        gradient = torch.func.vmap(function, dims)(*operands)
        alone = [
            function(*(x if d is None else x[i] for x, d in zip(operands, dims, strict=True)))
            for i in range(3)
        ]
        assert torch.equal(gradient, torch.stack(alone))

    def loss(data):
        return function(data, sources, targets, weights).square().sum()

    gradient = torch.func.grad(loss)(data)
    tracked = data.clone().requires_grad_()
    loss(tracked).backward()
    torch.testing.assert_close(gradient, tracked.grad)
    assert torch.func.hessian(loss)(data).shape == (5, 2, 5, 2)


def head_operands(axis, dtype=torch.float64):
    """Return data of two heads, edges, and a weight for each edge and head."""
    torch.manual_seed(2)
    shape = [2, 3]
    shape.insert(axis, 5)
    data = torch.randn(shape, dtype=dtype, requires_grad=True)
    weights = torch.randn(7, shape[axis + 1], dtype=dtype, requires_grad=True)
    return data, torch.randint(0, 5, (7,)), torch.tensor([0, 0, 3, 1, 3, 3, 1]), weights


@pytest.mark.parametrize(("reduction", "axis"), [("mean", 1), ("mul", 0)])
def test_weights_of_heads_along_an_axis(reduction, axis):
    data, sources, targets, weights = head_operands(axis)
    function = call(reduction, axis=axis, fill_value=7)
    expected = function(*(each.detach().numpy() for each in (data, sources, targets, weights)))
    with torch.no_grad():
        result = function(data, sources, targets, weights)
    assert array_of(result, expected.dtype).tobytes() == expected.tobytes()
    assert result.is_contiguous()
    assert (result.select(axis, 2) == 7).all()
    recorded = compiled(function)(data, sources, targets, weights)
    assert array_of(recorded.detach(), expected.dtype).tobytes() == expected.tobytes()

    def of(data, weights):
        return function(data, sources, targets, weights)

    assert gradcheck(of, (data, weights), check_forward_ad=True)
    assert gradgradcheck(of, (data, weights))
    heads = torch.randn(3, *weights.shape, dtype=torch.float64)
    many = torch.randn(3, *data.shape, dtype=torch.float64)
    alone = torch.stack(
        [function(x, sources, targets, w) for x, w in zip(many, heads, strict=True)]
    )
    batches = torch.func.vmap(function, (0, None, None, 0))(many, sources, targets, heads)
    assert torch.equal(batches, alone)
    alone = torch.stack([function(x, sources, targets, heads[0]) for x in many])
    batches = torch.func.vmap(function, (0, None, None, None))(many, sources, targets, heads[0])
    assert torch.equal(batches, alone)


@pytest.mark.parametrize("reduction", FOLDS)
def test_graphs(reduction):
    data, sources, targets, weights = edge_operands()
    function = call(reduction)
    expected = function(data, sources, targets, weights)
    graph = compiled(function)
    assert torch.equal(graph(data, sources, targets, weights), expected)
    grads = [
        torch.autograd.grad(f(data, sources, targets, weights).square().sum(), (data, weights))
        for f in (graph, function)
    ]
    torch.testing.assert_close(*grads)


def test_exported_for_any_number_of_edges():
    class Model(torch.nn.Module):
        def forward(self, data, sources, targets, weights):
            return gatherum.aggregate(data, sources, targets, data.shape[0], "add", weights)

    data, sources, targets, weights = (each.detach() for each in edge_operands())
    n, e = torch.export.Dim("n"), torch.export.Dim("e")
    dims = ({0: n}, {0: e}, {0: e}, {0: e})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(
            Model(), (data, sources, targets, weights), dynamic_shapes=dims
        )
    assert "gatherum.aggregate" in str(exported.graph)
    for edges in (7, 3):
        operands = data, sources[:edges], targets[:edges], weights[:edges]
        assert torch.equal(exported.module()(*operands), Model()(*operands))


def test_the_op_is_one_that_torch_accepts():
    data, sources, targets, weights = edge_operands()
    torch.library.opcheck(torch.ops.gatherum.aggregate, (data, sources, targets, 4, "add", weights))


def test_lists_and_numbers():
    data = torch.tensor([[1.0], [2]], dtype=torch.bfloat16)
    result = gatherum.aggregate(data, [0, 1, 1], [1, 1, 0], 2, "add", [2, 0.5, 4])
    assert torch.equal(result, torch.tensor([[8.0], [3]], dtype=torch.bfloat16))
    result = gatherum.aggregate(data.float(), [0, 1], np.array([1, 1]), 2, "mean", 3)
    assert torch.equal(result, torch.tensor([[0.0], [4.5]]))


@pytest.mark.parametrize("reduction", ["add", "mean", "max"])
def test_a_bag_of_embeddings(reduction):
    """The recipe of docs/group-frameworks.md, compared with torch's own, forward and backward."""
    torch.manual_seed(5)
    table = torch.randn(9, 4, requires_grad=True)
    words, offsets = torch.randint(0, 9, (12,)), torch.tensor([0, 3, 3, 8])
    ends = torch.cat((offsets[1:], torch.tensor([12])))
    bags = torch.repeat_interleave(torch.arange(4), ends - offsets)
    weights = torch.rand(12, requires_grad=True) if reduction == "add" else None
    expected = torch.nn.functional.embedding_bag(
        words, table, offsets, mode={"add": "sum"}.get(reduction, reduction),
        per_sample_weights=weights,
    )  # fmt: skip
    result = gatherum.aggregate(table, words, bags, 4, reduction, weights)
    torch.testing.assert_close(result, expected)
    operands = [table] if weights is None else [table, weights]
    grads = [torch.autograd.grad(each.square().sum(), operands) for each in (result, expected)]
    torch.testing.assert_close(*grads)
    low = gatherum.aggregate(table.bfloat16(), words, bags, 4, reduction,
                             None if weights is None else weights.bfloat16())  # fmt: skip
    torch.testing.assert_close(low.float(), expected, atol=0.1, rtol=0.05)


@pytest.mark.parametrize(
    ("change", "error_type", "message"),
    [
        ({"gather_indices": [0, 9]}, IndexError,
         "aggregate: index 9 is out of bounds for axis 0 of size 2 (gather_indices[1])"),
        ({"scatter_indices": [0, 9]}, IndexError,
         "aggregate: index 9 is out of bounds for axis 0 of size 3 (scatter_indices[1])"),
        ({"weights": torch.ones(2, dtype=torch.float64)}, TypeError,
         "aggregate: `weights` must have the dtype of `data`, float32, got float64; "
         "write weights.to(data.dtype)"),
        ({"weights": torch.ones(3)}, ValueError, "aggregate: `weights` must"),
        ({"weights": torch.ones(2, 2)}, ValueError,
         "aggregate: `weights` must have shape (2, 1), got (2, 2)"),
        ({"gather_indices": [0, 1], "axis": 1}, IndexError,
         "aggregate: index 1 is out of bounds for axis 1 of size 1 (gather_indices[1])"),
        ({"fill_value": "x"}, ValueError,
         "aggregate: `fill_value` must convert exactly to the dtype of `data`, float32, got 'x'"),
        ({"scatter_indices": [0]}, ValueError,
         "aggregate: `scatter_indices` must have shape (2,), got (1,)"),
        ({"gather_indices": torch.ones(2)}, TypeError,
         "aggregate: `gather_indices` must have an integer dtype, got float32"),
        ({"data": torch.ones(())}, ValueError, "aggregate: `data` must have at least 1 dimension"),
        ({"size": -1}, ValueError, "aggregate: `size`"),
        ({"reduction": "sum"}, ValueError, "aggregate: `reduction` must be one of"),
        ({"data": torch.ones(2, 1, dtype=torch.bool), "reduction": "mean"}, TypeError,
         "aggregate: `reduction` 'mean' is not defined for dtype bool"),
        ({"out": torch.ones(2, 1)}, ValueError, "aggregate: `out` must have shape (3, 1)"),
    ],
)  # fmt: skip
def test_aggregate_checks_the_arguments_of_tensors(change, error_type, message):
    arguments = {
        "data": torch.ones(2, 1), "gather_indices": [0, 1], "scatter_indices": [0, 2], "size": 3,
        "reduction": "add",
    } | change  # fmt: skip
    with pytest.raises(error_type, match="^" + re.escape(message)):
        gatherum.aggregate(**arguments)


@pytest.mark.parametrize("reduction", FOLDS)
def test_a_graph_without_edges_has_gradients(reduction):
    none, data = torch.zeros(0, dtype=torch.int64), torch.ones(3, 2, requires_grad=True)
    weights = torch.ones(0, requires_grad=True)
    gatherum.aggregate(data, none, none, 3, reduction, weights=weights).sum().backward()
    assert (weights.grad.shape, data.grad.tolist()) == ((0,), [[0.0, 0.0]] * 3)


def test_bfloat16_runs_in_the_core_although_ml_dtypes_is_not_imported():
    pytest.importorskip("ml_dtypes", reason="install ml_dtypes for arrays of bfloat16")
    program = """
import sys, torch, gatherum
from gatherum.torch.functions import aggregation
assert "ml_dtypes" not in sys.modules
aggregation._composed = None
rows, weights = torch.ones(3, 2, dtype=torch.bfloat16), torch.full((2,), 2, dtype=torch.bfloat16)
ends = torch.tensor([0, 2]), torch.tensor([1, 1])
print(gatherum.aggregate(rows, *ends, 2, "add", weights).tolist())
"""
    result = shell(sys.executable, "-c", program)
    assert result.stdout == "[[0.0, 0.0], [4.0, 4.0]]\n", result.stderr
