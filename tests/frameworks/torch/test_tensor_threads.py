"""Tensors of every dtype, on any number of threads: the bits of the same call on NumPy arrays."""

import runpy

import numpy as np
import pytest
from tensors import SHARED, array_of, room, tensor_of, torch

import gatherum
from gatherum._model.dtypes import is_reducible, read_dtype
from gatherum._model.reductions import FOLDS
from recipes import ROOT
from sizes import chosen_from

THREADS = (1, 2, 3, 7)
RNG = np.random.default_rng(23)
ROWS, WIDTH, MANY = 700, 24, 9_000
OURS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
FOLDED = [
    (name, fold) for name in (*SHARED, "bfloat16") for fold in FOLDS
    if is_reducible(read_dtype(name), fold)
]  # fmt: skip
CALLS = {
    "rows": ("gather", {}),
    "columns": ("gather", {"axis": 1}),
    "elements": ("gather_elements", {}),
    "tuples": ("gather_nd", {}),
    "rows written": ("scatter_slices", {}),
    "elements written": ("scatter_elements", {}),
    "tuples written": ("scatter_nd", {}),
}


def dtype_of(name):
    if name in SHARED:
        return np.dtype(name)
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for arrays of bfloat16")
    return np.dtype(getattr(ml_dtypes, name))


def values(dtype, shape):
    """Return arbitrary bits for moves, and numbers with finite sums and products for folds."""
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return RNG.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    if dtype.kind == "c":
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def operands(op, dtype, axis=0):
    data = values(dtype, (ROWS, WIDTH))
    if op.endswith("elements"):
        return data, RNG.integers(0, ROWS, (ROWS, WIDTH)), values(dtype, (ROWS, WIDTH))
    indices = RNG.integers(0, data.shape[axis], MANY if axis == 0 else 3 * WIDTH)
    return data, indices[:, None] if op.endswith("nd") else indices, values(dtype, (MANY, WIDTH))


def check(op, dtype, attributes, arrays):
    """Compare a call on tensors with the one on arrays, for every number of threads."""
    scatters = op.startswith("scatter")
    arrays = arrays[: 3 if scatters else 2]
    tensors = [tensor_of(array.copy()) for array in arrays]
    gatherum.set_num_threads(1)
    with chosen_from({"small_call_bytes": 0, "private_cache_bytes": 0}), np.errstate(all="ignore"):
        expected = getattr(gatherum, op)(*arrays, **attributes).tobytes()
        for threads in THREADS:
            gatherum.set_num_threads(threads)
            result = getattr(room, op)(*tensors, **attributes)
            assert array_of(result, dtype).tobytes() == expected


@pytest.mark.parametrize("name", [*SHARED, *OURS])
@pytest.mark.parametrize("call", CALLS)
def test_operators_that_only_move(settings_restored, name, call):
    op, attributes = CALLS[call]
    dtype = dtype_of(name)
    check(op, dtype, attributes, operands(op, dtype, attributes.get("axis", 0)))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(("name", "reduction"), FOLDED)
def test_folds(settings_restored, name, reduction, include_self):
    dtype = dtype_of(name)
    for op in ("scatter_slices", "scatter_elements", "scatter_nd"):
        attributes = {"reduction": reduction, "include_self": include_self}
        check(op, dtype, attributes, operands(op, dtype))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("reduction", ["none", *FOLDS])
def test_gradients(settings_restored, reduction, name):
    """Gradients of a scatter and of the preceding gather, for every number of threads."""
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(ROWS, WIDTH, generator=generator).to(dtype)
    sources, places = torch.randint(0, ROWS, (2, MANY), generator=generator)
    coming = torch.randn(ROWS, WIDTH, generator=generator).to(dtype)

    def gradient(threads):
        gatherum.set_num_threads(threads)
        leaf = rows.clone().requires_grad_()
        taken = room.gather(leaf, sources)
        room.scatter_slices(leaf, places, taken, reduction=reduction).backward(coming)
        return leaf.grad.view(torch.uint8)

    with chosen_from({"small_call_bytes": 0, "private_cache_bytes": 0}):
        one, *others = [gradient(threads) for threads in THREADS]
    for other in others:
        assert torch.equal(one, other)


@pytest.fixture
def torch_threads_restored():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("reduction", FOLDS)
def test_the_threads_of_torch_change_no_bits(settings_restored, torch_threads_restored, reduction):
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(ROWS, WIDTH, generator=generator)
    sources, places = torch.randint(0, ROWS, (2, MANY), generator=generator)
    coming = torch.randn(ROWS, WIDTH, generator=generator)

    def step(threads):
        torch.set_num_threads(threads)
        leaf = rows.clone().requires_grad_()
        heard = gatherum.aggregate(leaf, sources, places, ROWS, reduction)
        result = room.scatter_slices(leaf, sources[:ROWS], heard, reduction=reduction)
        result.backward(coming)
        return [each.view(torch.uint8) for each in (heard, result, leaf.grad)]

    one, *others = [step(threads) for threads in THREADS]
    for other in others:
        assert all(map(torch.equal, one, other))


@pytest.mark.release
def test_inductor_changes_no_bits_of_gatherum(torch_threads_restored):
    """The rows of the table in the page about PyTorch that do not depend on the machine."""
    script = ROOT / "benchmarks" / "torch_bits.py"
    if not script.exists():
        pytest.skip("the benchmarks are not beside these tests")
    table = runpy.run_path(str(script))
    rows = [row for graph in table["graphs"]() for row in table["compare"](graph, [1, 2])]
    promised = [row for row in rows if "gatherum" in row[0] or "reproducible()" in row[0]]
    assert len(promised) == 11
    assert [row for row in promised if set(row[1]) != {"same"}] == []
