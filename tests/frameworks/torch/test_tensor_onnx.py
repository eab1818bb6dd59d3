"""The ops exported to ONNX: ONNX's evaluator and our backend return the tensors' results."""

import warnings
from itertools import product

import numpy as np
import pytest
from tensors import room, torch

onnx = pytest.importorskip("onnx", reason="install onnx to test the export: pip install onnx")
pytest.importorskip("onnxscript", reason="install onnxscript to test the export")

from onnx.reference import ReferenceEvaluator  # noqa: E402

import gatherum.groups  # noqa: E402
import gatherum.onnx  # noqa: E402
from gatherum._model.reductions import known_to_onnx  # noqa: E402
from gatherum.torch import torch_scatter  # noqa: E402
from samples import every  # noqa: E402


def export(function, operands, dynamic=None):
    class Model(torch.nn.Module):
        def forward(self, *arguments):
            return function(*arguments)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter itself
        program = torch.onnx.export(
            Model().eval(), operands, dynamo=True, verbose=False,
            dynamic_shapes=None if dynamic is None else (dynamic,),
            custom_translation_table=room.onnx_translations(),
        )  # fmt: skip
    return program.model_proto


def check(function, operands, dynamic=None, others=()):
    """Compare the results of an exported function, also for operands of other sizes."""
    model = export(function, operands, dynamic)
    onnx.checker.check_model(model, full_check=True)
    names = [i.name for i in model.graph.input]
    for tensors in (operands, *others):
        feeds = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
        expected = [tensor.numpy() for tensor in function(*tensors)]
        for results in (
            ReferenceEvaluator(model).run(None, feeds),
            gatherum.onnx.backend.prepare(model).run(feeds),
        ):
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, strict=True)
    return [node.op_type for node in model.graph.node]


def numbers(*shape):
    return torch.randint(1, 9, shape, generator=torch.Generator().manual_seed(1)) / 4


def test_gathers():
    def function(data, rows, one, tuples):
        return (
            room.gather(data, rows),
            room.gather(data, rows % 3, -1),
            room.gather(data, one),
            room.gather_elements(data, rows[:, None] % 3, 1),
            room.gather_nd(data, tuples),
            room.gather_nd(data, rows[:, None]),
            room.gather_nd(data, rows[:, None] % 3, 1),
        )

    tuples = torch.tensor([[3, 1], [-1, -3]])
    nodes = check(function, (numbers(4, 3), torch.tensor([3, 0, -1, 3]), torch.tensor(2), tuples))
    counts = [nodes.count(node) for node in ("Gather", "GatherElements", "GatherND")]
    assert counts == [3, 1, 3]


FOLDS = [
    {"reduction": reduction, "include_self": include_self}
    for reduction in (*known_to_onnx(18)[1:], "mean")
    for include_self in (True, False)
]
# Operator, axis, shapes of indices and updates, each with and without duplicates.
SCATTERS = {
    "elements": ("scatter_elements", 0, (4, 3), (4, 3)),
    "elements across": ("scatter_elements", 1, (4, 3), (4, 3)),
    "slices": ("scatter_slices", 0, (3,), (3, 3)),
    "slices of tables": ("scatter_slices", -1, (1, 3), (4, 1, 3)),
    "one slice": ("scatter_slices", 1, (), ()),
    "rows": ("scatter_nd", 0, (3, 1), (3,)),
    "tuples": ("scatter_nd", 0, (3, 2), (3,)),
}


@pytest.mark.parametrize("name", every(4, SCATTERS))
def test_scatters(name):
    op, axis, where, moved = SCATTERS[name]

    def call(data, indices, updates, **fold):
        return getattr(room, op)(data, indices, updates, axis, **fold)

    def function(data, indices, updates, unique):
        folded = [call(data, indices, updates, **fold) for fold in FOLDS]
        return *folded, call(data, unique, updates)

    indices = torch.randint(3, where, generator=torch.Generator().manual_seed(2))
    unique = torch.arange(3)
    if len(where) == 2:
        across = axis != 0
        unique = unique.expand(where) if across else torch.arange(where[0])[:, None].expand(where)
        unique = unique % 3 if op == "scatter_nd" else unique
    elif not where:
        unique = torch.tensor(-1)
    nodes = check(function, (numbers(4, 3), indices, numbers(*moved) + 1, unique.clone()))
    assert ("ScatterElements" if op == "scatter_elements" else "ScatterND") in nodes


def test_other_sizes_and_types():
    n, m = torch.export.Dim("n", min=2), torch.export.Dim("m", min=2)

    def function(data, indices, updates):
        return (
            room.gather(data, indices),
            room.scatter_slices(data, indices, updates, reduction="add"),
            room.scatter_nd(data, indices[:, None], 2.5, reduction="max"),
        )

    example = numbers(5, 3), torch.tensor([1, 0, 2], dtype=torch.int16), numbers(3, 3)
    other = numbers(9, 3), torch.tensor([8, 8], dtype=torch.int16), numbers(2, 3)
    check(function, example, ({0: n}, {0: m}, {0: m}), [other])


@pytest.mark.parametrize("dtype", every(3, ["int8", "int64", "uint8", "float16", "float64"]))
def test_means_are_sums_over_counts(dtype):
    def function(data, indices, updates):
        return tuple(
            room.scatter_slices(data, indices, updates, reduction="mean", include_self=include_self)
            for include_self in (True, False)
        )

    torch_dtype = getattr(torch, dtype)
    updates = torch.tensor([[-7, 3], [2, 1], [-6, 100], [100, 100]]).to(torch_dtype)
    data = torch.tensor([[1, 9], [5, 5], [-1, 4]]).to(torch_dtype)
    nodes = check(function, (data, torch.tensor([0, 2, 0, 0]), updates))
    assert nodes.count("Div") == 2 and nodes.count("ScatterND") == 5


def test_functions_of_torch_scatter():
    def function(src, index):
        return tuple(
            room.scatter(src, index, 0, dim_size=4, reduce=word)
            for word in ("sum", "mean", "mul", "max", "min")
        )

    check(function, (numbers(6, 3), torch.tensor([0, 2, 2, 0, 1, 2])))


# The exporter's optimizer knows these indices, and that they address each row once.
EVERY_ROW = {
    "arange": lambda: torch.arange(4),
    "constants": lambda: torch.tensor([0, 1, 2, 3], dtype=torch.int16),
}


def check_bits(function, operands):
    """Compare the bits of an exported function's results. Return the names of its nodes."""
    model = export(function, operands)
    feeds = {i.name: o.numpy() for i, o in zip(model.graph.input, operands, strict=True)}
    expected = [tensor.numpy() for tensor in function(*operands)]
    for run in (
        lambda: ReferenceEvaluator(model).run(None, feeds),
        lambda: gatherum.onnx.backend.prepare(model).run(feeds),
    ):
        for number, (actual, right) in enumerate(zip(run(), expected, strict=True)):
            assert (actual.dtype, actual.shape) == (right.dtype, right.shape), number
            assert actual.tobytes() == right.tobytes(), (number, actual, right)
    return [node.op_type for node in model.graph.node]


def table():
    values = torch.arange(12.0).reshape(4, 3) - 5.5
    values[1] = -0.0
    return values


def scatters_of_every_row(data, updates, rows, fold):
    return (
        room.scatter_slices(data, rows, updates, **fold),
        room.scatter_slices(data, rows, 2.5, **fold),
        room.scatter_slices(data, rows, updates, negative=False, **fold),
        room.scatter_slices(data, rows[:3], updates[:, :3], 1, **fold),
        room.scatter_slices(data, rows[None], updates[None], **fold),
        room.scatter_slices(data, rows[:2], updates[:2], **fold),
        room.scatter_slices(data[:1], rows[:1], updates[:1], **fold),
        room.scatter_slices(data, rows.flip(0), updates, **fold),
        room.scatter_nd(data, rows[:, None], updates, **fold),
        room.scatter_nd(data, rows[:3, None].expand(3, 2), updates[0], **fold),
        room.scatter_elements(data, rows[:, None].expand(4, 3), updates, **fold),
        room.scatter_elements(data, rows[:3].expand(4, 3), updates, 1, **fold),
    )


@pytest.mark.parametrize(("part", "rows"), every(4, product(range(2), EVERY_ROW)))
def test_a_reduction_over_every_row_is_kept(part, rows):
    def function(data, updates):
        return [
            result
            for fold in ({"reduction": "none"}, *FOLDS)[part::2]
            for result in scatters_of_every_row(data, updates, EVERY_ROW[rows](), fold)
        ]

    nodes = check_bits(function, (table(), table().flip(1) * 3))
    assert "ScatterND" in nodes


def test_a_reduction_over_the_only_row_is_kept():
    data, updates = torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[10.0, 20, 30, 40]])

    def function(data, updates):
        return (room.scatter_slices(data, torch.tensor([0]), updates, reduction="add"),)

    assert check_bits(function, (data, updates)) == ["Unsqueeze", "ScatterND"]
    assert function(data, updates)[0].tolist() == [[11, 22, 33, 44]]


def test_indices_that_are_not_constant_are_unchanged():
    def function(data, rows, updates):
        return (room.scatter_slices(data, rows, updates, reduction="add"),)

    operands = table(), torch.arange(4), table()
    n, m = torch.export.Dim("n", min=2), torch.export.Dim("m", min=2)
    model = export(function, operands, ({0: n}, {0: m}, {0: m}))
    assert [node.op_type for node in model.graph.node] == ["Unsqueeze", "ScatterND"]
    assert check_bits(
        lambda d, u: function(d, torch.tensor([2, 0]), u), (table(), table()[:2])
    ) == ["ScatterND"]


def test_functions_over_groups_of_every_row():
    words = ("sum", "mul", "max", "min")

    def function(data):
        labels = torch.arange(4)
        reduce = gatherum.groups.reduce
        return [
            *(reduce(data, labels, 4, func) for func in ("sum", "prod", "max", "min")),
            *(reduce(data, labels, 4, func) for func in ("first", "last", "any", "all", "count")),
            *(reduce(data[:, :3], labels[:3], 3, func, 1) for func in ("sum", "prod", "max")),
            *(room.scatter(data, labels, 0, dim_size=4, reduce=word) for word in words),
            *(scatter(data, labels, 0, dim_size=4) for scatter in EXPORTED),
        ]

    check_bits(function, (table(),))


EXPORTED = (
    torch_scatter.scatter_sum,
    torch_scatter.scatter_add,
    torch_scatter.scatter_mul,
)


@pytest.mark.parametrize("part", every(3, range(3)))
def test_folded_constants_have_the_same_bits(part):
    """While a model is exported, ONNX's evaluator folds constant operands."""
    data = table()
    indices = torch.tensor([3, 0, -1, 3])
    tuples = torch.tensor([[3, 1], [-1, -3]])

    def function(unused):
        gathers = [
            gathered
            for values in (data, data.long())
            for gathered in (
                room.gather(values, indices),
                room.gather(values[:, 0], indices),
                room.gather(values, indices[:0]),
                room.gather(values, indices % 3, -1),
                room.gather_elements(values, -1 - indices[:, None] % 3, 1),
                room.gather_nd(values, tuples),
                room.gather_nd(values, indices[:, None] % 3, 1),
            )
        ]
        scatters = [
            result
            for fold in FOLDS[part::3]
            for result in (
                *scatters_of_every_row(data, data * 3, torch.arange(4), fold),
                room.scatter_slices(data, indices, data * 3, **fold),
                room.scatter_nd(data, tuples, data[0, :2], **fold),
                room.scatter_elements(data, indices[:, None], data[:, :1], **fold),
            )
        ]
        return [*gathers, *scatters, unused]

    check_bits(function, (torch.ones(1),))


def test_an_index_that_may_not_be_negative_is_out_of_bounds():
    model = export(lambda d, i: (room.gather(d, i, negative=False),), (numbers(4), torch.arange(3)))
    names = [i.name for i in model.graph.input]
    feeds = dict(zip(names, (np.ones(4, np.float32), np.array([0, -1, 1])), strict=True))
    with pytest.raises(IndexError):
        ReferenceEvaluator(model).run(None, feeds)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        gatherum.onnx.backend.prepare(model).run(feeds)


REFUSED = {
    "gather: ONNX has no `mode` 'clip' for it": lambda d, i: room.gather(d, i, mode="clip"),
    "scatter_nd: ONNX has no `reduction` 'fmean' for it": lambda d, i: room.scatter_nd(
        d, i[:, None], 1.0, reduction="fmean"
    ),
    "scatter_nd: ONNX has no `batch_dims` for it": lambda d, i: room.scatter_nd(
        d, i[:, None], 1.0, 1
    ),
    "gather_nd: ONNX has no tuples of no index for it": lambda d, i: room.gather_nd(
        d, i[:, None][:, :0]
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_calls_that_onnx_cannot_express_are_refused(sentence):
    with pytest.raises(Exception, match=sentence):
        export(lambda d, i: (REFUSED[sentence](d, i),), (numbers(3, 3), torch.tensor([0, 1, 1])))
