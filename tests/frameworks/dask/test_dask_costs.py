"""Costs of calls, computed from sizes: compared with the graphs, and far beyond any machine."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from strategies import OPERATORS, calls, outcome

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
pytest.importorskip("distributed", reason="install distributed: pip install distributed")
import dask  # noqa: E402
from chunked import chunked  # noqa: E402

import gatherum.dask  # noqa: E402
from gatherum.dask import operands  # noqa: E402
from gatherum.dask.planning import choice, costs  # noqa: E402
from gatherum.dask.planning.layout import runs_within  # noqa: E402
from gatherum.dask.planning.strategies import Strategy, for_gathers  # noqa: E402
from gatherum.dask.shuffling.shuffle_shards import RowsSpec  # noqa: E402


def tasks_of(lazy):
    """Return the tasks of the call that made an array, without the tasks of the operands."""
    layer = lazy.dask.layers[lazy.name]
    return {key: task for key, task in dict(layer).items() if layer.token in str(key)}


def cost_of(lazy):
    layer = lazy.dask.layers[lazy.name]
    return costs.cost(layer.call, layer.layout, layer.choice)


@pytest.fixture(params=["as chosen", "tasks", "shuffle", "apart"])
def strategy(request, monkeypatch):
    for module in (choice, operands):
        monkeypatch.setattr(module, "chunk_bytes", lambda: 60)
    monkeypatch.setattr(choice, "_can_shuffle", lambda: True)
    pays = request.param == "apart"
    monkeypatch.setattr(choice, "partial_pays", lambda *sizes: pays)
    if request.param in ("tasks", "shuffle"):
        monkeypatch.setattr(choice, "SMALL_BYTES", -1)
        with dask.config.set({"gatherum.strategy": request.param}):
            yield request.param
    else:
        yield request.param


@pytest.mark.parametrize("op", OPERATORS)
def test_tasks_are_counted_without_making_them(op, strategy):
    @given(st.data())
    @settings(max_examples=10, deadline=None)
    def run(data):
        call = data.draw(chunked(data.draw(calls([op], most_dimensions=5))))
        lazy = outcome(gatherum.dask, call)
        if not isinstance(lazy, Exception):
            assert cost_of(lazy).task_count == len(tasks_of(lazy))

    run()


# 10 TB in rows of 100 bytes, as many indices as rows, 100 workers.
ROWS, WIDTH, WORKERS, CHUNK = 10**11, 25, 100, 1 << 30


@pytest.fixture(scope="module")
def huge():
    with dask.config.set({"array.chunk-size": CHUNK}):
        rows = CHUNK // (4 * WIDTH)
        table = da.zeros((ROWS, WIDTH), dtype=np.float32, chunks=(rows, WIDTH))
        indices = da.zeros(ROWS, dtype=np.int64, chunks=rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choice, "_can_shuffle", lambda: True)
            return gatherum.gather(table, indices)


def asked(huge, shares, rng):
    """Draw the number of rows that each block requests from the owners of each worker."""
    layout = huge.dask.layers[huge.name].layout
    counts = np.array(layout.entry_counts())
    return rng.multinomial(counts, shares)


def test_ten_terabytes_on_a_hundred_workers(huge):
    layer = huge.dask.layers[huge.name]
    layout, chosen, cost = layer.layout, layer.choice, cost_of(huge)
    assert chosen.strategy == "shuffle"
    tasks = tasks_of(huge)
    assert cost.task_count == len(tasks)

    # Owners and workers are selected as in a run.
    owners = runs_within(choice.owner_bytes(layer.call, layout), chosen.chunk)
    spec = RowsSpec(id="", disk=True, receivers=len(owners))
    worker = np.array([spec.pick_worker((n,), range(WORKERS)) for n in range(len(owners))])
    rows = np.array([sum(layout.keyed[0][n] for n in run) for run in owners])
    rng = np.random.default_rng(0)

    # Pieces: some senders in full.
    some = rng.multinomial(layout.entry_counts()[0], rows / ROWS, 20)
    blocks = len(layout.entry_counts())
    assert np.count_nonzero(some) / 20 * blocks == pytest.approx(cost.piece_count, rel=1e-3)

    # Bytes: every sender, with the owners of a worker combined.
    shares = np.bincount(worker, rows, WORKERS) / ROWS
    between = np.zeros((WORKERS, WORKERS))
    spec = RowsSpec(id="", disk=True, receivers=blocks)
    home = np.array([spec.pick_worker((n,), range(WORKERS)) for n in range(blocks)])
    np.add.at(between, home, asked(huge, shares, rng))
    width = np.min_scalar_type(max(layout.keyed[0]) - 1).itemsize
    assert between.sum() * (4 * WIDTH + width) == cost.sent_bytes
    away = (between.sum() - np.trace(between)) / between.sum()
    assert away == pytest.approx(1 - 1 / WORKERS, rel=1e-2)
    for received in (between.sum(0), between.sum(1)):
        assert received.max() * WORKERS / ROWS < 1.05


def test_the_page_shows_the_results_of_the_benchmark(capsys, monkeypatch):
    root = Path(__file__).parents[3]
    if not (root / "benchmarks").is_dir():
        pytest.skip("the benchmarks are in a copy of the repository only")
    monkeypatch.setattr("sys.argv", ["dask_steps.py", "plan", "--workers", "100"])
    runpy.run_path(str(root / "benchmarks" / "dask_steps.py"), run_name="__main__")
    page = (root / "docs" / "dask-planning.md").read_text()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 9
    assert [line for line in printed if line not in page] == []


def test_the_table_of_strategies_is_that_of_the_documentation():
    page = (Path(__file__).parents[3] / "docs" / "dask.md").read_text("utf-8")
    rows = [f"| `{strategy}` | {strategy.when} | {strategy.effect} |" for strategy in Strategy]
    assert "\n".join(["| strategy | when | what happens |", "|---|---|---|", *rows]) in page


def test_a_strategy_without_a_row_is_named():
    with pytest.raises(TypeError, match=r"strategies without a row, or without a use: shuffle$"):
        for_gathers({Strategy.BLOCKWISE: 0, Strategy.BROADCAST: 0, Strategy.TASKS: 0})
