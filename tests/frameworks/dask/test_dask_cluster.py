"""Calls on a cluster of processes: the same bits by every strategy, and propagated errors."""

import hashlib
import re

import numpy as np
import pytest

import gatherum

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
import dask
import dask.array as da
import distributed
from distributed import Client, LocalCluster

from clusters import WARNINGS
from gatherum._system import private_names
from gatherum.dask import private
from gatherum.dask.planning import choice

pytestmark = pytest.mark.filterwarnings(*WARNINGS)
RNG = np.random.default_rng(21)
DATA = RNG.standard_normal((300, 7)).astype(np.float16)
INDICES = RNG.zipf(1.3, 900) % 300
UPDATES = RNG.standard_normal((900, 7)).astype(np.float16)
STRATEGIES = ["tasks", "shuffle"]


@pytest.fixture(scope="module")
def client():
    settings = {"distributed.logging.distributed": "error"}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as c,
        Client(c) as client,
    ):
        yield client


@pytest.fixture(params=STRATEGIES)
def strategy(request, monkeypatch, client):
    from gatherum.dask import operands

    monkeypatch.setattr(choice, "SMALL_BYTES", -1)
    for module in (choice, operands):
        monkeypatch.setattr(module, "chunk_bytes", lambda: 2000)
    with dask.config.set({"gatherum.strategy": request.param, "scheduler": client}):
        yield request.param


def lazy(array, rng):
    chunks = []
    for n in array.shape:
        cuts = np.sort(rng.integers(0, n + 1, rng.integers(0, 5)))
        chunks.append(tuple(np.diff([0, *cuts, n]).tolist()))
    return da.from_array(array, chunks=tuple(chunks))


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def compute(strategy, op, operands, **attributes):
    text = str(gatherum.explain(op, *operands, **attributes))
    assert strategy in text or "blockwise" in text
    return getattr(gatherum, op)(*operands, **attributes).compute()


@pytest.mark.parametrize(("seed", "reduction"), list(enumerate(["none", "add", "mean", "max"])))
def test_scatters(strategy, seed, reduction):
    """Each reduction with different chunks; test_dask_equality.py tests arbitrary chunks."""
    expected = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction=reduction)
    rng = np.random.default_rng(seed)
    operands = [lazy(one, rng) for one in (DATA, INDICES, UPDATES)]
    result = compute(strategy, "scatter_slices", operands, reduction=reduction)
    assert digest(result) == digest(expected)


def test_updates_that_broadcast_and_indices_that_are_dropped(strategy):
    indices = np.where(INDICES > 200, 999, INDICES)[:, None]
    expected = gatherum.scatter_nd(DATA, indices, UPDATES[:1], reduction="add", mode="drop")
    rng = np.random.default_rng(5)
    operands = lazy(DATA, rng), lazy(indices, rng), UPDATES[:1]
    result = compute(strategy, "scatter_nd", operands, reduction="add", mode="drop")
    assert digest(result) == digest(expected)


def test_gathers(strategy):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        operands = lazy(DATA, rng), lazy(INDICES.reshape(30, 30), rng)
        expected = gatherum.gather(DATA, INDICES.reshape(30, 30))
        assert digest(compute(strategy, "gather", operands)) == digest(expected)
    indices = np.where(INDICES > 200, 999, INDICES)
    expected = gatherum.gather(DATA, indices, mode="fill", fill_value=np.nan)
    operands = lazy(DATA, rng), lazy(indices, rng)
    result = compute(strategy, "gather", operands, mode="fill", fill_value=np.nan)
    assert digest(result) == digest(expected)


@pytest.mark.parametrize("dtype", [">i2", [("a", "<i4"), ("b", ">i2")]])
def test_blocks_whose_dtype_dask_has_changed(strategy, dtype):
    """When a cluster joins blocks, their bytes become native, and records lose their padding."""
    data, updates = (np.zeros(shape, np.dtype(dtype, align=True)) for shape in ((300, 7), (900, 7)))
    for array in (data, updates):
        for field in [array] if array.dtype.names is None else [array["a"], array["b"]]:
            field[:] = RNG.integers(-99, 99, array.shape)
    rng = np.random.default_rng(9)
    expected = gatherum.scatter_slices(data, INDICES, updates)
    result = compute(strategy, "scatter_slices", [lazy(a, rng) for a in (data, INDICES, updates)])
    assert np.array_equal(result, expected)
    taken = compute(strategy, "gather", (lazy(updates, rng), lazy(INDICES, rng)))
    assert np.array_equal(taken, gatherum.gather(updates, INDICES))


@pytest.mark.parametrize("axis", [0, 1])
def test_elements(strategy, axis):
    rng = np.random.default_rng(8)
    order = np.argsort(DATA, axis=axis)
    result = compute(strategy, "gather_elements", (lazy(DATA, rng), lazy(order, rng)), axis=axis)
    assert digest(result) == digest(gatherum.gather_elements(DATA, order, axis=axis))
    back = [lazy(one, rng) for one in (np.zeros_like(DATA), order, np.sort(DATA, axis=axis))]
    assert digest(compute(strategy, "scatter_elements", back, axis=axis)) == digest(DATA)


def test_small_indices_go_whole(strategy, monkeypatch):
    from gatherum.dask import gather_tasks

    monkeypatch.setattr(gather_tasks, "is_small", lambda size: True)
    rng = np.random.default_rng(1)
    result = compute(strategy, "gather", (lazy(DATA, rng), lazy(INDICES, rng)))
    assert digest(result) == digest(gatherum.gather(DATA, INDICES))


def test_the_first_invalid_index_is_named(strategy):
    indices = INDICES.copy()
    indices[[800, 411, 623]] = 300, -301, 999
    for op, updates in (("gather", ()), ("scatter_slices", (UPDATES,))):
        with pytest.raises(IndexError) as expected:
            getattr(gatherum, op)(DATA, indices, *updates)
        for seed in range(2):
            rng = np.random.default_rng(seed)
            operands = [lazy(one, rng) for one in (DATA, indices, *updates)]
            with pytest.raises(IndexError) as caught:
                compute(strategy, op, operands)
            assert str(caught.value) == str(expected.value)
            assert "indices[411]" in str(caught.value)


def test_known_indices_that_address_few_chunks_or_none(strategy):
    rng = np.random.default_rng(4)
    for indices in (np.array([[3, 299]]), np.array([[-400, 999]])):
        table = lazy(DATA, rng)
        expected = gatherum.gather(DATA, indices, mode="fill", fill_value=3)
        result = compute(strategy, "gather", (table, indices), mode="fill", fill_value=3)
        assert digest(result) == digest(expected)
        expected = gatherum.scatter_slices(DATA, indices, UPDATES[None, :2], mode="drop")
        result = compute(
            strategy, "scatter_slices", (table, indices, UPDATES[None, :2]), mode="drop"
        )
        assert digest(result) == digest(expected)


@pytest.mark.parametrize("missing", ["version", *private.NAMES])
def test_an_unknown_distributed_warns_and_takes_tasks(client, monkeypatch, missing):
    find, version = private_names.find_name, distributed.__version__
    if missing == "version":
        monkeypatch.setattr(private, "TESTED", ("0.0",))
        why = f"its shuffles are tested with distributed 0.0, got {version}"
    else:
        monkeypatch.setattr(private, "TESTED", (version,))
        monkeypatch.setattr(
            private_names, "find_name", lambda name: None if name == missing else find(name)
        )
        why = f"distributed {version} lacks {missing}; gatherum was tested with distributed "
    monkeypatch.setattr(choice, "SMALL_BYTES", -1)
    operands = da.from_array(DATA, chunks=(50, 7)), da.from_array(INDICES, chunks=70)
    said = pytest.warns(UserWarning, match=f"rows move as tasks: {re.escape(why)}")
    with dask.config.set({"gatherum.strategy": "shuffle"}), said:
        result = gatherum.gather(*operands)
    if missing == "version":  # the graph does not depend on the reason
        assert digest(result.compute()) == digest(gatherum.gather(DATA, INDICES))
