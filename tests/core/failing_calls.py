"""Calls whose allocations fail one by one.

test_failing_allocations.py runs this in a process with failing_allocations.cpp preloaded. For each
call and each of its allocations, a forked child makes the call with that allocation failing. The
call must return the right bits or raise MemoryError, and the same call without failures must then
return the right bits.
"""

import ctypes
import os
import pickle
import re
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import gatherum
import gatherum.files
from sizes import chosen_from

MOST = 1000  # more allocations than any call has
STEP = int(os.environ.get("FAILING_STEP", "1"))

for name in gatherum.__all__:
    getattr(gatherum, name)  # import lazy modules now, so that calls do not allocate for imports
gatherum.set_num_threads(3)
rng = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())
MANY, ROWS = 140_000, 6_000  # enough to be shared by several threads
items, places = rng.standard_normal(MANY), rng.integers(0, MANY, MANY)
table = rng.standard_normal((2_000, 64)).astype("f4")
updates = rng.standard_normal((ROWS, 64)).astype("f4")
rows, columns = rng.integers(0, 2_000, ROWS), rng.integers(0, 64, (2_000, 64))
integers, weights = np.arange(MANY), items[:ROWS].astype("f4")
np.save(folder / "table.npy", table)
np.save(folder / "wide.npy", np.zeros((20_000, 16), "f4"))
scattered = rng.integers(0, 20_000, 10_000)


def accumulated(data, reduction):
    return gatherum.Accumulator(data, reduction).scatter_nd(places[:, None], data)


def added_in_rounds():
    gatherum.set_num_threads(8)
    operands = items[:5_000], places % 5_000, items
    with chosen_from({"many_updates": MANY // 16}):
        assert gatherum.plan("scatter_slices", *operands, reduction="add").algorithm == "in_rounds"
        return gatherum.scatter_slices(*operands, reduction="add")


def rows_set():
    with chosen_from({"streamed_bytes": 0}):
        assert gatherum.plan("scatter_slices", table, rows, updates).algorithm == "last_updates"
        return gatherum.scatter_slices(table, rows, updates)


def out_of_bounds():
    try:
        gatherum.gather(items, [MANY])
    except IndexError as error:
        return str(error)


def gathered_file():
    out = folder / "gathered.npy"
    gatherum.files.gather_file(folder / "wide.npy", scattered, out, memory="1MiB")
    return np.load(out)


def scattered_file():
    out, into = folder / "scattered.npy", folder / "table.npy"
    gatherum.files.scatter_nd_file(into, rows[:, None], updates, out, reduction="mean")
    return np.load(out)


CALLS = {
    "small": lambda: gatherum.gather(table, [2, 0]),
    "lists": lambda: gatherum.scatter_nd([1, 2, 3], [[0], [2]], [5, 6]),
    "plan": lambda: gatherum.plan("gather", ((5, 6), "f4"), ((3,), "i8")).scratch,
    "report": lambda: gatherum.index_report("gather", (5,), [1, 2, 2]).duplicates,
    "invalid": out_of_bounds,
    "gather": lambda: gatherum.gather(items, places),
    "rows": lambda: gatherum.gather(table, rows),
    "fill": lambda: gatherum.gather(items, places, mode="fill", fill_value=3),
    "gather_elements": lambda: gatherum.gather_elements(table, columns, 1),
    "gather_nd": lambda: gatherum.gather_nd(items, places[:, None]),
    "scatter_slices": lambda: gatherum.scatter_slices(items, places, items, reduction="add"),
    "scatter_elements": lambda: gatherum.scatter_elements(items, places, items),
    "scatter_nd": lambda: gatherum.scatter_nd(
        table, rows[:, None], updates, reduction="mean", include_self=False
    ),
    "aggregate": lambda: gatherum.aggregate(table, rows, rows[::-1], 2_000, "add", weights),
    "prepare": lambda: gatherum.prepare("scatter_slices", table, rows, reduction="add")(
        table, updates
    ),
    "prepare items": lambda: gatherum.prepare("scatter_slices", items, places, reduction="add")(
        items, items
    ),
    "accumulator": lambda: accumulated(items, "add").finish(),
    "merge": lambda: accumulated(integers, "mean").merge(accumulated(integers, "mean")).finish(),
    "rounds": added_in_rounds,
    "last updates": rows_set,
    "file gather": lambda: gatherum.files.gather_file(folder / "table.npy", rows),
    "file gathered": gathered_file,
    "file scatter": scattered_file,
}


def in_child(call):
    """Return the result of a call in a forked child, so that this process does not change."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(call(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return pickle.loads(said) if status == 0 else f"ended with status {status}"


def try_one(call, n, expected):
    """Return a failure's description, "" for success, or None if there is no n-th allocation."""
    failing.fail_at(n)
    result, error = None, None
    try:
        result = call()
    except Exception as raised:
        error = raised
    allocations = failing.fail_at(-1)
    # CPython 3.11 loses the exception of a function if it has no memory for a traceback.
    lost = re.fullmatch("<function .*> returned NULL without setting an exception", str(error))
    if error and not isinstance(error, MemoryError) and not lost:
        return f"{type(error).__name__}: {error}"
    if allocations < n:
        return None if error is None else "an exception without a failure"
    if error is None and not np.array_equal(result, expected):
        return "another result"
    return "" if np.array_equal(call(), expected) else "another result of the next call"


def try_all(name, call):
    """Fail each `STEP`-th allocation of a call. Print failures and the number of allocations."""
    expected = in_child(call)
    for n in range(1, MOST, STEP):
        said = in_child(partial(try_one, call, n, expected))
        if said is None:
            break
        if said:
            print(f"{name}, allocation {n}: {said}", flush=True)
    print(f"{name}: {n - 1} allocations", flush=True)


failing = ctypes.CDLL(None)
failing.fail_at.argtypes, failing.fail_at.restype = [ctypes.c_long], ctypes.c_long
failing.fail_at(-1)
assert failing.find_code() > 0
for name in sys.argv[1:] or CALLS:
    try_all(name, CALLS[name])
