"""Other operands that a tensor may be combined with, and tensors that are views of their memory."""

import multiprocessing
import threading

import numpy as np
import pytest
from tensors import room, torch

import gatherum

DATA = torch.arange(12.0).reshape(4, 3)
INDICES = torch.tensor([0, 3, -1])
UPDATES = torch.tensor([[1.0, 2.0, 3.0]] * 3)


# --- Lists, arrays, numbers


@pytest.mark.parametrize(
    "indices",
    [[0, 3, -1], (0, 3, -1), np.array([0, 3, -1], np.int8), np.array([0, 3, -1], ">i4"),
     np.array([-1, 3, 0])[::-1], np.array([0, 9, 3, 9, -1])[::2],
     np.frombuffer(b"\0\3\xff", np.int8), torch.tensor([0, 3, -1], dtype=torch.int16)],
    ids=range(8),
)  # fmt: skip
def test_indices_of_every_kind(indices):
    expected = DATA[[0, 3, 3]]
    for call in (gatherum.gather, room.gather):
        assert torch.equal(call(DATA, indices), expected)


def test_updates_of_every_kind():
    expected = torch.tensor([2.5, 0.0, 2.5])
    for updates in (2.5, [2.5, 2.5], np.float32([2.5, 2.5]), torch.tensor(2.5), np.float32(2.5)):
        result = gatherum.scatter_elements(torch.zeros(3), [0, 2], updates)
        assert torch.equal(result, expected)
    assert gatherum.scatter_elements(torch.zeros(3, dtype=torch.int8), [0], -128)[0] == -128
    with pytest.raises(
        ValueError, match="`updates` must convert exactly to the dtype of `data`, in"
    ):
        gatherum.scatter_elements(torch.zeros(3, dtype=torch.int8), [0], 128)
    with pytest.raises(
        ValueError, match=r"`updates` must be an integer where `data` is int8, got 1\.5"
    ):
        gatherum.scatter_elements(torch.zeros(3, dtype=torch.int8), [0], 1.5)
    with pytest.raises(TypeError, match=r"^scatter_elements: `updates` must have the dtype of "
                       "`data`, float32, got float64"):  # fmt: skip
        gatherum.scatter_elements(torch.zeros(3), [0], np.float64(1.5))


def nearest(values, every):
    """Round numbers to the nearest value of a type, ties to even."""
    bits = every.view(f"u{every.itemsize}")
    order = np.lexsort((bits, every.astype(np.float64)))
    every, bits = every[order], bits[order].astype(int)
    seen = every.astype(np.float64)
    above = np.clip(np.searchsorted(seen, values), 1, len(seen) - 1)
    up, down = seen[above] - values, values - seen[above - 1]
    take_up = (up < down) | ((up == down) & (bits[above] % 2 == 0))
    return (
        np.where(take_up, bits[above], bits[above - 1])
        .astype(f"u{every.itemsize}")
        .view(every.dtype)
    )


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
)
def test_numbers_round_once_to_types_that_numpy_lacks(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype, seen = getattr(torch, name), np.dtype(getattr(ml_dtypes, name))
    generator = np.random.default_rng(0)
    values = generator.normal(size=300) * 2.0 ** generator.integers(-12, 8, 300)
    # Halfway between two numbers, and a little off, which rounding twice would get wrong.
    half = (values.astype(seen).astype(np.float64) + np.nextafter(
        values.astype(seen), seen.type(np.inf)).astype(np.float64)) / 2  # fmt: skip
    values = np.concatenate(
        [values, half, half * (1 + 2.0**-40), half * (1 - 2.0**-40), [0.0, -0.0]]
    )
    every = np.arange(1 << 8 * seen.itemsize, dtype=f"u{seen.itemsize}").view(seen)
    with np.errstate(all="ignore"):  # signalling NaNs
        every = every[np.isfinite(every.astype(np.float64))]
    expected = nearest(values, every)
    kept = np.abs(values) <= np.abs(every.astype(np.float64)).max()
    result = room.scatter_elements(
        torch.zeros(int(kept.sum())).to(dtype), np.arange(kept.sum()), values[kept].tolist()
    )
    bits = result.view(torch.uint16 if dtype.itemsize == 2 else torch.uint8).numpy()
    result, expected = (array.astype(np.float64) for array in (bits.view(seen), expected[kept]))
    assert np.array_equal(result, expected)
    with pytest.raises(
        ValueError, match=f"must stay finite in the dtype of `data`, {name}, got 1e"
    ):
        room.scatter_elements(torch.zeros(1).to(dtype), [0], 1e300)
    assert room.gather(
        torch.zeros(1).to(dtype), [5], mode="fill", fill_value=0.25
    ).float().tolist() == [0.25]


def test_fill_values():
    for value in (2.5, np.float32(2.5), torch.tensor(2.5)):
        assert room.gather(DATA, [7], mode="fill", fill_value=value).tolist() == [[2.5] * 3]
    with pytest.raises(ValueError, match="`fill_value` must be an integer where `data` is int64"):
        room.gather(torch.arange(3), [7], mode="fill", fill_value=2.5)
    with pytest.raises(ValueError, match="`fill_value` must be an integer where `data` is int64"):
        torch.ops.gatherum.gather(torch.arange(3), torch.tensor([7]), 0, "fill", True, 2.5)
    big = torch.tensor([1], dtype=torch.uint64)
    result = room.gather(big, [7], mode="fill", fill_value=2**64 - 1)
    assert result.tolist() == [2**64 - 1]


def test_errors_are_one_sentence():
    cases = {
        "`axis` must be an integer, got 1.5": lambda: gatherum.gather(DATA, [0], 1.5),
        "`mode` must be one of": lambda: gatherum.gather(DATA, [0], mode="no"),
        "`negative` must be True or False": lambda: gatherum.gather(DATA, [0], negative=1),
        "`indices` must have an integer dtype, got float32": lambda: gatherum.gather(DATA, DATA),
        "`indices` must have an integer dtype, got bool": lambda: room.gather(DATA, DATA > 3),
        "`indices` must be one array": lambda: room.gather(DATA, [INDICES, INDICES]),
        "`data` must be a dense tensor, got a ndarray": lambda: room.gather(DATA.numpy(), [0]),
        "`out` must be a dense tensor, got a ndarray": lambda: room.gather(
            DATA, [0], out=np.zeros((1, 3), np.float32)),
        "`out` must have shape (1, 3), got (3,)": lambda: room.gather(
            DATA, [0], out=torch.zeros(3)),
        "`out` must not share memory with `data`": lambda: room.gather(DATA, [0], out=DATA[:1]),
        "`updates` must have the dtype of `data`, float32, got float64": lambda: room.scatter_nd(
            DATA, [[0]], DATA[:1].double()),
    }  # fmt: skip
    for words, call in cases.items():
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert words in str(caught.value), words
        assert str(caught.value).count("\n") == 0


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize("name", ["complex32", "quint8", "float4_e2m1fn_x2", "bits8", "int4"])
def test_dtypes_without_plain_items(name):
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this torch has no {name}")
    if name == "quint8":
        data = torch.quantize_per_tensor(torch.ones(3), 1.0, 0, dtype)
    else:
        data = torch.empty(3, dtype=dtype)
    with pytest.raises(
        TypeError, match=r"^gather: `data` must (have a dtype of torch|be a dense ten)"
    ):
        gatherum.gather(data, [0])
    with pytest.raises(TypeError, match=r"^gather: `data` must (have a dtype|be a dense tensor)"):
        gatherum.gather(data, torch.tensor([0]))
    with pytest.raises(TypeError, match=r"^gather: `data` must (have a dtype|be a dense tensor)"):
        torch.ops.gatherum.gather(data, torch.tensor([0]))


# --- Tensors that are more than their memory


def test_conjugated_and_negated_tensors():
    values = torch.tensor([1 + 2j, 3 - 4j, 5j])
    for seen in (
        values.conj(),
        values.conj().imag,
        values.imag,
        torch._neg_view(torch.arange(3.0)),
    ):
        plain = seen.resolve_conj().resolve_neg().clone()
        assert torch.equal(gatherum.gather(seen, [2, 0]), plain[[2, 0]])
        expected = room.scatter_elements(plain, [0, 0], plain[1:], reduction="add")
        assert torch.equal(
            gatherum.scatter_elements(seen, [0, 0], seen[1:], reduction="add"), expected
        )
        out = seen.clone()
        room.scatter_elements(out, [1], seen[:1], out=out)
        assert torch.equal(out[1], seen[0])
    target = values.clone()
    room.scatter_elements(target.conj(), [0], torch.tensor([7 + 1j]), out=target.conj())
    assert target[0] == 7 - 1j
    assert torch.equal(room.gather(torch.arange(3.0), torch._neg_view(torch.tensor([1, 2]))),
                       torch.tensor([2.0, 1.0]))  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_tensors_have_a_sentence():
    for sparse, words in (
        (DATA.to_sparse(), "got a tensor of layout sparse_coo; write data.to_dense()"),
        (DATA.to_sparse_csr(), "got a tensor of layout sparse_csr; write data.to_dense()"),
    ):
        with pytest.raises(TypeError) as caught:
            gatherum.gather(sparse, [0])
        assert str(caught.value) == f"gather: `data` must be a dense tensor, {words}"
    with pytest.raises(TypeError, match=r"; write updates.to_dense\(\)$"):
        gatherum.scatter_slices(DATA, [0], DATA[:1].to_sparse())


def test_another_device_has_a_sentence():
    with pytest.raises(TypeError, match=r"^gather: `indices` must be on the device of `data`, "
                       "meta, got cpu; write "):  # fmt: skip
        gatherum.gather(DATA.to("meta"), INDICES)


class Mine(torch.Tensor):
    pass


class Logged(torch.Tensor):
    """A subclass that receives torch's dispatch."""

    @staticmethod
    def __new__(cls, inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        wrapper.inner = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        bare = [a.inner if isinstance(a, Logged) else a for a in args]
        SEEN.append(str(function))
        return Logged(function(*bare, **(kwargs or {})))


SEEN = []


def test_subclasses_go_through_the_dispatcher():
    result = gatherum.gather(DATA.as_subclass(Mine), INDICES)
    assert type(result) is Mine
    assert torch.equal(result.as_subclass(torch.Tensor), DATA[INDICES])
    SEEN.clear()
    result = gatherum.gather(Logged(DATA), INDICES)
    assert type(result) is Logged
    assert SEEN == ["gatherum.gather.default"]
    assert torch.equal(result.inner, DATA[INDICES])
    parameter = torch.nn.Parameter(DATA.clone())
    result = gatherum.gather(parameter, INDICES)
    assert result.requires_grad
    with torch.no_grad():
        assert type(gatherum.gather(parameter, INDICES)) is torch.Tensor


def test_modes_see_the_ops():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    with Dispatch():
        gatherum.gather(DATA, INDICES)
    assert seen == ["gatherum.gather.default"]
    seen.clear()
    with Function():
        gatherum.gather(DATA, INDICES)
    assert any("gather" in name for name in seen)


def test_zeros_that_are_nowhere():
    nowhere = torch._efficientzerotensor((4, 3))
    assert torch.equal(gatherum.gather(nowhere, INDICES), torch.zeros(3, 3))
    result = gatherum.scatter_slices(nowhere, INDICES, UPDATES, reduction="add")
    assert torch.equal(result, gatherum.scatter_slices(torch.zeros(4, 3), INDICES, UPDATES,
                                                       reduction="add"))  # fmt: skip


def test_a_traced_call_is_recorded():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(lambda d: gatherum.gather(d, INDICES) + 0, (DATA,))
    assert torch.equal(traced(DATA * 2), DATA[INDICES] * 2)


def test_make_fx_sees_the_op():
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda d: gatherum.gather(d, INDICES))(DATA)
    assert "gatherum.gather.default" in graph.code


# --- Settings of torch


def test_inference_mode_and_no_grad():
    parameter = torch.nn.Parameter(DATA.clone())
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            result = gatherum.gather(parameter, INDICES)
            assert torch.equal(result, DATA[INDICES])
            out = torch.zeros(4, 3)
            gatherum.scatter_slices(parameter, INDICES, UPDATES, out=out)
            gatherum.scatter_slices(out, INDICES, UPDATES, reduction="add", out=out)
            assert torch.equal(out[3], UPDATES[0] * 3)


def test_autocast_promotes_nothing():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert gatherum.gather(DATA, INDICES).dtype == torch.float32
        half = torch.ones(3, 4) @ torch.ones(4, 3)
        assert half.dtype == torch.bfloat16
        with pytest.raises(
            TypeError, match="`updates` must have the dtype of `data`, float32, got bf"
        ):
            gatherum.scatter_slices(DATA, INDICES, half, reduction="add")
        result = gatherum.scatter_slices(DATA, INDICES, half.to(DATA.dtype), reduction="add")
        assert result.dtype == torch.float32


def test_deterministic_algorithms_change_nothing():
    expected = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction="add")
    torch.use_deterministic_algorithms(True)
    try:
        result = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction="add")
        data = DATA.clone().requires_grad_()
        gatherum.gather(data, [0, 0, 1]).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(result, expected)
    assert data.grad[:, 0].tolist() == [2, 1, 0, 0]


def test_versions_count_changes():
    out = torch.zeros(4, 3)
    before = out._version
    gatherum.scatter_slices(out, INDICES, UPDATES, out=out)
    assert out._version == before + 1
    gatherum.gather(DATA, [0, 1, 2, 3], out=out)
    assert out._version == before + 2
    assert DATA._version == DATA._version


# --- Threads and processes


def test_threads_of_torch_and_of_the_core():
    data, indices = torch.randn(2000, 64), torch.randint(0, 2000, (20_000,))
    expected, failures = data[indices], []

    def work():
        for _ in range(10):
            mine = gatherum.gather(data, indices)
            total = (mine * 2 - mine).sum(1)
            if not (
                torch.equal(mine, expected) and torch.allclose(total, expected.sum(1), atol=1e-4)
            ):
                failures.append(mine)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_large_results_are_freed_from_any_thread():
    gatherum.clear_output_cache()
    results = [gatherum.gather(torch.zeros(1000, 1000), torch.arange(1000)) for _ in range(3)]
    part = results[0][10:20]
    dropper = threading.Thread(target=results.clear)
    dropper.start()
    dropper.join()
    assert torch.equal(part, torch.zeros(10, 1000))
    from gatherum._system import native

    assert native.cached_output_bytes() >= 8_000_000


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        table = torch.arange(40_000.0).reshape(400, 100)
        return gatherum.gather(table, torch.arange(i, i + 200))


def test_workers_of_a_data_loader():
    gatherum.gather(
        torch.zeros(1000, 1000), torch.arange(1000)
    )  # start the threads before the fork
    result = list(torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2,
                                              multiprocessing_context="fork"))  # fmt: skip
    assert torch.equal(torch.cat(result)[3], Rows()[3])


def _fill_shared(table, indices):
    gatherum.scatter_slices(table, indices, 5.0, out=table)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_memory_shared_with_a_child():
    table = torch.zeros(4, 3).share_memory_()
    child = multiprocessing.get_context("fork").Process(target=_fill_shared, args=(table, INDICES))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert table[:, 0].tolist() == [5, 0, 0, 5]
    result = gatherum.gather(torch.zeros(1000, 1000), torch.arange(1000)).share_memory_()
    assert result.is_shared()


def test_results_are_plain_tensors():
    small = gatherum.gather(DATA, INDICES)
    large = gatherum.gather(torch.zeros(1000, 1000), torch.arange(1000))
    for result in (small, large):
        assert type(result) is torch.Tensor
        assert result.is_contiguous()
        assert not result.requires_grad
        assert result._base is None
        result.requires_grad_()
        assert result.is_leaf
        (result * 2).sum().backward()
        assert result.grad.shape == result.shape
        assert torch.equal(result.detach().clone(), result.detach())


def test_finalizers_that_resize_a_tensor_during_the_call(python):
    """A finalizer may free the memory of operands; it does not run after the core has read them."""
    done = python(
        """
import gc, torch, gatherum, gatherum.torch
from gatherum._system import native
FAR, MANY = 1 << 22, 1 << 18
indices = torch.full((MANY,), FAR - 1)
for threshold in range(1, 40):
    both = torch.ones(2 * FAR)
    data, out = both[::2], both[1::2][:MANY]  # between each other, without a shared byte
    class Garbage:
        def __del__(self):
            data.set_(torch.ones(1))
    native.clear_plans()
    gc.disable()
    garbage = Garbage()
    garbage.itself = garbage
    del garbage
    gc.set_threshold(threshold)
    gc.enable()
    try:
        gatherum.gather(data, indices, out=out)
    except (ValueError, IndexError) as error:
        print(error)
    finally:
        gc.set_threshold(700)
"""
    )
    assert done.returncode == 0, done.stderr
    resized = "gather: index 4194303 is out of bounds for axis 0 of size 1 (indices[0])"
    changed = "gather: `data` must keep its shape and memory during the call"
    assert {resized} <= set(done.stdout.splitlines()) <= {resized, changed}


def test_importing_gatherum_imports_no_torch(python):
    code = "import gatherum, sys; gatherum.gather([1, 2], [0]); print('torch' in sys.modules)"
    assert python(code).stdout == "False\n"


def test_a_fill_value_that_needs_a_gradient_is_refused():
    value = torch.tensor(2.0, requires_grad=True)
    for call in (gatherum.gather, room.gather):
        with pytest.raises(ValueError, match="gather: `fill_value` must not need a gradient"):
            call(torch.ones(3), [5], mode="fill", fill_value=value)
        with torch.no_grad():
            assert call(torch.ones(3), [5], mode="fill", fill_value=value).tolist() == [2]


def test_a_negative_zero_fills():
    data, indices = torch.ones(3), torch.tensor([9, 0])
    for fill in (-0.0, 0.0, 0):
        for result in (
            gatherum.gather(data, indices, mode="fill", fill_value=fill),
            torch.ops.gatherum.gather(data, indices, 0, "fill", True, fill),
        ):
            assert torch.signbit(result).tolist() == [str(fill)[0] == "-", False]
