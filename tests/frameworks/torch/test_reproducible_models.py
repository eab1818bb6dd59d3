"""Models train twice to the same bits; compiled graphs and transforms keep the promise."""

import warnings

import pytest
from reproducible_calls import Threads, bits, calls, operands, run
from tensors import room, torch

from samples import diagonal

F = torch.nn.functional
EDGES = torch.randint(0, 300, (2, 9000), generator=torch.Generator().manual_seed(0))


class Convolution(torch.nn.Module):
    """A graph convolution, written as in PyG's GCNConv."""

    def __init__(self):
        super().__init__()
        self.table, self.out = torch.nn.Embedding(300, 8), torch.nn.Linear(8, 4)

    def forward(self):
        source, target = EDGES
        x = self.table(torch.arange(300))
        degree = torch.zeros(300).scatter_add_(0, target, torch.ones(9000)).clamp(min=1)
        messages = x.index_select(0, source) * degree[source].rsqrt().unsqueeze(1)
        index = target.view(-1, 1).expand_as(messages)
        return self.out(torch.zeros_like(x).scatter_add_(0, index, messages))


class Attention(torch.nn.Module):
    """Attention on edges, written as in PyG's GATConv."""

    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.randn(300, 2, 4))
        self.scores = torch.nn.Parameter(torch.randn(2, 1, 2, 4))

    def forward(self):
        source, target = EDGES
        towards, away = (self.x * self.scores).sum(-1)
        score = F.leaky_relu(towards[source] + away[target])
        index = target[:, None].expand_as(score)
        largest = torch.zeros(300, 2).scatter_reduce(0, index, score.detach(), "amax")
        weight = (score - largest[target]).exp()
        total = torch.zeros(300, 2).index_add(0, target, weight)
        messages = self.x[source] * (weight / total[target].clamp(min=1e-9)).unsqueeze(-1)
        return torch.zeros_like(self.x).index_add_(0, target, messages)


class Recommender(torch.nn.Module):
    """Bags of items, with weights."""

    def __init__(self):
        super().__init__()
        self.sums = torch.nn.EmbeddingBag(300, 8, mode="sum")
        self.means = torch.nn.EmbeddingBag(300, 8, mode="mean", padding_idx=0)
        self.maxima = torch.nn.EmbeddingBag(300, 8, mode="max")

    def forward(self):
        items, bags = EDGES[0], torch.arange(0, 9000, 30)
        weights = torch.linspace(0, 1, 9000)
        means = self.means(items, bags) * self.maxima(items, bags)
        return self.sums(items, bags, per_sample_weights=weights) * means


class Experts(torch.nn.Module):
    """A mixture of experts: tokens are sent to two experts, and their answers added."""

    def __init__(self):
        super().__init__()
        self.x, self.route = torch.nn.Parameter(torch.randn(600, 8)), torch.nn.Linear(8, 4)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))

    def forward(self):
        weights, chosen = self.route(self.x).softmax(-1).topk(2)
        out = torch.zeros_like(self.x)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            answer = expert(self.x[token]) * weights[token, slot].unsqueeze(1)
            out.index_add_(0, token, answer)
        return out


class HashGrid(torch.nn.Module):
    """Features at the hashed corners of cells."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(64, 4))

    def forward(self):
        x = torch.linspace(0, 40, 9000)
        corner = x.long()
        share = (x - corner).unsqueeze(1)
        low, high = ((corner + each) * 2654435761 % 64 for each in (0, 1))
        return self.table[low] * (1 - share) + self.table[high] * share


def trained(model, threads, steps=20):
    """Return the bits of the parameters after training."""
    torch.manual_seed(0)
    with Threads(threads), room.reproducible() as context:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), 1e-4, momentum=0.9)
        for _ in range(steps):
            optimizer.zero_grad()
            net().square().sum().backward()
            optimizer.step()
    assert sum(context.report().gatherum.values()) >= steps
    assert all(each.isfinite().all() for each in net.parameters())
    return bits(each.detach() for each in net.parameters())


@pytest.mark.parametrize("model", [Convolution, Attention, Recommender, Experts, HashGrid])
def test_training_ends_with_the_same_bits(model):
    assert trained(model, 1) == trained(model, 3) == trained(model, 3)


@pytest.mark.parametrize("layer", ["GCNConv", "GATConv"])
def test_layers_of_pyg_end_with_the_same_bits(layer):
    layers = pytest.importorskip("torch_geometric.nn", reason="install torch_geometric")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Parameter(torch.randn(300, 8))
            self.layers = torch.nn.ModuleList(getattr(layers, layer)(8, 8) for _ in range(2))

        def forward(self):
            first, second = self.layers
            return second(first(self.x, EDGES).relu(), EDGES)

    assert trained(Model, 1) == trained(Model, 3) == trained(Model, 3)


GRAPHS = ("index_add", "scatter", "scatter_reduce prod", "add at two", "x[i]", "embedding")


@pytest.mark.parametrize(("name", "backend"), diagonal(2, GRAPHS, ["inductor", "aot_eager"]))
def test_compiled_graphs_keep_the_promise(name, backend):
    if backend == "inductor" and name != "x[i]":
        backend = "aot_eager_decomp_partition"  # inductor's decompositions, without a compiler
    torch._dynamo.reset()
    call, given = calls()[name], operands()
    compiled = torch.compile(call, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(compiled, *given)  # outside: a graph for torch's kernels
        with room.reproducible() as context:
            expected = run(call, *given)
            before = sum(context.report().gatherum.values())
            got = run(compiled, *given)
    assert bits(got) == bits(expected)
    assert sum(context.report().gatherum.values()) > before


def test_kernels_are_not_traced():
    """After a graph break at `bincount`, Dynamo does not follow the kernel."""
    torch._dynamo.reset()
    call, given = calls()["bincount"], operands()
    with warnings.catch_warnings(), room.reproducible() as context:
        warnings.simplefilter("error")
        run(torch.compile(call, backend="eager"), *given)
    assert context.report().gatherum == {"bincount": 1}


def test_transforms():
    table, updates = operands()
    index = torch.randint(0, 50, (1000,), generator=torch.Generator().manual_seed(2))

    def total(x, u):
        return (x.index_add(0, index, u)[index] ** 2).sum()

    with room.reproducible() as context:
        expected = run(total, table, updates)
        gradients = torch.func.grad(total, (0, 1))(table, updates)
        assert bits(gradients) == bits(-each for each in expected[1:])  # `run` begins with -1
        both = torch.vmap(lambda x, u: x.index_add(0, index, u))(
            torch.stack([table, table]), torch.stack([updates, updates])
        )
        assert bits(both) == bits([table.index_add(0, index, updates)] * 2)
        _, tangent = torch.func.jvp(
            lambda u: table.index_add(0, index, u), (updates,), (torch.ones_like(updates),)
        )
        assert bits([tangent]) == bits([torch.zeros(50, 4).index_add(0, index, 1 + 0 * updates)])
    assert context.report().torch == {}


def test_checkpoints_autocast_and_inference():
    table, updates = operands()
    index = torch.arange(1000) % 50

    def call(x, u):
        return F.linear(x[index] * u, x[:4]).float().index_add(1, index[:4] % 2, u)

    def kept(x, u):
        return torch.utils.checkpoint.checkpoint(call, x, u, use_reentrant=False)

    with room.reproducible() as context:
        assert bits(run(kept, table, updates)) == bits(run(call, table, updates))
        with torch.autocast("cpu", torch.bfloat16):
            assert bits(run(kept, table, updates)) == bits(run(call, table, updates))
        with torch.inference_mode():
            same = [torch.zeros(50, 4).index_add_(0, index, updates) for _ in range(2)]
    assert bits(same[:1]) == bits(same[1:])
    assert context.report().gatherum["_index_put_impl_"] >= 4
