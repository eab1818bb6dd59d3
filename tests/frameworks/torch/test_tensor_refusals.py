"""Bad calls raise in graphs as they do eagerly. Graphs convert numbers to the same values."""

from itertools import product

import numpy as np
import pytest
from tensors import compiled, room, torch

import gatherum
from gatherum._arguments import conversion
from samples import every

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
]
I = torch.tensor([0, 1])  # noqa: E741
J = I.clone()
X, U, LAST = torch.zeros(3), torch.ones(2), torch.ones(3)
LEAF = torch.ones(3, requires_grad=True)
INF, NAN = float("inf"), float("nan")


class Module(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *operands):
        return self.call(*operands)


def eager(call, data):
    return call(data)


def in_graph(call, data):
    return compiled(call)(data)


def in_export(call, data):
    torch._dynamo.reset()
    return torch.export.export(Module(call), (data,), strict=False).module()(data)


GRAPHS = {"compiled": in_graph, "exported": in_export}


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).tolist()


def refuses(call, data, words, *graphs):
    """Check that a call raises the same message in graphs; Dynamo adds text around it."""
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        call(data)
    assert words in str(caught.value)
    for graph in graphs or GRAPHS:
        with pytest.raises(Exception) as caught:  # torch has several
            GRAPHS[graph](call, data)
        assert words in str(caught.value), graph


# --- numbers

BAD = {
    "uint8": [-1, 256, 1.0, 1j], "int8": [128, -129], "bool": [1, 0, 1.0], "uint16": [70000],
    "int32": [2**31], "int64": [2**63, 2**70, 1j], "uint64": [-1, 2**64, 2**70],
    "float16": [1e6, 70000, 65520.0, 1j], "float32": [1e39, 10**39, 10**400, 1j],
    "float64": [10**400], "complex64": [1e39j], "bfloat16": [1e39, 1j], "float8_e5m2": [1e6],
    "float8_e4m3fn": [INF, 500], "float8_e4m3fnuz": [-INF], "float8_e8m0fnu": [-1, 0.0, INF],
}  # fmt: skip
GOOD = {
    "uint8": [255, True], "bool": [True], "int64": [-(2**63), 2**63 - 1], "uint64": [2**64 - 1],
    "float16": [65519.0, -INF, NAN, 1 + 2**-11 + 2**-40, 7, True], "float32": [10**30, 0.1, -0.0],
    "float64": [2**63 + 1, 10**300, 0.1], "complex128": [2j, 1], "float8_e8m0fnu": [1.5, 3],
    "bfloat16": [1 + 2**-8 + 2**-40, -0.0], "float8_e4m3fn": [448, 0.3], "float8_e5m2": [INF],
    "float8_e4m3fnuz": [-0.0],
}  # fmt: skip


def scattered(number):
    return lambda x: room.scatter_slices(x, I, number)


def filled(number):
    return lambda x: room.gather(x, torch.tensor([0, 9]), mode="fill", fill_value=number)


def wording(caught):
    return str(caught.value).partition(", got")[0]  # a graph may write a large number as a float


@pytest.mark.parametrize("name", every(2, BAD))
def test_numbers_that_do_not_fit(name):
    """Alternate: updates in one kind of graph, and a fill value in the other."""
    data = torch.zeros(3).to(getattr(torch, name))
    for turn, number in enumerate(BAD[name], list(BAD).index(name)):
        graphs = list(GRAPHS)
        with pytest.raises(ValueError, match="`updates` must") as caught:
            scattered(number)(data)
        refuses(scattered(number), data, wording(caught), graphs[turn % 2])
        if not conversion.is_integer_zero(number):
            with pytest.raises(ValueError, match="`fill_value` must") as caught:
                filled(number)(data)
            refuses(filled(number), data, wording(caught), graphs[1 - turn % 2])


@pytest.mark.parametrize("name", every(2, GOOD))
def test_numbers_that_fit_have_the_same_bits(name):
    data = torch.zeros(3).to(getattr(torch, name))
    numbers = GOOD[name]

    def call(x):
        return [put(number)(x) for number in numbers for put in (scattered, filled)]

    expected = list(map(raw, call(data)))
    for graph, make in GRAPHS.items():
        assert list(map(raw, make(call, data))) == expected, graph


@pytest.mark.parametrize(
    ("name", "dynamic"),
    every(
        2,
        [
            *[("uint8", None), ("uint8", True), ("float16", None), ("float8_e4m3fn", True)],
            ("bool", None),
        ],
    ),
)
def test_numbers_that_change_from_call_to_call(name, dynamic):
    """They become symbols, whose values are checked when the graph runs."""
    data = torch.zeros(3).to(getattr(torch, name))

    def call(data, number):
        return room.scatter_slices(data, I, number)

    graph = compiled(call, dynamic=dynamic)
    for number in (1, 2, 3, -1, 300, 70000, 1.5, 2.5, 0.1, 1e6, True):
        try:
            expected = raw(call(data, number))
        except ValueError as error:
            with pytest.raises(Exception) as caught:
                graph(data, number)
            assert str(error) in str(caught.value)
        else:
            assert raw(graph(data, number)) == expected


@pytest.mark.parametrize("make", ["compiled", "exported", "exported by Dynamo"])
def test_numbers_that_a_graph_computes(make):
    def call(data, number):
        put = room.scatter_slices(data, I, number.item())
        return put, room.gather(data, [0, 9], mode="fill", fill_value=number.item())

    data, number = torch.zeros(3, dtype=torch.uint8), torch.tensor(2)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        if make == "compiled":
            graph = compiled(call)
        else:
            strict = make == "exported by Dynamo"
            graph = torch.export.export(Module(call), (data, number), strict=strict).module()
        for result, expected in zip(graph(data, number), call(data, number), strict=True):
            assert torch.equal(result, expected)
        for bad in (-1, 256):
            with pytest.raises(ValueError, match=f"must convert exactly .* uint8, got {bad}$"):
                graph(data, torch.tensor(bad))


# --- everything else

GATHERED = {
    "`axis` must be an integer, got 1.5": {"axis": 1.5},
    "`axis` must be an integer, got '0'": {"axis": "0"},
    "`axis` must be an integer, got None": {"axis": None},
    "`axis` must be in [-1, 1), got 9": {"axis": 9},
    "`axis` must be in [": {"axis": 2**70},
    "`negative` must be True or False, got 1": {"negative": 1},
    "`negative` must be True or False, got None": {"negative": None},
    "`negative` must be True or False, got 'no'": {"negative": "no"},
    "`mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'no'": {"mode": "no"},
    "`mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got None": {"mode": None},
    "`out` must be a dense tensor, got a list": {"out": [0, 0]},
    "`fill_value` must convert exactly": {"mode": "fill", "fill_value": "a"},
    "`fill_value` must convert exactly to": {"mode": "drop", "fill_value": None},
    "`fill_value` must convert exactly to the": {"mode": "fill", "fill_value": [0]},
}
SCATTERED = {
    "`batch_dims` must be an integer, got [0]": {"batch_dims": [0]},
    "`batch_dims` must be in [0, 2), got -1": {"batch_dims": -1},
    "`include_self` must be True or False, got 0": {"include_self": 0},
    "`include_self` must be True or False, got None": {"include_self": None},
    "`reduction` must be one of 'none', 'add'": {"reduction": "sum"},
    "`reduction` must be one of 'none', 'add', ": {"reduction": 1},
}


@pytest.mark.parametrize(("words", "graph"), every(5, product(GATHERED, GRAPHS)))
def test_attributes_of_gathers(words, graph):
    refuses(lambda x: room.gather(x, I, **GATHERED[words]), X, words, graph)


@pytest.mark.parametrize(("words", "graph"), every(5, product(SCATTERED, GRAPHS)))
def test_attributes_of_scatters(words, graph):
    refuses(lambda x: room.scatter_nd(x, I[:, None], U, **SCATTERED[words]), X, words, graph)


def test_an_unused_fill_value_is_not_checked():
    for value in ("a", None, [0], 1e300):
        for make in GRAPHS.values():
            assert make(lambda x, v=value: room.gather(x, I, fill_value=v), X).tolist() == [0, 0]


OPERANDS = {
    "`data` must be a dense tensor, got a list": lambda x: room.gather([1, 2], I),
    "`indices` must have an integer dtype, got float": lambda x: room.gather(x, [0.5]),
    "`indices` must have an integer dtype, got bool": lambda x: room.gather(x, [True, False]),
    "`indices` must have an integer dtype, got float64": lambda x: room.gather(x, np.array([])),
    "`indices` must have an integer dtype, got float32": lambda x: room.gather(x, x),
    "`indices` must be an array, got str": lambda x: room.gather(x, "ab"),
    "`indices` must be an array, got NoneType": lambda x: room.gather(x, None),
    "`indices` must be one array, got a list that holds arrays": lambda x: room.gather(x, [I, I]),
    "`indices` must be one array, got a tuple that holds arrays; torch.argwhere, or torch": (
        lambda x: room.gather(x, (I[0], I[1]))
    ),
    "`updates` must have the dtype of `data`, float32, got float64; write updates.to(data.dtype)": (
        lambda x: room.scatter_slices(x, I, U.double())
    ),
    "`updates` must have shape (2,), got (3,)": lambda x: room.scatter_slices(x, I, x),
    "`reduction` 'mean' is not defined for dtype bool": (
        lambda x: room.scatter_slices(x.bool(), I, U.bool(), reduction="mean")
    ),
    "must have a dtype of torch that stores each number in whole bytes": (
        lambda x: room.gather(x.to(torch.complex32), I)
    ),
    "`indices` must have values that can be read here, got a tensor on the device meta": (
        lambda x: room.gather(x, I.to("meta"))
    ),
    "`updates` must have values that can be read here, got a tensor on the device meta": (
        lambda x: room.scatter_slices(x, I, U.to("meta"))
    ),
    "`out` must have values that can be read here, got a tensor on the device meta": (
        lambda x: room.gather(x, I, out=torch.zeros(2, device="meta"))
    ),
    "`out` must have the dtype of `data`, float32, got int32": (
        lambda x: room.gather(x, I, out=torch.zeros(2, dtype=torch.int32))
    ),
    "`out` must have shape (2,), got (3,)": lambda x: room.gather(x, I, out=torch.zeros(3)),
    "`out` must not overlap itself": lambda x: room.gather(x, I, out=torch.zeros(1).expand(2)),
    "`out` must not share memory with `data`": lambda x: room.gather(x, I, out=x[:2]),
    "`out` must not share memory with `indices`": (
        lambda x: room.gather(x, J, out=J.view(torch.float32)[:2])
    ),
    "`out` must not share memory with `updates`": (
        lambda x: room.scatter_slices(x, I, LAST[:2], out=LAST)
    ),
    "scatter_slices: `out` must not share memory with `data`": (
        lambda x: room.scatter_slices(x[:2], I, U, out=x[1:])
    ),
    "`out` cannot be given where a gradient is recorded": (
        lambda x: room.scatter_slices(x * LEAF, I, 1.0, out=x.clone())
    ),
    "`fill_value` must not need a gradient": (
        lambda x: room.gather(x, I, mode="fill", fill_value=LEAF.sum())
    ),
}


@pytest.mark.parametrize(("words", "graph"), every(5, product(OPERANDS, GRAPHS)))
def test_operands(words, graph):
    refuses(OPERANDS[words], X, words, graph)


def test_a_bad_index():
    for make in (eager, *GRAPHS.values()):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 of size 3"):
            make(lambda x: room.gather(x, torch.tensor([9])), X)


def test_out_in_the_storage_of_an_operand():
    def call(x):
        room.scatter_slices(x[::2], [0], x[1::2][:1], out=x[::2])
        return room.gather(x[::2], [1, 0], out=x[1::2][:2])

    for make in (in_graph, in_export):
        mine, theirs = torch.arange(6.0), torch.arange(6.0)
        assert torch.equal(make(call, mine), call(theirs))
        assert torch.equal(mine, theirs)


def test_an_axis_of_more_than_64_bits():
    for axis in (2**70, -(2**70)):
        for indices in (I, [0]):
            with pytest.raises(ValueError, match=r"^gather: `axis` must be in \[-1, 1\), got -?11"):
                gatherum.gather(X, indices, axis)


def test_indices_of_every_integer_of_c():
    array = np.array([2, 0])
    for kind in "bBhHiIlLqQ":
        assert room.gather(torch.arange(3), array.astype(kind)).tolist() == [2, 0]
    with pytest.raises(IndexError, match=r"index 9223372036854775808 is out of bounds"):
        room.gather(X, [2**63])
