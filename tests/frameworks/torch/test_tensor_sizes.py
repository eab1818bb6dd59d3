"""Graphs whose sizes depend on values: counts of a mask's true values, maxima, repeats."""

import pytest
from tensors import compiled, room, torch

pytestmark = pytest.mark.slow

X = torch.arange(12.0).reshape(6, 2)
MASKS = [
    [torch.tensor(mask).bool() for mask in pair]
    for pair in (([1, 0, 1, 0, 0, 1], [0, 1, 1, 1, 0, 0]), ([1, 1, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1]),
                 ([0] * 6, [0] * 6))
]  # fmt: skip
UNEQUAL = [MASKS[0][0], MASKS[1][1]]


def column(values):
    return torch.zeros_like(values[:, :1]).long()


def in_place(x, y, m1, m2):
    x = x.clone()
    room.scatter_nd(x, m1.nonzero(), y[m2], out=x)
    return x


OPERATORS = {
    "gather": lambda x, y, m1, m2: room.gather(x, m1.nonzero()),
    "gather of a part": lambda x, y, m1, m2: room.gather(x[m1], m2.nonzero()[:, 0], mode="drop"),
    "gather_elements": lambda x, y, m1, m2: room.gather_elements(x, m1.nonzero().expand(-1, 2)),
    "gather_elements of a part": lambda x, y, m1, m2: room.gather_elements(x[m1], column(y[m2]), 1),
    "gather_nd": lambda x, y, m1, m2: room.gather_nd(x, m1.nonzero()),
    "gather_nd in batches": lambda x, y, m1, m2: room.gather_nd(x[m1], column(y[m2]), 1),
    "gather into out": lambda x, y, m1, m2: room.gather(
        x, m1.nonzero()[:, 0], out=torch.empty_like(y[m2])
    ),
    "scatter_slices": lambda x, y, m1, m2: room.scatter_slices(
        x, m1.nonzero()[:, 0], y[m2], reduction="max"
    ),
    "scatter_slices of one row": lambda x, y, m1, m2: room.scatter_slices(
        x, m1.nonzero()[:, 0], y[:1], reduction="mean"
    ),
    "scatter_elements": lambda x, y, m1, m2: room.scatter_elements(
        x, m1.nonzero().expand(-1, 2), y[m2], reduction="mul"
    ),
    "scatter_elements into a part": lambda x, y, m1, m2: room.scatter_elements(
        x[m1], column(y[m2]), y[m2][:, :1], 1, reduction="add"
    ),
    "scatter_nd": lambda x, y, m1, m2: room.scatter_nd(x, m1.nonzero(), y[m2]),
    "scatter_nd of one row": lambda x, y, m1, m2: room.scatter_nd(x, m1.nonzero(), y[0]),
    "scatter_nd of a number": lambda x, y, m1, m2: room.scatter_nd(x, m1.nonzero(), 1.0),
    "scatter_nd in batches": lambda x, y, m1, m2: room.scatter_nd(
        x[m1], column(y[m2]), y[m2][:, 0], 1, reduction="add"
    ),
    "scatter_nd in place": in_place,
    "scatter_slices into out": lambda x, y, m1, m2: room.scatter_slices(
        x[m1], m1.nonzero()[:, 0] * 0, 1.0, out=torch.empty_like(y[m2]), mode="drop"
    ),
}


def of_unique(x, y, m1, m2):
    values, inverse = torch.unique((x[:, 0] // 3).long(), return_inverse=True)
    return room.scatter(x, inverse, 0, dim_size=values.shape[0])


def of_repeats(x, y, m1, m2):
    repeated = torch.repeat_interleave(torch.arange(6), m1.long() + m2.long())
    return room.scatter(room.gather(x, repeated), repeated, 0, dim_size=6)


def pointers(m1):
    return torch.cat((torch.zeros(1).long(), m1.cumsum(0)))


FUNCTIONS = {
    "unique": of_unique,
    "repeat_interleave": of_repeats,
    **{
        f"scatter {reduce} without dim_size": lambda x, y, m1, m2, reduce=reduce: room.scatter(
            x, m1 * 4, 0, reduce=reduce
        )
        for reduce in ("sum", "mul", "mean", "min")
    },
    "scatter_max without dim_size": lambda x, y, m1, m2: room.scatter_max(x, m1 * 4, 0),
    "scatter": lambda x, y, m1, m2: room.scatter(x[m1], m2.nonzero()[:, 0], 0, dim_size=6),
    "scatter of a part": lambda x, y, m1, m2: room.scatter(x[m1], m1.nonzero()[:, 0], 0),
    "scatter by a column": lambda x, y, m1, m2: room.scatter(x[m1], m1.nonzero(), 0, dim_size=6),
    "scatter by elements": lambda x, y, m1, m2: room.scatter(
        x[m1], m1.nonzero().repeat(1, 2), 0, dim_size=6
    ),
    "scatter along 1": lambda x, y, m1, m2: room.scatter(
        x.t()[:, m1], m1.nonzero()[:, 0], 1, dim_size=6
    ),
    "scatter into out": lambda x, y, m1, m2: room.scatter(
        x[m1], m1.nonzero()[:, 0], 0, out=y.clone(), reduce="mean"
    ),
    "scatter_min": lambda x, y, m1, m2: room.scatter_min(x[m1], m1.nonzero()[:, 0], 0, dim_size=6),
    "segment_csr": lambda x, y, m1, m2: room.segment_csr(x, m1.nonzero()[:, 0], reduce="max"),
    "segment_csr of a part": lambda x, y, m1, m2: room.segment_csr(x[m1], pointers(m1)),
    "gather_csr": lambda x, y, m1, m2: room.gather_csr(x, pointers(m1)),
}
CALLS = OPERATORS | FUNCTIONS
# Variants with the gradients of another entry, with known sizes or fewer operands.
ALIKE = {
    "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd",
    "scatter_nd of one row", "scatter_nd of a number", "scatter sum without dim_size",
    "scatter mul without dim_size", "scatter min without dim_size", "scatter_max without dim_size",
    "scatter", "scatter of a part", "scatter by elements", "scatter along 1", "scatter_min",
    "segment_csr",
}  # fmt: skip
JOINED = {"exported by Dynamo"}  # which captures as "compiled" does, and exports as "exported"
RARE = pytest.mark.release


class Module(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *operands):
        return self.call(*operands)


def exported(call, operands, strict):
    torch._dynamo.reset()
    return torch.export.export(Module(call), tuple(operands), strict=strict).module()


GRAPHS = {
    "compiled": lambda call, operands: compiled(call),
    "exported": lambda call, operands: exported(call, operands, False),
    "exported by Dynamo": lambda call, operands: exported(call, operands, True),
}


@pytest.fixture(autouse=True)
def _sizes_are_captured():
    settings = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with torch._dynamo.config.patch(settings):
        yield


def outcome(call, operands):
    """Return the results of a call, or its error."""
    try:
        result = call(*operands)
    except (IndexError, ValueError) as error:
        return type(error), str(error)
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        pytest.param(name, graph, marks=RARE if graph in JOINED or turn % 2 else ())
        for name in CALLS
        for turn, graph in enumerate(GRAPHS, len(name))
    ],
)
def test_sizes_of_values(name, graph):
    """A graph that is made with the first masks runs with other masks."""
    call = CALLS[name]
    graphed = GRAPHS[graph](call, (X, X + 100, *MASKS[0]))
    for masks in (*MASKS, UNEQUAL):
        expected = outcome(call, (X, X + 100, *masks))
        result = outcome(graphed, (X, X + 100, *masks))
        if isinstance(expected[0], type) and name == "scatter":
            assert result[0] is expected[0]  # a graph names the underlying operator
        else:
            assert result == expected


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=RARE if name in ALIKE else ()) for name in CALLS]
)
def test_gradients_of_sizes_of_values(name):
    if "out" in name.split() or "place" in name:
        pytest.skip("no gradient is recorded with out")
    call = CALLS[name]

    def loss(x, y, m1, m2):
        result = call(x, y, m1, m2)
        return (result[0] if isinstance(result, tuple) else result).sin().sum()

    def gradients(function, masks):
        leaves = [t.clone().requires_grad_() for t in (X, X + 100)]
        more = {"allow_unused": True, "materialize_grads": True}
        return torch.autograd.grad(function(*leaves, *masks), leaves, **more)

    graph = compiled(loss)
    for masks in MASKS:
        for result, expected in zip(gradients(graph, masks), gradients(loss, masks), strict=True):
            assert torch.equal(result, expected)


def test_a_graph_of_inductor():
    for name in ("scatter_nd", "unique", "repeat_interleave", "scatter mean without dim_size"):
        graph = compiled(CALLS[name], backend="inductor")
        for masks in MASKS:
            operands = X, X + 100, *masks
            assert outcome(graph, operands) == outcome(CALLS[name], operands)
