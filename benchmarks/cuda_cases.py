"""The calls that `cuda_bench.py` compares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

import gatherum
import gatherum.cuda

Call = Callable[[], Any]
GPU = torch.device("cuda")


@dataclass
class Case:
    """One comparison: gatherum's calls by mode, other calls by name, and the goals.

    Attributes
    ----------
    floor : int
        Bytes that must be read and written.
    of_floor : float
        The goal: the minimum fraction of the floor's speed.
    peer, ratio : str, float
        A peer, and the minimum desired ratio of its time to gatherum's.
    """

    name: str
    ours: Callable[[str], Any]
    peers: dict[str, Call]
    floor: int
    of_floor: float | None
    peer: str | None
    ratio: float | None
    goal: float | None = None  # of the time on an H100, in milliseconds
    exact: bool = True  # whether the results of peers have the same bits
    close: bool = True  # whether the other results of peers are close
    times: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # device, host


def peers_of(**calls: Call | None) -> dict[str, Call]:
    """Omit the calls of packages that are not installed."""
    return {name.replace("_", " "): call for name, call in calls.items() if call is not None}


def with_cupy(function: Callable[..., Any], *tensors: Tensor) -> Call | None:
    """Return a call of a function on CuPy's arrays of the same memory."""
    if not find_spec("cupy"):
        return None
    import cupy

    arrays = [cupy.asarray(tensor) for tensor in tensors]
    return lambda: function(cupy, *arrays)


def with_torch_scatter(src: Tensor, index: Tensor, size: int) -> Call | None:
    if not find_spec("torch_scatter"):
        return None
    import torch_scatter

    return lambda: torch_scatter.scatter_sum(src, index, 0, dim_size=size)


def deterministic(call: Call) -> Call:
    """Return a call under torch's deterministic mode."""

    def run() -> Any:
        torch.use_deterministic_algorithms(True)
        try:
            return call()
        finally:
            torch.use_deterministic_algorithms(False)

    return run


def moved(op: str, *operands: Tensor, **more: Any) -> int:
    return gatherum.plan(op, *operands, **more).bytes


def rows(scale: float) -> Iterator[Case]:
    """Rows of 512 bytes, as in embeddings."""
    n = int(scale * (1 << 20))
    table, index = torch.randn(n, 128, device=GPU), torch.randint(n, (n,), device=GPU)
    peers = peers_of(
        index_select=lambda: table.index_select(0, index),
        cupy_take=with_cupy(lambda cupy, t, i: cupy.take(t, i, axis=0), table, index),
    )
    yield Case(
        "gather, rows of 512 bytes, 2^20",
        lambda mode: gatherum.gather(table, index, mode=mode),
        peers, moved("gather", table, index), 0.88, "index select", 0.95,
    )  # fmt: skip


def elements(scale: float) -> Iterator[Case]:
    """One element per index, near its position or anywhere in its row."""
    n = int(scale**0.5 * (1 << 13))
    table = torch.randn(n, n, device=GPU)
    near = (torch.arange(n, device=GPU) + torch.randint(-8, 9, (n, n), device=GPU)).clamp(0, n - 1)
    for name, index, goal, milliseconds in (
        ("near", near, 0.7, 0.39),
        ("random", torch.randint(n, (n, n), device=GPU), 0.5, 0.44),
    ):
        peers = peers_of(
            gather=lambda index=index: torch.gather(table, 1, index),
            cupy_take_along_axis=with_cupy(
                lambda cupy, t, i: cupy.take_along_axis(t, i, axis=1), table, index
            ),
        )
        yield Case(
            f"gather_elements, 8192 x 8192, {name} indices",
            lambda mode, index=index: gatherum.gather_elements(table, index, 1, mode=mode),
            peers, moved("gather_elements", table, index, axis=1), goal, None, None, milliseconds,
        )  # fmt: skip


def set_rows(table: Any, index: Any, updates: Any) -> Any:
    table[index] = updates
    return table


def added(cupy: Any, table: Any, index: Any, updates: Any) -> Any:
    result = table.copy()
    cupy.add.at(result, index, updates)
    return result


def rows_set(scale: float) -> Iterator[Case]:
    """Rows written in place; the last duplicate is stored, which torch does not guarantee."""
    n = int(scale * (1 << 20))
    table, updates = torch.randn(n, 128, device=GPU), torch.randn(n, 128, device=GPU)
    index = torch.randperm(n, device=GPU)
    tuples = index[:, None]
    peers = peers_of(
        index_put_=lambda: table.index_put_((index,), updates),
        cupy_set=with_cupy(lambda _, t, i, u: set_rows(t, i, u), table, index, updates),
    )
    peers["index put, racy"] = peers.pop("index put ")
    yield Case(
        "scatter without a reduction, rows of 512 bytes",
        lambda mode: gatherum.scatter_nd(table, tuples, updates, mode=mode, out=table),
        peers, moved("scatter_nd", table, tuples, updates, out=table), None, "index put, racy",
        1 / 1.25,
    )  # fmt: skip


def fold_floor(n: int, destinations: int, row: int, result: int) -> int:
    """The bytes of a radix sort of n pairs of 4 and 4 bytes, and of a pass over rows and result."""
    passes = -(-destinations.bit_length() // 8)
    return 8 * n + passes * 2 * 8 * n + 8 * n + row * n + 2 * result


def fold(
    name: str,
    table: Tensor,
    index: Tensor,
    updates: Tensor,
    of_floor: float | None = None,
    ratio: float | None = None,
    goal: float | None = None,
) -> Case:
    size, is_float32 = table.shape[0], table.dtype == torch.float32  # CuPy lacks other types
    peers = peers_of(
        torch_deterministic=deterministic(lambda: table.index_add(0, index, updates)),
        torch_racy=lambda: table.index_add(0, index, updates),
        cupy_add_at_racy=with_cupy(added, table, index, updates) if is_float32 else None,
        torch_scatter=with_torch_scatter(updates, index, size),
    )
    floor = fold_floor(len(index), size, updates[0].nbytes, table.nbytes)
    return Case(
        name,
        lambda mode: gatherum.scatter_slices(table, index, updates, reduction="add", mode=mode),
        peers, floor, of_floor, "torch deterministic", ratio, goal, exact=False,
    )  # fmt: skip


def adds(scale: float) -> Iterator[Case]:
    n, size = int(scale * (1 << 26)), int(scale * (1 << 24))
    operands = torch.randint(size, (n,), device=GPU), torch.randn(n, device=GPU)
    yield fold("float32 add, 2^26 into 2^24", torch.zeros(size, device=GPU), *operands, 0.5, 2.0)


def destinations(scale: float, count: int) -> int:
    """Return a number of destinations, which is smaller only in trials."""
    return max(1, int(min(1, 10 * scale) * count))


def row_adds(scale: float) -> Iterator[Case]:
    n, size = int(scale * (1 << 22)), destinations(scale, 100_000)
    operands = torch.randint(size, (n,), device=GPU), torch.randn(n, 64, device=GPU)
    yield fold("float32 add, rows of 64, 2^22 into 100,000", torch.zeros(size, 64, device=GPU),
               *operands, 0.5, 2.0, 0.88)  # fmt: skip


def bins(scale: float) -> Iterator[Case]:
    n = int(scale * 20_000_000)
    operands = torch.randint(256, (n,), device=GPU), torch.randn(n, device=GPU)
    yield fold("float32 add, 20M into 256", torch.zeros(256, device=GPU), *operands, None, 1.0,
               1.15)  # fmt: skip


def few_places(scale: float) -> Iterator[Case]:
    """Many updates of few places, some of them of one place."""
    n, many, width = (int(scale * (1 << bits)) for bits in (22, 24, 20))
    rows = torch.randint(1000, (n,), device=GPU), torch.randn(n, 64, device=GPU)
    yield fold("float32 add, rows of 64, 2^22 into 1000", torch.zeros(1000, 64, device=GPU), *rows,
               goal=0.85)  # fmt: skip
    size = destinations(scale, 100_000)
    skewed = (torch.rand(n, device=GPU) ** 4 * size).long()
    zeros, updates = torch.zeros(size, 16, device=GPU), torch.randn(n, 16, device=GPU)
    yield fold("float32 add, rows of 16, 2^22 into 100,000, skewed", zeros, skewed, updates,
               goal=2)  # fmt: skip
    wide = torch.randint(100, (width,), device=GPU), torch.randn(width, 128, device=GPU)
    yield fold("float32 add, rows of 128, 2^20 into 100", torch.zeros(100, 128, device=GPU), *wide,
               goal=1.15)  # fmt: skip
    one = torch.zeros(many, dtype=torch.int64, device=GPU), torch.randn(many, device=GPU)
    case = fold("float32 add, 2^24 into one destination", torch.zeros(1, device=GPU), *one,
                goal=57)  # fmt: skip
    case.close = False  # the error of a sum in another order is large
    del case.peers["torch deterministic"]  # two seconds on an H100
    yield case


def other_types(scale: float) -> Iterator[Case]:
    """float16, and integers, which are added by atomics."""
    n = int(scale * (1 << 24))
    for name, count, dtype, goal in (
        ("float16 add, 2^24 into 100,000", 100_000, torch.float16, 0.9),
        ("float32 add, 2^24 into 1M", 1_000_000, torch.float32, 1.1),
        ("int64 add, 2^24 into 1M", 1_000_000, torch.int64, 0.25),
        ("int64 add, 2^24 into 256", 256, torch.int64, 0.3),
    ):
        size = destinations(scale, count)
        zeros, index = torch.zeros(size, dtype=dtype, device=GPU), torch.randint(size, (n,))
        updates = (100 * torch.randn(n, device=GPU)).to(dtype)
        case = fold(name, zeros, index.to(GPU), updates, goal=goal)
        case.close, case.exact = dtype == torch.float32, dtype == torch.int64
        yield case


def other_reductions(scale: float) -> Iterator[Case]:
    """The other reductions of rows, against index_reduce, which folds in any order."""
    n, size = int(scale * (1 << 22)), destinations(scale, 100_000)
    zeros, index = torch.zeros(size, 64, device=GPU), torch.randint(size, (n,), device=GPU)
    updates = torch.randn(n, 64, device=GPU)
    floor = fold_floor(n, size, updates[0].nbytes, zeros.nbytes)
    for reduction, name in (("mean", "mean"), ("max", "amax"), ("mul", "prod"), ("fsum", "")):
        peers = {"index reduce": lambda name=name: zeros.index_reduce(0, index, updates, name)}

        def ours(mode: str, reduction: Any = reduction) -> Any:
            return gatherum.scatter_slices(zeros, index, updates, reduction=reduction, mode=mode)

        yield Case(
            f"{reduction}, rows of 64, 2^22 into 100,000", ours, peers if name else {}, floor,
            None, None, None, exact=False,
        )  # fmt: skip


def narrow_rows(scale: float) -> Iterator[Case]:
    """Rows of 32 and 64 bytes, and single items."""
    for name, count, width, dtype in (
        ("gather, rows of 32 bytes, 2^23", 23, 8, torch.float32),
        ("gather, float8 rows of 64 bytes, 2^22", 22, 64, torch.float8_e4m3fn),
        ("gather, single float32, 2^26", 26, 1, torch.float32),
    ):
        n = int(scale * (1 << count))
        table = torch.randn(n, width, device=GPU).to(dtype).squeeze(1)
        index = torch.randint(n, (n,), device=GPU)

        def ours(mode: str, table: Tensor = table, index: Tensor = index) -> Any:
            return gatherum.gather(table, index, mode=mode).view(torch.uint8)

        def selected(table: Tensor = table, index: Tensor = index) -> Any:
            return table.index_select(0, index).view(torch.uint8)

        floor = moved("gather", table, index)
        yield Case(name, ours, {"index select": selected}, floor, None, None, None)


def sets(scale: float) -> Iterator[Case]:
    """Updates that replace items; torch stores any of the updates of a place."""
    n, size = int(scale * (1 << 24)), destinations(scale, 1_000_000)
    side = int(scale**0.5 * (1 << 13))
    zeros, index = torch.zeros(size, device=GPU), torch.randint(size, (n,), device=GPU)
    updates = torch.randn(n, device=GPU)
    square, places = torch.randn(side, side, device=GPU), torch.randint(side, (side, side))
    places = places.to(GPU)
    for name, op, axis, table, i, values, goal, peer in (
        ("no reduction, 2^24 into 1M", "scatter_slices", 0, zeros, index, updates, 0.39,
         lambda: zeros.index_copy(0, index, updates)),
        ("scatter_elements without a reduction, 8192 x 8192", "scatter_elements", 1, square, places,
         square, 1.6, lambda: square.scatter(1, places, square)),
        ("scatter_elements without a reduction, 8192 x 8192, axis 0", "scatter_elements", 0, square,
         places, square, None, lambda: square.scatter(0, places, square)),
    ):  # fmt: skip

        def ours(mode: str, call: Any = (op, table, i, values), axis: int = axis) -> Any:
            return getattr(gatherum, call[0])(*call[1:], axis=axis, mode=mode)

        floor = moved(op, table, i, values, axis=axis)
        case = Case(name, ours, {"torch, racy": peer}, floor, None, None, None, goal, exact=False)
        case.close = False
        yield case


def compositions(scale: float) -> Iterator[Case]:
    """Calls that sort once: sums along edges, and softmax over groups."""
    n, size = int(scale * (1 << 20)), destinations(scale, 100_000)
    sources, targets = (torch.randint(size, (n,), device=GPU) for _ in range(2))
    data, weights = torch.randn(size, 64, device=GPU), torch.rand(n, device=GPU)
    values = torch.randn(n, 8, device=GPU)
    floor = fold_floor(n, size, data[0].nbytes, data.nbytes)

    def aggregated(weights: Tensor | None = None) -> Case:
        def ours(mode: str) -> Tensor:
            result: Tensor = gatherum.aggregate(
                data, sources, targets, size, "add", weights, mode=mode
            )
            return result

        def racy() -> Tensor:
            rows = data[sources] if weights is None else data[sources] * weights[:, None]
            return torch.zeros_like(data).index_add_(0, targets, rows)

        name = f"aggregate, 2^20 edges of rows of 64{'' if weights is None else ', weights'}"
        peers = {"torch racy": racy}
        return Case(name, ours, peers, floor, None, None, None, 1.0, exact=False)

    yield aggregated()
    yield aggregated(weights)

    def softmax(mode: str) -> Any:
        return gatherum.groups.transform(values, targets, "softmax", size=size, mode=mode)

    floor = fold_floor(n, size, 6 * values[0].nbytes, 0)
    yield Case("softmax of groups, 2^20 rows of 8", softmax, {}, floor, None, None, None, 1.5)


CASES = (
    rows, narrow_rows, elements, rows_set, sets, adds, row_adds, other_reductions, bins, few_places,
    other_types, compositions,
)  # fmt: skip
