"""Torch's own operators inside `reproducible`: values, gradients, errors, and the context."""

import functools
import re
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from reproducible_calls import Threads, bits, calls, operands, run
from tensors import room, torch

from gatherum.torch.overrides import kernels
from gatherum.torch.overrides.embeddings import Bags
from gatherum.torch.overrides.scatter_calls import Scatter

pytest.importorskip("expecttest", reason="install expecttest for torch's own samples")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch warns of some operators once
CALLS = calls()
NAMES = {
    "index_add", "scatter_add", "scatter", "scatter_reduce", "index_reduce", "index_put",
    "index_copy", "put", "bincount", "nn.functional.embedding", "nn.functional.embedding_bag",
    "index_select", "gather", "take", "__getitem__", "_unsafe_masked_index_put_accumulate",
}  # fmt: skip
OPS = [op for op in op_db if op.name in NAMES]
ONES_4X3, INDICES = torch.ones(4, 3), torch.tensor([0, 1, 1])
INEXACT_SUM = torch.tensor([2**24, 1, 1], dtype=torch.float32)  # its sum depends on the order


@pytest.fixture
def without_core(monkeypatch):
    """Return a context in which every call of an operator runs the Python function."""

    @contextmanager
    def context():
        with monkeypatch.context() as patch:
            patch.setattr(kernels.private, "cpu_keys", None)
            yield

    return context


def copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return {name: copied(each) for name, each in value.items()} if type(value) is dict else value


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value
    parts = inner if isinstance(inner, (list, tuple)) else []
    return [each for part in parts for each in tensors_in(part)]


def sampled(op, sample):
    """Return the results of a sample, and its gradients."""
    operands = [copied(each) for each in (sample.input, sample.args, sample.kwargs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = tensors_in(op(operands[0], *operands[1], **operands[2]))
    into = [each for each in tensors_in(operands) if each.requires_grad]
    of = [each for each in results if each.requires_grad]
    if not (of and into):
        return results
    seeds = [torch.linspace(-1, 1, each.numel()).view(each.shape).to(each) for each in of]
    found = torch.autograd.grad(of, into, seeds, allow_unused=True)
    return [each.detach() for each in (*results, *found) if each is not None]


@pytest.mark.parametrize(
    "op, dtype",
    [
        pytest.param(op, dtype, id=f"{op.full_name}-{dtype}")
        for op in OPS
        for dtype in (torch.float32, torch.int32, torch.bool, torch.complex64)
        if dtype in op.supported_dtypes("cpu")
    ],
)
def test_torchs_own_samples(op, dtype, without_core):
    gradients = dtype in op.supported_backward_dtypes("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=gradients))
    for sample in samples:
        expected = sampled(op, sample)
        with room.reproducible():
            got = sampled(op, sample)
        with without_core(), room.reproducible():
            in_python = sampled(op, sample)
        for one, other in zip(got + in_python, expected * 2, strict=True):
            assert one.stride() == other.stride()
            if op.name.endswith("embedding_bag"):  # torch multiplies by one over the size
                torch.testing.assert_close(one, other, equal_nan=True)
            else:
                assert torch.equal(one, other) or torch.allclose(one, other, 0, 0, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_bits_do_not_depend_on_threads(name):
    """All inputs are large enough that torch and the core divide them among threads."""
    call, given = LARGE[name], operands(12_000, 50, 4)
    answers = []
    with room.reproducible() as context:
        for count in (1, 2, 3, 8):
            with Threads(count):
                answers.append(bits(run(call, *given)))
        got = run(call, *given)
    assert answers[1:] == answers[:1] * 3
    assert context.report().gatherum
    if name not in RACY:
        for one, other in zip(got, run(call, *given), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)


LARGE = calls(12_000)
RACY = ("assign", "put last", "index_copy")  # torch's last writer depends on the threads


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    updates = torch.full((5000, 1), 1.0, dtype=dtype)
    index = torch.zeros(5000, dtype=torch.int64)
    with room.reproducible():
        total = torch.zeros(1, 1, dtype=dtype).index_add_(0, index, updates)
    assert total.item() == torch.tensor(5000.0).to(dtype).item()


@pytest.mark.parametrize("name", ["embedding_bag mean", "embedding_bag weights"])
def test_few_and_many_rows_have_the_same_bits(monkeypatch, name, without_core):
    with room.reproducible():
        in_core = bits(run(CALLS[name], *operands()))
    with without_core(), room.reproducible():
        few = bits(run(CALLS[name], *operands()))
        monkeypatch.setattr("gatherum.torch.overrides.scatter_calls._TWO_STEP_ELEMENTS", 0)
        many = bits(run(CALLS[name], *operands()))
    assert in_core == few == many


def test_order_of_updates():
    with room.reproducible():
        forward = torch.zeros(1).index_add_(0, torch.zeros(3, dtype=torch.int64), INEXACT_SUM)
        reverse = torch.zeros(1).index_add_(
            0, torch.zeros(3, dtype=torch.int64), INEXACT_SUM.flip(0)
        )
        last = torch.zeros(1).index_put_((torch.zeros(3, dtype=torch.int64),), INEXACT_SUM)
    assert (forward.item(), reverse.item(), last.item()) == (2**24, 2**24 + 2, 1)


def into_out(name, *operands, like=ONES_4X3, **more):
    out = torch.empty_like(like)
    assert getattr(torch, name)(*operands, **more, out=out) is out
    return out


FORMS = {
    "index_add_": lambda: ONES_4X3.clone().index_add_(0, INDICES, ONES_4X3[:3]),
    "index_add.out": lambda: into_out("index_add", ONES_4X3, 0, INDICES, ONES_4X3[:3]),
    "index_copy_": lambda: ONES_4X3.clone().index_copy_(0, INDICES, ONES_4X3[:3] * 2),
    "index_copy.out": lambda: into_out("index_copy", ONES_4X3, 0, INDICES, ONES_4X3[:3] * 2),
    "index_reduce_": lambda: ONES_4X3.clone().index_reduce_(0, INDICES, ONES_4X3[:3] * 2, "prod"),
    "index_reduce.out": lambda: into_out(
        "index_reduce", ONES_4X3, 0, INDICES, ONES_4X3[:3], "amax"
    ),
    "scatter_add_": lambda: ONES_4X3.clone().scatter_add_(0, INDICES[None], ONES_4X3[:1]),
    "scatter_add.out": lambda: into_out("scatter_add", ONES_4X3, 0, INDICES[None], ONES_4X3[:1]),
    "scatter_.src": lambda: ONES_4X3.clone().scatter_(1, INDICES[None], ONES_4X3[:1]),
    "scatter.src_out": lambda: into_out("scatter", ONES_4X3, 1, INDICES[None], ONES_4X3[:1] * 5),
    "scatter_.reduce": lambda: ONES_4X3.clone().scatter_(
        1, INDICES[None], ONES_4X3[:1], reduce="add"
    ),
    "scatter_.value_reduce": lambda: ONES_4X3.clone().scatter_(
        1, INDICES[None], 3, reduce="multiply"
    ),
    "scatter_reduce_.two": lambda: ONES_4X3.clone().scatter_reduce_(
        1, INDICES[None], ONES_4X3[:1], "mean"
    ),
    "scatter_reduce.two_out": lambda: into_out(
        "scatter_reduce", ONES_4X3, 1, INDICES[None], ONES_4X3[:1], "prod"
    ),
    "put_": lambda: ONES_4X3.t().clone().t().put_(INDICES, ONES_4X3[0], accumulate=True),
    "_index_put_impl_": lambda: (
        ONES_4X3.expand(2, 4, 3).clone().index_put_((INDICES[:2, None] * 0, INDICES), ONES_4X3[:3])
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    expected = FORMS[name]()
    with room.reproducible() as context:
        got = FORMS[name]()
    assert bits([got]) == bits([expected])
    assert context.report() == ({name: 1}, {})


def test_plain_calls_run_no_python():
    functions = []
    with room.reproducible() as context:
        for form in FORMS.values():  # the first calls make plans
            form()
        sys.setprofile(lambda frame, event, _: functions.append(frame.f_code.co_filename))
        try:
            for form in FORMS.values():
                form()
        finally:
            sys.setprofile(None)
    assert not [each for each in functions if "gatherum/" in each]
    assert context.report() == (dict.fromkeys(FORMS, 2), {})


NO_INDICES = {
    "put_": lambda data: data.put_(INDICES[:0], ONES_4X3[0, :0], accumulate=True),
    "index_add_": lambda data: data.index_add_(0, INDICES[:0], ONES_4X3[:0]),
}


@pytest.mark.parametrize("name", NO_INDICES)
def test_calls_without_indices_run_no_python(name):
    functions, data = [], ONES_4X3.clone()
    with room.reproducible() as context:
        NO_INDICES[name](data)
        sys.setprofile(lambda frame, event, _: functions.append(frame.f_code.co_filename))
        try:
            assert NO_INDICES[name](data) is data
        finally:
            sys.setprofile(None)
    assert not [each for each in functions if "gatherum/" in each]
    assert context.report() == ({name: 2}, {})
    assert bits([data]) == bits([ONES_4X3])


def test_a_mask_without_rows_is_not_remembered():
    data, mask = ONES_4X3.clone(), torch.zeros(4, dtype=torch.bool)
    with room.reproducible():
        data[mask] = ONES_4X3[:0]
        mask[1] = True
        data[mask] = ONES_4X3[3:]
    assert bits([data[1]]) == bits([ONES_4X3[3]])


def test_remembered_calls_read_their_own_values(without_core):
    others, tensors = calls(seed=2), operands(seed=3)
    with room.reproducible():
        for call in CALLS.values():
            run(call, *operands())
        got = {name: bits(run(call, *tensors)) for name, call in others.items()}
    with without_core(), room.reproducible():
        for name, call in others.items():
            assert got[name] == bits(run(call, *tensors)), name


def test_remembered_calls_check_their_operands():
    data = ONES_4X3.clone()
    with room.reproducible():
        data.index_add_(0, INDICES, ONES_4X3[:3])
        with pytest.raises(RuntimeError, match="index 4 is out of bounds for dimension 0"):
            data.index_add_(0, INDICES + 3, ONES_4X3[:3])
        with pytest.raises(RuntimeError, match="written-to tensor refers to a single"):
            ONES_4X3[:1].expand(4, 3).index_add_(0, INDICES, ONES_4X3[:3])
        out = torch.empty(4, 3)
        torch.index_add(data, 0, INDICES, ONES_4X3[:3], out=out)
        assert torch.index_add(data, 0, INDICES, ONES_4X3[:3], out=data) is data
        for number in (1, 2):
            total = into_out(
                "index_add", INEXACT_SUM[1], 0, INDICES[0], INEXACT_SUM[number], like=INEXACT_SUM[1]
            )
            assert total.item() == 2
        with pytest.raises(RuntimeError, match="input tensor and the written-to tensor refer"):
            torch.index_add(out, 0, INDICES, data[:3], out=data)
    assert bits([data]) == bits([out])


ITEMS = {
    "two": (INDICES, INDICES),
    "broadcast": (INDICES[:, None], INDICES.int()),
    "apart": (INDICES[:2], slice(None), INDICES[:2, None] * 0),
    "behind": (slice(None), INDICES, INDICES - 2),
    "out of bounds": (INDICES, INDICES + 2),
    "not alike": (INDICES, INDICES[:2]),
    "mask": (ONES_4X3[:, 0] > 0, INDICES[:1]),
    "none": (INDICES[:0], INDICES[:0]),
}


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("name", ITEMS)
def test_items(name, accumulate, without_core):
    """`index_put_` in the core returns the bits or the error of torch."""
    indices = tuple(None if isinstance(each, slice) else each for each in ITEMS[name])

    def outcome(shape):
        data = torch.arange(48.0).view(4, 3, 4).transpose(1, 2)[..., :3]
        values = torch.arange(float(torch.Size(shape).numel())).view(shape) + 1
        try:
            return bits([data.index_put_(indices, values, accumulate=accumulate)])
        except Exception as error:
            return type(error), str(error)

    for shape in ((), (1,), (3,), (2, 1), (2, 3), (3, 3), (3, 3, 1), (1, 1, 1, 1, 1), (4, 1)):
        expected = outcome(shape)
        with room.reproducible():
            assert outcome(shape) == expected, shape
        with without_core(), room.reproducible():
            assert outcome(shape) == expected, shape


def test_views_are_written_through():
    with room.reproducible():
        whole = torch.zeros(4, 6)
        whole[:, ::2].index_add_(1, INDICES, ONES_4X3)
        whole.t()[1].put_(INDICES[:2], torch.tensor([5.0, 6.0]))
        version = whole._version
        whole[INDICES, 3] += 1
    assert whole[:, ::2].tolist() == [[1, 2, 0]] * 4
    assert (whole[0, 1], whole[1, 1], whole[1, 3], whole._version) == (5, 6, 1, version + 1)


INVALID = {
    "bounds": lambda: torch.zeros(4, 3).index_add_(0, INDICES + 3, ONES_4X3[:3]),
    "negative": lambda: torch.zeros(4, 3).scatter_add_(0, INDICES[None] - 1, ONES_4X3),
    "shape": lambda: torch.zeros(4, 3).index_add_(0, INDICES, ONES_4X3[:2]),
    "dtype": lambda: torch.zeros(4, 3).index_put_((INDICES,), ONES_4X3[:3].double()),
    "word": lambda: torch.zeros(4, 3).scatter_reduce_(0, INDICES[None], ONES_4X3, "median"),
    "dim": lambda: torch.zeros(4, 3).index_copy_(2, INDICES, ONES_4X3),
    "broadcast": lambda: torch.zeros(4, 3).index_put_((INDICES,), ONES_4X3[0, :2]),
    "expanded": lambda: torch.zeros(1, 3).expand(4, 3).index_add_(0, INDICES, ONES_4X3[:3]),
    "overlap": lambda: (x := torch.zeros(4, 3)).index_add_(0, INDICES, x[:3]),
    "put": lambda: torch.zeros(4).put_(INDICES + 9, ONES_4X3[0]),
    "put dtype": lambda: torch.zeros(4).put_(INDICES, ONES_4X3[0].double()),
    "out dtype": lambda: torch.index_add(
        ONES_4X3, 0, INDICES, ONES_4X3[:3], out=torch.zeros(4, 3).double()
    ),
    "out overlap": lambda: torch.index_add(
        ONES_4X3, 0, INDICES, (x := ONES_4X3.clone())[:3], out=x
    ),
    "bincount": lambda: torch.bincount(INDICES - 1, ONES_4X3[0]),
    "bag": lambda: torch.nn.functional.embedding_bag(INDICES + 3, ONES_4X3, INDICES[:2]),
    "segments": lambda: torch.segment_reduce(ONES_4X3, "sum", lengths=torch.tensor([1, 1])),
}


@pytest.mark.parametrize("name", INVALID)
def test_errors_are_torchs(name):
    def outcome():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return INVALID[name]()
            except Exception as error:
                return type(error), str(error)

    expected = outcome()
    with room.reproducible():
        got = outcome()
        assert torch.are_deterministic_algorithms_enabled()
    assert type(expected[0]) is type
    assert str(got) == str(expected)


@pytest.mark.parametrize("bags", [[0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 2, 1, 0]], ids=len)
def test_gradient_of_bags_of_another_number(bags, without_core):
    arguments = torch.ones(3, 4), torch.tensor([0, 1, 2, 1]), torch.tensor(bags)
    counts = torch.ones(3, dtype=torch.int64)

    def outcome():
        call = *arguments, counts, counts, 5, False, 0, None
        try:
            return bits([torch.ops.aten._embedding_bag_dense_backward(*call)])
        except Exception as error:
            return type(error), str(error)

    with without_core(), room.reproducible():
        expected = outcome()
    with room.reproducible():
        assert outcome() == expected


NONE = torch.zeros(0, dtype=torch.int64)
AS_TORCH = {
    "bool in index_reduce": lambda: (
        ONES_4X3[0].bool().index_reduce(0, INDICES, ONES_4X3[0].bool(), "prod")
    ),
    "bool slices": lambda: ONES_4X3.bool().index_reduce(0, INDICES, ONES_4X3[:3].bool(), "prod"),
    "complex in index_reduce": lambda: (
        ONES_4X3[0].cfloat().index_reduce_(0, INDICES, ONES_4X3[0].cfloat(), "prod")
    ),
    "nothing in index_reduce": lambda: (
        ONES_4X3[0].bool().index_reduce(0, NONE, NONE.bool(), "prod")
    ),
    "int32 in index_copy": lambda: torch.zeros(3).index_copy_(0, INDICES[:1].int(), torch.ones(1)),
    "dim of an empty index": lambda: torch.zeros(3).scatter(5, NONE, torch.zeros(0)),
    "overlap, empty index": lambda: torch.zeros(1).expand(2).scatter_add_(0, NONE, torch.zeros(0)),
    "overlap, no rows": lambda: (
        torch.zeros(3, 1)
        .expand(3, 2)
        .index_reduce_(0, NONE, torch.zeros(0, 2), "mean", include_self=False)
    ),
    "add to nothing": lambda: torch.zeros(0, 2).index_add(0, INDICES[1:2], torch.zeros(1, 2)),
    "copy to nothing": lambda: torch.zeros(4, 0).index_copy(0, INDICES[1:2] + 8, torch.zeros(1, 0)),
    "put into nothing": lambda: torch.zeros(1, 0).index_put_((INDICES + 3,), torch.zeros(3, 0)),
    "alpha beyond float16": lambda: ONES_4X3.half().index_add(
        0, INDICES, ONES_4X3[:3].half(), alpha=70000
    ),
    "number beyond bfloat16": lambda: ONES_4X3.bfloat16().scatter(
        0, INDICES[None], -1e300, reduce="add"
    ),
    "infinity in float16": lambda: ONES_4X3.half().scatter(
        0, INDICES[None], float("inf"), reduce="add"
    ),
    "weights of means": lambda: torch.embedding_bag(
        ONES_4X3, INDICES, INDICES[:1], False, 1, False, ONES_4X3[0]
    )[0],
    "no memory": lambda: torch.bincount(torch.tensor([2**58]), ONES_4X3[0, :1]),
    "nothing for uint64": lambda: (
        torch.ones(3).to(torch.uint64).put_(NONE, torch.ones(0).to(torch.uint64), accumulate=True)
    ),
}


@pytest.mark.parametrize("name", AS_TORCH)
def test_rare_calls_are_those_of_torch(name, without_core):
    def outcome():
        try:
            return bits([AS_TORCH[name]()])
        except Exception as error:
            return type(error), str(error)

    expected = outcome()
    with room.reproducible():
        assert [outcome() for _ in range(3)] == [expected] * 3
    with without_core(), room.reproducible():
        assert outcome() == expected


def test_torch_may_not_run_what_gatherum_rejects():
    put = next(row for row in kernels.ROWS if row.in_place == "put_")
    complete = kernels._Overload(put, "put_").complete
    kernel = kernels._kernel(
        "put_", complete, SimpleNamespace(call_boxed=lambda *call: None), False
    )
    message = "reproducible: put_: torch's kernel accepted operands that gatherum rejected"
    with pytest.raises(RuntimeError, match=message):
        kernel(None, torch.zeros(2), torch.tensor([2]), torch.ones(1))


def test_leaving_restores_torch():
    def ran():
        return torch.zeros(4, 3).index_add_(0, INDICES, ONES_4X3[:3])

    with room.reproducible() as context:
        ran()
    with pytest.raises(KeyError), context:
        assert context.report() == ({}, {})
        raise KeyError
    assert not room.is_reproducible()
    assert not torch.are_deterministic_algorithms_enabled()
    ran()
    assert context.report() == ({}, {})
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with room.reproducible():
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_nested_and_as_a_decorator():
    @room.reproducible(strict=False)
    def decorated(depth):
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        if depth:
            decorated(depth - 1)
        return room.is_reproducible()

    with room.reproducible() as outer:
        with room.reproducible() as inner:
            ONES_4X3.clone().index_add_(0, INDICES, ONES_4X3[:3])
        assert room.is_reproducible()
        ONES_4X3.clone().index_add_(0, INDICES, ONES_4X3[:3])
        assert decorated(2)
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert outer.report().gatherum == {"index_add_": 2}
    assert str(inner.report()) == "index_add_: 1 calls on gatherum, 0 on torch"
    assert not room.is_reproducible()
    message = "^reproducible: __exit__ must follow __enter__, but this context is not active$"
    with pytest.raises(RuntimeError, match=message):
        inner.__exit__(None, None, None)


async def coroutine():
    """Run nothing."""


def generator():
    yield


async def async_generator():
    yield


@pytest.mark.parametrize("function", [coroutine, generator, async_generator])
def test_does_not_decorate_functions_that_run_later(function):
    message = re.escape(
        f"reproducible: cannot decorate {function.__qualname__}, which is a generator or a "
        "coroutine: its body would run outside the context; use `with reproducible():` in the body"
    )
    with pytest.raises(TypeError, match=f"^{message}$"):
        room.reproducible()(function)


class Generating:
    """An object whose call runs later."""

    def __call__(self):
        yield


@pytest.mark.parametrize(
    "function", [functools.partial(generator), Generating(), staticmethod(generator)]
)
def test_does_not_decorate_objects_that_run_later(function):
    with pytest.raises(TypeError, match="which is a generator or a coroutine"):
        room.reproducible()(function)


def test_the_page_names_what_torch_cannot_run():
    """torch's docstring lists the operators that raise if the mode is deterministic."""
    text = torch.use_deterministic_algorithms.__doc__.split("In addition")[0]
    listed = text.split("`RuntimeError` when ``mode=True``:")[1]
    names = re.findall(r"\* :(?:class|func):`torch\.(?:\w+\.)*(\w+)`", listed)
    page = (Path(__file__).parents[3] / "docs/reproducible-training.md").read_text("utf-8")
    overridden = {"EmbeddingBag", "put_", "bincount", "scatter_reduce"}
    assert overridden < set(names)
    assert not [name for name in names if name not in overridden and f"`{name}`" not in page]


def test_for_a_whole_script():
    room.set_reproducible(True)
    try:
        room.set_reproducible(True)
        assert room.is_reproducible()
        with room.reproducible() as context:
            ONES_4X3.clone().index_add_(0, INDICES, ONES_4X3[:3])
        assert room.is_reproducible()
        assert context.report().gatherum == {"index_add_": 1}
    finally:
        room.set_reproducible(False)
    assert not room.is_reproducible()
    with pytest.raises(TypeError, match="set_reproducible: `flag` must be a bool, got 1"):
        room.set_reproducible(1)
    with pytest.raises(TypeError, match="reproducible: `strict` must be a bool, got 'no'"):
        room.reproducible(strict="no")


def test_threads_share_the_context():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with room.reproducible():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=work)
    with room.reproducible() as context:
        other.start()
        inside.wait(10)
        table = ONES_4X3.clone().requires_grad_()
        table[INDICES].sum().backward()  # in a thread of autograd for a device, in this one here
    assert room.is_reproducible()
    leave.set()
    other.join()
    assert not room.is_reproducible()
    assert context.report().gatherum == {"_index_put_impl_": 1}


def test_nondeterministic_operators_raise_or_warn():
    pool = torch.nn.MaxUnpool1d(2)
    data, at = torch.ones(1, 1, 1), torch.zeros(1, 1, 1, dtype=torch.int64)
    with room.reproducible(), pytest.raises(RuntimeError, match="deterministic implementation"):
        pool(data, at)
    with room.reproducible(strict=False), pytest.warns(UserWarning, match="deterministic"):
        pool(data, at)


@pytest.mark.parametrize(
    ("described", "source", "struct"),
    [(Scatter, "override_scatter.cpp", "ScatterField"), (Bags, "override_bags.cpp", "BagsField")],
)
def test_the_core_reads_the_fields_of_a_description(described, source, struct):
    text = (Path(__file__).parents[3] / "src/core/python/torch" / source).read_text("utf-8")
    (fields,) = re.findall(rf"struct {struct} {{\s*enum {{([^}}]*)}}", text)
    assert [*described._fields, "count"] == [field.strip() for field in fields.split(",")]


OVERLAPPING = {
    "index_add_": lambda data, index, source: data.index_add_(0, index, source, alpha=2),
    "scatter_reduce_": lambda data, index, source: data.scatter_reduce_(0, index, source, "mean"),
    "index_put_": lambda data, index, source: data.view(2, 2).index_put_((index, index), source),
    "put_": lambda data, index, source: data.put_(index, source),
}


def overlapping(case):
    memory = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
    apart = torch.tensor([5, 6, 7, 8])
    data, index = memory[:4], torch.tensor([0, 1, 1, 0])
    if case == "the source is the data":
        return data, index, data
    if case == "the source and the data meet":
        return data, index, memory[2:6]
    if case == "the source and the data are neighbours":
        return data, index, memory[4:]
    return data, memory[2:6], apart


@pytest.mark.parametrize("name", OVERLAPPING)
@pytest.mark.parametrize(
    "case",
    [
        "the source is the data",
        "the source and the data meet",
        "the source and the data are neighbours",
        "the index and the data meet",
    ],
)
def test_overlapping_operands(case, name):
    def outcome():
        data, index, source = overlapping(case)
        try:
            OVERLAPPING[name](data, index, source)
        except RuntimeError as error:
            return str(error)
        return data.tolist()

    expected = outcome()
    with room.reproducible():
        for _ in range(3):  # the first call runs in Python, later ones in the core
            assert outcome() == expected


@pytest.mark.parametrize("alpha", [2**60 + 2**36 + 1, 1e300, 3])
def test_factors_are_rounded_once(alpha):
    def outcome():
        try:
            return torch.zeros(1).index_add(0, torch.tensor([0]), torch.ones(1), alpha=alpha).item()
        except RuntimeError as error:
            return str(error)

    expected = outcome()
    with room.reproducible():
        assert [outcome() for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint64, torch.float8_e5m2])
@pytest.mark.parametrize("name", ["index_copy_", "scatter_", "index_put_"])
def test_dtypes_without_kernels(name, dtype):
    def outcome():
        data, index = torch.zeros(3).to(dtype), torch.tensor([0, 2])
        where = ((index,),) if name == "index_put_" else (0, index)
        try:
            return getattr(data, name)(*where, torch.ones(2).to(dtype)).float().tolist()
        except NotImplementedError as error:
            return str(error)

    expected = outcome()
    with room.reproducible():
        assert [outcome() for _ in range(3)] == [expected] * 3


def test_an_ignored_index_beyond_the_table():
    weights = torch.ones(5, 3, requires_grad=True)
    with room.reproducible():
        torch.embedding(weights, torch.tensor([0, 1]), 7).sum().backward()
    assert weights.grad.sum(1).tolist() == [3, 3, 0, 0, 0]
