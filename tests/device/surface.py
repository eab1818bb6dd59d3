"""Call the rest of the package on a device, and compare the bits with a call on the host.

Each line names a call, followed by ok, or by the difference or the error. The last line has the
number of failed calls. Packages that are not installed are named.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gatherum
from gatherum.groups.functions import REDUCES
from gatherum.torch import torch_scatter

GPU = torch.device("cuda")
# The name of a call, its function, and its operands on the host.
Check = tuple[str, Callable[..., Any], tuple[Tensor, ...]]


def of_groups() -> Iterator[Check]:
    values, groups = torch.randn(5000, 6), torch.randint(90, (5000,))
    for func in REDUCES:
        for dtype in (torch.float32, torch.float16, torch.int64):
            operands = (values * 9).to(dtype), groups

            def reduce(v: Tensor, g: Tensor, func: Any = func) -> Any:
                return gatherum.groups.reduce(v, g, 90, func)

            yield f"groups.reduce {func} {dtype}", reduce, operands
    for func in ("softmax", "log_softmax", "cumcount", "centre", "normalize"):

        def transform(v: Tensor, g: Tensor, func: Any = func) -> Any:
            return gatherum.groups.transform(v, g, func, size=90)

        yield f"groups.transform {func}", transform, (values, groups)


def of_edges() -> Iterator[Check]:
    values, weights = torch.randn(5000, 6), torch.rand(20_000)
    sources, targets = torch.randint(5000, (20_000,)), torch.randint(300, (20_000,))
    for reduction in ("add", "mean", "max", "min", "mul", "fsum"):

        def aggregate(*operands: Tensor, reduction: Any = reduction) -> Any:
            v, s, t, *w = operands
            return gatherum.aggregate(v, s, t, 300, reduction, *w)

        operands = values, sources, targets
        yield f"aggregate {reduction}", aggregate, operands
        yield f"aggregate {reduction}, weights", aggregate, (*operands, weights)
        few = values, sources, targets % 7, weights  # blocks fold the rows of a target
        yield f"aggregate {reduction}, long runs", aggregate, few

    def prepared(v: Tensor, t: Tensor, u: Tensor) -> Any:
        return gatherum.prepare("scatter_slices", v, t, u, reduction="add")(v, u)

    yield "prepare", prepared, (values, targets, torch.randn(20_000, 6))


def of_torch_scatter() -> Iterator[Check]:
    values, index = torch.randn(5000, 6), torch.randint(90, (5000,))
    ordered, ends = index.sort().values, torch.tensor([0, 0, 40, 41, 900, 5000])
    names = ("sum", "mean", "mul", "max", "min", "softmax", "log_softmax", "logsumexp", "std")
    for name in names:

        def scatter(v: Tensor, i: Tensor, name: str = f"scatter_{name}") -> Any:
            return getattr(torch_scatter, name)(v, i, dim=0)

        yield f"torch_scatter.scatter_{name}", scatter, (values, index)
    for reduce in ("sum", "mean", "max", "min"):
        for name, places in (("segment_coo", ordered), ("segment_csr", ends)):

            def segment(v: Tensor, i: Tensor, name: str = name, reduce: str = reduce) -> Any:
                return getattr(torch_scatter, name)(v, i, reduce=reduce)

            yield f"torch_scatter.{name} {reduce}", segment, (values, places)


def of_dtypes() -> Iterator[Check]:
    index = torch.randint(-100, 100, (40,))
    names = ("bool", "uint8", "int8", "int16", "uint16", "uint32", "uint64", "bfloat16")
    for name in (*names, "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"):
        data = torch.randint(2, (100, 3)).to(getattr(torch, name))
        yield f"gather of {name}", gatherum.gather, (data, index)
    for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"):
        index_dtype = getattr(torch, name)
        yield (
            f"indices of {name}",
            gatherum.gather,
            (torch.randn(100, 3), index.abs().to(index_dtype)),
        )


def of_tables() -> Iterator[Check]:
    codes, scales = torch.randint(256, (50, 24), dtype=torch.uint8), torch.randn(50, 3)
    index = torch.randint(50, (40,))
    for bits, size in ((8, 8), (4, 16), (2, 32)):

        def quantized(*operands: Tensor, bits: int = bits, size: int = size) -> Any:
            return gatherum.gather_quantized(*operands, block_size=size, bits=bits)

        yield f"gather_quantized, {bits} bits", quantized, (codes, index, scales)


def of_accumulators() -> Iterator[Check]:
    index, updates = torch.randint(90, (5000,)), torch.randn(5000, 6)
    for reduction in ("add", "mean", "max", "none"):

        def batches(data: Tensor, i: Tensor, u: Tensor, fold: Any = reduction) -> Tensor:
            if not data.is_cuda:
                return gatherum.scatter_slices(data, i, u, reduction=fold)
            accumulator = gatherum.Accumulator(data, fold)
            for begin in range(0, 5000, 1000):
                part = slice(begin, begin + 1000)
                accumulator.scatter_slices(i[part], u[part])
            result: Tensor = accumulator.finish()
            return result

        yield f"Accumulator {reduction}", batches, (torch.randn(90, 6), index, updates)


def difference(host: Any, device: Any) -> str:
    """Return "" for results with the same bits, else what differs. All NaNs are equal."""
    if isinstance(host, tuple):
        return next(filter(None, map(difference, host, device)), "")
    host, device = host.detach(), device.detach().cpu()
    if (host.shape, host.dtype) != (device.shape, device.dtype):
        return f"{tuple(device.shape)} {device.dtype}, not {tuple(host.shape)} {host.dtype}"
    if host.is_floating_point() and host.itemsize > 1:
        absent = host.isnan()
        if not torch.equal(absent, device.isnan()):
            return "other NaNs"
        host, device = host.masked_fill(absent, 0), device.masked_fill(absent, 0)
    same = torch.equal(*(each.reshape(-1).view(torch.uint8) for each in (host, device)))
    return "" if same else "other bits than on the host"


def outcome(function: Callable[..., Any], operands: tuple[Tensor, ...]) -> str:
    """Call a function on the host and on the device. Return ok, or the difference."""
    expected = result_of(function, operands)
    result = result_of(function, tuple(each.to(GPU) for each in operands))
    if isinstance(result, str) or isinstance(expected, str):
        return "ok" if str(result) == str(expected) else str(result)[:200]
    return difference(expected, result) or "ok"


def result_of(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Return the result of a call, or its error as a string."""
    try:
        return function(*operands)
    except Exception as error:  # any error of a device: make the next call
        return f"{type(error).__name__}: {error}"


def of_graph_layers() -> Iterator[tuple[str, str]]:
    """Yield the outcomes of PyTorch Geometric's layers with this package's torch_scatter."""
    sys.modules["torch_scatter"] = torch_scatter
    try:
        layers = import_module("torch_geometric.nn")
    except ImportError:
        yield "torch_geometric", "not installed"
        return
    nodes, edges = torch.randn(1000, 16, device=GPU), torch.randint(1000, (2, 8000), device=GPU)
    for layer in (
        layers.SAGEConv(16, 8, aggr="max"),
        layers.SAGEConv(16, 8),
        layers.GCNConv(16, 8),
    ):
        with torch.no_grad(), gatherum.torch.reproducible():
            first, second = (layer.to(GPU)(nodes, edges) for _ in range(2))
        yield f"{type(layer).__name__} twice", difference(first.cpu(), second) or "ok"


def of_jax() -> Iterator[tuple[str, str]]:
    """Yield the outcomes of calls on JAX arrays, if JAX sees a GPU."""
    try:
        jax = import_module("jax")
        on_gpu = jax.devices()[0].platform in ("gpu", "cuda")
    except (ImportError, RuntimeError):
        on_gpu = False
    if not on_gpu:
        yield "JAX", "sees no GPU, or is not installed"
        return
    yield from jax_outcomes(jax)


def jax_outcomes(jax: Any) -> Iterator[tuple[str, str]]:
    """Yield the outcomes of calls on JAX arrays on the default device."""
    random = np.random.default_rng(1)
    table, updates = (random.standard_normal((n, 8), np.float32) for n in (100, 6000))
    operands = table, random.integers(-100, 100, 6000, np.int32), updates
    for name, function in _jax_calls().items():
        for run_mode, run in (("eager", function), ("jit", jax.jit(function))):
            expected = result_of(function, operands)
            result = result_of(_waiting(jax, run), tuple(map(jax.numpy.asarray, operands)))
            yield f"JAX: {name}, {run_mode}", _compared(expected, result)


def _compared(expected: Any, result: Any) -> str:
    """Return ok, or the difference. JAX's error in a compiled call contains the message."""
    if isinstance(expected, str) and isinstance(result, str):
        return "ok" if expected.split(": ", 1)[1] in result else result[:200]
    if isinstance(expected, str) or isinstance(result, str):
        return str(result)[:200]
    return "ok" if np.asarray(result).tobytes() == expected.tobytes() else "other bits"


def _waiting(jax: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: jax.block_until_ready(run(*operands))


def _jax_calls() -> dict[str, Callable[..., Any]]:
    """Return calls on data, indices and updates, which are JAX arrays or NumPy arrays."""
    calls: dict[str, Callable[..., Any]] = {
        "gather": lambda data, rows, _: gatherum.gather(data, rows),
        "gather, clip": lambda data, rows, _: gatherum.gather(data, rows, mode="clip"),
        "gather, fill": lambda data, rows, _: gatherum.gather(
            data, rows * 2, mode="fill", fill_value=2.5
        ),
        "an invalid index": lambda data, rows, _: gatherum.gather(data, rows + 1),
    }
    reductions = ("none", "add", "mean", "max", "mul", "fsum")
    for mode, reduction in itertools.product(("raise", "clip"), reductions):
        calls[f"scatter_slices, {reduction}, {mode}"] = partial(
            gatherum.scatter_slices, mode=mode, reduction=reduction
        )
    return calls


def main() -> int:
    """Make the calls, and return whether one has failed."""
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    counts = {"calls": 0, "wrong": 0}
    for checks in (of_groups, of_edges, of_torch_scatter, of_dtypes, of_tables, of_accumulators):
        for name, function, operands in checks():
            report(name, outcome(function, operands), counts)
    for outcomes in (of_graph_layers, of_jax):
        for name, words in outcomes():
            report(name, words, counts)
    print(f"{counts['wrong']} of {counts['calls']} calls went wrong")
    return int(counts["wrong"] > 0)


def report(name: str, words: str, counts: dict[str, int]) -> None:
    """Print and count an outcome."""
    counts["calls"] += 1
    counts["wrong"] += words != "ok" and "not installed" not in words
    print(f"{name}: {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
