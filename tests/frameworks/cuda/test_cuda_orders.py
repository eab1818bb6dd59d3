"""Compositions on a device sort once, with the bits of the processor."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", minversion="2.10", reason="install torch to test tensors: pip install 'torch>=2.10'"
)

pytestmark = pytest.mark.frameworks

import gatherum  # noqa: E402
from gatherum._model.call import Attributes  # noqa: E402
from gatherum._model.dtypes import is_reducible  # noqa: E402
from gatherum._model.reductions import FOLDS  # noqa: E402
from gatherum.cuda import device_calls, folds, radix_sort  # noqa: E402
from gatherum.torch import cuda, torch_scatter  # noqa: E402
from gatherum.torch.autograd import fused_gradients  # noqa: E402
from gatherum.torch.torch_scatter import extremes  # noqa: E402
from strategies import same_bits  # noqa: E402

N, SIZE = 40, 5
REDUCES = ["argmax", "argmin", "var", "std", "logsumexp", "max"]
TRANSFORMS = ["softmax", "log_softmax", "normalize", "centre"]
QUICK = "float32", "argmax", "logsumexp", "normalize", "add", "scatter_std", "segment_mean_csr"
INDPTR = torch.tensor([0, 3, 3, 20, 37, N])


def each_of(*names):
    """Return parameters of which all are slow, because kernels are compiled, except a few."""
    marks = pytest.mark.slow
    return [
        name if name in QUICK else pytest.param(name, marks=marks, id=str(name)) for name in names
    ]


@pytest.fixture
def sorts(monkeypatch, library_sorts):
    """Count the sorts."""
    sort, counted = cuda.FRAMEWORK.__class__.sort, []

    def counting(self, pairs, *place):
        counted.append(pairs)
        return sort(self, pairs, *place)

    monkeypatch.setattr(cuda.FRAMEWORK.__class__, "sort", counting)
    # torch rounds square roots correctly on a GPU, but not on every processor.
    monkeypatch.setattr(torch.Tensor, "sqrt", lambda x: torch.from_numpy(np.sqrt(x.numpy())))
    monkeypatch.setattr(extremes, "is_supported", lambda src: False)
    monkeypatch.setattr(fused_gradients, "is_preferred", lambda *_: False)
    return counted


@pytest.fixture
def sorts_of(request):
    """Return a function that counts the sorts of another function and compares its results with
    the results on the processor.
    """

    def check(function, *arguments):
        expected = function(*arguments)
        for name in ("on_shim", "as_cuda"):
            request.getfixturevalue(name)
        counted = request.getfixturevalue("sorts")
        results = function(*arguments)
        for pair in zip(flat(results), flat(expected), strict=True):
            assert same_bits(*(np.atleast_1d(each.detach().numpy()) for each in pair))
        return len(counted)

    return check


def flat(results):
    if isinstance(results, torch.Tensor):
        return [results]
    return list(results.values()) if isinstance(results, dict) else results


def operands(*row, negative=False):
    rng = torch.Generator().manual_seed(7)
    values = torch.randn(N, *row, generator=rng)
    return values, torch.randint(-SIZE if negative else 0, SIZE, (N,), generator=rng)


def of_groups(func, values, groups, **options):
    if func in TRANSFORMS:
        return gatherum.groups.transform(values, groups, func, size=SIZE, **options)
    return gatherum.groups.reduce(values, groups, SIZE, func, fill_value=0, **options)


def with_gradients(function, values, *arguments):
    """Return a function's result, and the gradient of the values."""
    leaf = values.clone().requires_grad_()
    result = function(leaf, *arguments)
    (gradient,) = torch.autograd.grad(
        result, leaf, torch.arange(1.0, result.numel() + 1).reshape(result.shape)
    )
    return result, gradient


def test_a_block_sorts_few_values(request):
    values, groups = operands(3)
    expected = of_groups("softmax", values, groups)
    machine, _ = map(request.getfixturevalue, ("on_shim", "as_cuda"))
    assert same_bits(of_groups("softmax", values, groups).numpy(), expected.numpy())
    assert len(machine.named("cuStreamSynchronize")) == 1


@pytest.mark.parametrize("func", each_of(*REDUCES, *TRANSFORMS, ["sum", "max", "std"]))
def test_functions_of_groups(sorts_of, func):
    assert sorts_of(of_groups, func, *operands(3)) == 1


@pytest.mark.parametrize("func", each_of("softmax", "logsumexp", "max"))
def test_gradients_use_the_order_of_the_values(sorts_of, func):
    def call(values, groups):
        return of_groups(func, values, groups)

    assert sorts_of(with_gradients, call, *operands(3)) == 1


@pytest.mark.parametrize("mode", ["raise", "drop"])
@pytest.mark.parametrize("reduction", each_of("add", "mean", "max", "fsum"))
def test_aggregate(sorts_of, reduction, mode):
    data, targets = operands(3, negative=True)
    sources = (7 * torch.arange(N)) % (N + (mode == "drop")) - (mode == "raise") * N

    def call(data):
        return gatherum.aggregate(data, sources, targets, SIZE, reduction, mode=mode)

    assert sorts_of(call, data) == 1


@pytest.mark.parametrize("bits", [10, 2])  # of the digit of a pass: one pass, and two
def test_launches_sort_once(on_shim, as_cuda, library_sorts, bits, monkeypatch):
    data, targets = operands(3, negative=True)
    sources, options = (7 * torch.arange(N)) % N, {"mode": "raise"}

    def call():
        total = gatherum.aggregate(data, sources, targets, SIZE, "add", **options)
        run = gatherum.prepare("scatter_slices", total, targets, reduction="mul")
        return [total, run(total, data), run(total, data + 1)]

    def on_host():
        edges = [each.numpy() for each in (data, sources, targets)]
        total = gatherum.aggregate(*edges, SIZE, "add", **options)
        more = (edges[0], edges[0] + 1)
        return [
            total,
            *(gatherum.scatter_slices(total, edges[2], u, reduction="mul") for u in more),
        ]

    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 1000)
    monkeypatch.setattr(radix_sort, "MOST_DIGIT_BITS", bits)
    expected, launches = on_host(), device_calls.open_device.shim.launches
    before = len(launches)
    for result, wanted in zip(call(), expected, strict=True):
        assert same_bits(result.numpy(), wanted)
    sorts = [kernel.name for kernel in launches[before:] if kernel.name.startswith("sort_")]
    passes = -(-3 // bits)  # for numbers up to 5
    assert sorts == ["sort_count", "sort_offsets", "sort_move"] * passes * 2


@pytest.mark.parametrize("dtype", each_of("float32", "float16", "complex64", "int32", "bool"))
def test_weighted_rows_are_not_stored(sorts_of, dtype, monkeypatch):
    data = operands(3)[0].mul(3).to(getattr(torch, dtype))
    if data.is_floating_point():
        data[0] = torch.nan
    sources, targets = (7 * torch.arange(N)) % N, torch.arange(N) % 2  # a warp folds a target
    weights = operands()[0].to(data.dtype)

    def call(data):
        return [gatherum.aggregate(data, sources, targets, SIZE, "add", weights),
                gatherum.aggregate(data, sources, targets, SIZE, "max", weights[:1], mode="drop")
                if dtype != "complex64" else data]  # fmt: skip

    assert sorts_of(call, data) == (1 if dtype == "complex64" else 2)
    monkeypatch.setattr(cuda, "fold_rows", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call(data)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", each_of("add", "mean"))
def test_gradients_of_aggregate(sorts_of, reduction, weighted):
    data, targets = operands(3)
    sources = (7 * torch.arange(N)) % N
    weights = torch.linspace(1, 2, N) if weighted else None

    def call(data):
        return gatherum.aggregate(data, sources, targets, SIZE, reduction, weights)

    # The gradient of the data sorts by source.
    assert sorts_of(with_gradients, call, data) == (3 if weighted and reduction == "mean" else 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_aggregate_by_pointers_does_not_sort(sorts_of, weighted):
    data, sources = operands(3)
    weights = torch.linspace(1, 2, N) if weighted else None

    def call(data):
        return gatherum.aggregate(data, sources, None, None, "add", weights, indptr=INDPTR)

    assert sorts_of(call, data) == 0


@pytest.mark.parametrize(
    "name", each_of("scatter_max", "scatter_std", "scatter_softmax", "scatter_logsumexp")
)
def test_functions_of_torch_scatter(sorts_of, name):
    values, index = operands(3)
    assert sorts_of(lambda: getattr(torch_scatter, name)(values, index, 0, dim_size=SIZE)) == 1


@pytest.mark.parametrize("pointer", [INDPTR, INDPTR[1:-1]], ids=str)
@pytest.mark.parametrize("name", each_of("segment_mean_csr", "segment_max_csr", "gather_csr"))
def test_segments_are_not_sorted(sorts_of, name, pointer):
    values, _ = operands(3)
    function = getattr(torch_scatter, name)
    if name == "segment_max_csr":
        assert sorts_of(function, values, pointer) == 0
        return
    values = values if name == "segment_mean_csr" else values[: len(pointer) - 1]
    assert sorts_of(with_gradients, function, values, pointer) == 0


def test_a_prepared_call_sorts_once(sorts_of):
    values, index = operands(3, negative=True)
    data = torch.ones(SIZE, 3)

    def call(values):
        run = gatherum.prepare("scatter_slices", data, index, reduction="add")
        take = gatherum.prepare("gather", data, index)
        return [
            run(data, values),
            run(data, values + 1),
            run(data, values, out=data.clone()),
            run(data, 2.0),
            *with_gradients(lambda leaf: run(data, leaf), values),
            *with_gradients(take, data),
            *with_gradients(take, data),
        ]

    assert sorts_of(call, values) == 2


def test_gradients_of_a_prepared_call_keep_one_order(on_shim, as_cuda, sorts):
    values, index = operands(3)
    data = torch.ones(SIZE, 3, requires_grad=True)
    run = gatherum.prepare("scatter_slices", data, index, reduction="mul")
    for _ in range(3):  # each gradient also sorts the indices in reverse order
        run(data, values.requires_grad_()).sum().backward()
    ((_, shared),) = run._runner_of(torch.Tensor)._copies.values()
    assert len([key for key in shared.results if key[0] != "call"]) == 1


def test_a_prepared_call_does_not_keep_the_order_of_a_graph(request, sorts_of):
    machine = request.getfixturevalue("machine")
    values, index = operands(3)
    data, run = torch.ones(SIZE, 3), None

    def call(values):
        nonlocal run
        run = run or gatherum.prepare("scatter_slices", data, index, reduction="add")
        return run(data, values)

    call(values)
    machine.capturing.add(40)
    assert sorts_of(call, values) == 1
    machine.capturing.clear()
    for _ in range(2):
        assert sorts_of(call, values) == 2


FOLDED = [
    (dtype, reduction)
    for dtype in ("int8", "int32", "uint64", "bool", "float32", "complex64")
    for reduction in FOLDS
    if is_reducible(np.dtype(dtype), reduction)
]


@pytest.mark.parametrize(("dtype", "reduction"), FOLDED)
@pytest.mark.parametrize("include_self", [True, False])
def test_the_key_of_a_call_tells_atomics_apart(dtype, reduction, include_self):
    """Calls that atomics fold have no order, and other calls of the same layout have one."""
    arrays = np.zeros(5, dtype), np.zeros(9, np.int64), np.zeros(9, dtype)
    options = {"reduction": reduction, "include_self": include_self}
    plan = gatherum.plan("scatter_slices", *arrays, **options)
    tensors = map(torch.from_numpy, arrays)
    key = cuda.FRAMEWORK.call_key(Attributes("scatter_slices", 0, **options), *tensors)
    assert key.entry[-1] is folds.may_be_atomic(plan.call)
