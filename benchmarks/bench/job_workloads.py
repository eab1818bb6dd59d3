"""Workloads that are complete jobs: graphs, groups, tables and mixtures of experts."""

from __future__ import annotations

import numpy as np

from .cases import Array
from .jobs import Job
from .workloads import Maker, Workload, numbers, scaled, values

EXPERTS = 8  # rows that are combined for each token


def _grouped(rng: np.random.Generator, size: int, count: int) -> Array:
    """Return random groups, none of which is empty."""
    groups = numbers(rng, size, count)
    groups[rng.permutation(count)[:size]] = np.arange(size)
    return groups


def _groups(size: int, func: str, fixed: bool = False) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Job:
        count = scaled(10_000_000, scale)
        n = min(size, count) if fixed else scaled(size, scale)
        operands = {"groups": _grouped(rng, n, count), "values": values(rng, count, "f8")}
        return Job("groups", operands, n, func)

    return make


def _table(func: str, answers: int) -> Maker:
    """Return a table of three columns as db-benchmark fills them, with its third identifier."""

    def make(scale: float, rng: np.random.Generator) -> Job:
        count, n = scaled(10_000_000, scale), scaled(100_000, scale)
        operands = {
            "groups": _grouped(rng, n, count),
            "v1": rng.integers(1, 6, count),
            "v2": rng.integers(1, 16, count),
            "v3": np.round(100 * rng.random(count), 6),
        }
        return Job("query", operands, n, func, 8 * answers)

    return make


def _counts(scale: float, rng: np.random.Generator) -> Job:
    n, count = scaled(50_000, scale), scaled(20_000_000, scale)
    return Job("counts", {"groups": _grouped(rng, n, count)}, n, "count")


def _messages(func: str) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Job:
        n, edges = scaled(100_000, scale), scaled(1_000_000, scale)
        operands = {
            "table": values(rng, (n, 64), "f4"),
            "sources": numbers(rng, n, edges),
            "targets": _grouped(rng, n, edges),
        }
        return Job("messages" if func == "sum" else "maxima", operands, n, func, 256)

    return make


def _positions(scale: float, rng: np.random.Generator) -> Job:
    n, count = scaled(100_000, scale), scaled(1_000_000, scale)
    operands = {"groups": _grouped(rng, n, count), "values": values(rng, (count, 64), "f4")}
    return Job("positions", operands, n, "argmax", 512)


def _bags(scale: float, rng: np.random.Generator) -> Job:
    n, size, rows = (scaled(count, scale) for count in (1_000_000, 20_000, 800_000))
    operands = {
        "table": values(rng, (n, 64), "f4"),
        "rows": numbers(rng, n, rows),
        "indptr": _pointer(_grouped(rng, size, rows), size),
    }
    return Job("bags", operands, size, row_bytes=256)


def _product(width: int) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Job:
        n, entries = scaled(100_000, scale), scaled(1_000_000, scale)
        operands = {
            "table": values(rng, (n, width), "f4"),
            "rows": numbers(rng, n, entries),
            "indptr": _pointer(_grouped(rng, n, entries), n),
            "weights": values(rng, entries, "f4"),
        }
        return Job("product", operands, n, row_bytes=4 * width)

    return make


def _combine(scale: float, rng: np.random.Generator) -> Job:
    tokens = scaled(8192, scale)
    rows = EXPERTS * tokens
    operands = {
        "table": values(rng, (rows, 1024), "f2"),
        "rows": rng.permutation(rows),  # where the experts put the rows of each token
        "indptr": np.arange(0, rows + 1, EXPERTS),
        "weights": values(rng, rows, "f2"),
    }
    return Job("combine", operands, tokens, row_bytes=2048)


def _permute(scale: float, rng: np.random.Generator) -> Job:
    tokens = scaled(8192, scale)
    rows = rng.permutation(EXPERTS * tokens) // EXPERTS
    table = values(rng, (tokens, 1024), "f2")
    return Job("permute", {"table": table, "rows": rows}, len(rows), "none", 2048)


def _take(scale: float, rng: np.random.Generator) -> Job:
    n, count = scaled(2_000_000, scale), scaled(1_000_000, scale)
    operands = {"table": values(rng, n, "f8"), "rows": numbers(rng, n, count)}
    return Job("take", operands, count, "none")


def _pointer(groups: Array, size: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=size))])


def _all_once(job: Job) -> int:
    """Count every operand and the result once."""
    return sum(array.nbytes for array in job.arrays) + job.result_bytes


def _rows_once(job: Job) -> int:
    """Count each gathered row, the other operands, and the result once."""
    table, rows = job["table"], job["rows"]
    taken = rows.size * max(64, table[0].nbytes)
    return taken + _all_once(job) - table.nbytes


JOBS: tuple[Workload, ...] = (
    Workload("job-messages-sum", "message passing: sums of 1M edges x 64 f32, 100k nodes",
             _messages("sum"), _all_once, 1.3),
    Workload("job-messages-max", "message passing: maxima", _messages("max"), _all_once, 1.3),
    Workload("job-product-64", "CSR product: 1M entries, 100k rows of 64 f32",
             _product(64), _all_once, 1.3),
    Workload("job-product-8", "CSR product: 1M entries, 100k rows of 8 f32",
             _product(8), _all_once, 1.0),
    Workload("job-bags", "embedding bags: 20k sums of 40 rows of 1M x 64 f32",
             _bags, _rows_once, 1.4),
    Workload("job-sum-100", "group sums: 10M f64 into 100",
             _groups(100, "sum", fixed=True), _all_once, 1.1),
    Workload("job-sum-10k", "group sums: 10M f64 into 10k", _groups(10_000, "sum"), _all_once, 1.0),
    Workload("job-sum-1M", "group sums: 10M f64 into 1M",
             _groups(1_000_000, "sum"), _all_once, 1.1),
    Workload("job-mean-100", "group means: 10M f64 into 100",
             _groups(100, "mean", fixed=True), _all_once, 0.95),
    Workload("job-mean-10k", "group means: 10M f64 into 10k",
             _groups(10_000, "mean"), _all_once, 0.95),
    Workload("job-mean-1M", "group means: 10M f64 into 1M",
             _groups(1_000_000, "mean"), _all_once, 2.4),
    Workload("job-max-100", "group maxima: 10M f64 into 100",
             _groups(100, "max", fixed=True), _all_once, 1.5),
    Workload("job-max-10k", "group maxima: 10M f64 into 10k",
             _groups(10_000, "max"), _all_once, 1.1),
    Workload("job-max-1M", "group maxima: 10M f64 into 1M",
             _groups(1_000_000, "max"), _all_once, 1.5),
    Workload("job-argmax", "positions of maxima: 1M rows of 64 f32 into 100k",
             _positions, _all_once, 15.0),
    Workload("job-query-3", "table of 10M rows: sum of v1, mean of v3 by 100k groups",
             _table("sum, mean", 2), _all_once, 1.0),
    Workload("job-query-5", "table of 10M rows: sums of v1, v2, v3 by 100k groups",
             _table("sums", 3), _all_once, 1.0),
    Workload("job-query-7", "table of 10M rows: max of v1 - min of v2 by 100k groups",
             _table("range", 1), _all_once, 1.0),
    Workload("job-counts", "counts: 20M into 50k", _counts, _all_once, 2.0),
    Workload("job-take", "1M of a column of 2M f64", _take, _rows_once, 1.5),
    Workload("job-permute", "mixture of experts, permute: 65k rows x 1024 f16 of 8k",
             _permute, _all_once, 7.0),
    Workload("job-combine", "mixture of experts, combine: 65k rows x 1024 f16 into 8k",
             _combine, _all_once, 2.0),
)  # fmt: skip
