"""One result for any number of threads, forks and interrupts."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gatherum
from gatherum._model.dtypes import is_reducible
from gatherum._model.reductions import REDUCTIONS
from sizes import chosen_from
from source import SOURCE

RNG = np.random.default_rng(5)
MANY = 400_000  # entries: well above the size from which calls are split into tasks
ROWS = RNG.random((20_000, 64), np.float32)
POSIX = pytest.mark.skipif(os.name == "nt", reason="fork and signals of POSIX systems")


def spread(n, count=MANY):
    return RNG.integers(-n, n, count)


def crowded(n, count=MANY):
    return RNG.integers(0, min(n, 5), count)


GATHERS = {
    "gather rows": ("gather", ROWS, spread(20_000, 60_000)),
    "gather columns": ("gather", ROWS, spread(64, 200), 1),
    "gather a vector": ("gather", ROWS.ravel(), spread(ROWS.size)),
    "gather bytes of a reversed vector": ("gather", ROWS.ravel()[::-1].view("V4"), spread(9)),
    "gather_elements down": ("gather_elements", ROWS, spread(20_000, (10_000, 64)), 0),
    "gather_elements across": ("gather_elements", ROWS, spread(64, (20_000, 40)), 1),
    "gather_nd points": ("gather_nd", ROWS, np.stack([spread(20_000), spread(64)], 1)),
    "gather_nd rows of batches": (
        "gather_nd",
        ROWS.reshape(10, 2_000, 64),
        spread(2_000, (10, 5_000, 1)),
        1,
    ),
}


def same_for_any_number(call, numbers=(1, 2, 3, 7)):
    """Run a call with each number of threads, and return the common result."""
    answers = []
    for threads in numbers:
        gatherum.set_num_threads(threads)
        answers.append(call())
    assert answers[0].nbytes >= 1 << 20
    for answer in answers[1:]:
        assert answer.tobytes() == answers[0].tobytes()
    return answers[0]


def test_other_threads_run_during_a_long_call_whose_result_is_small(settings_restored):
    data, indices = np.zeros(1), np.zeros((1 << 22, 1), np.int8)
    updates = np.ones(len(indices))
    gatherum.scatter_nd(data, indices, updates, reduction="add")  # its plan is in the table
    turns, done = [0], threading.Event()

    def run():
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)  # yields, which this thread otherwise does only in long calls

    interval = sys.getswitchinterval()
    other = threading.Thread(target=run)
    sys.setswitchinterval(100)
    try:
        other.start()
        for _ in range(100):
            before = turns[0]
            gatherum.scatter_nd(data, indices, updates, reduction="add")
            if turns[0] > before:
                break
        assert turns[0] > before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()


@pytest.mark.parametrize("past", [0, 4, 60])
def test_columns_are_cut_wherever_the_output_starts(settings_restored, past):
    columns, indices = 301, spread(900, 9_000)
    updates = RNG.random((indices.size, columns), np.float32)
    memory = np.empty((900 * columns + 32) * 4, np.uint8)
    start = -memory.ctypes.data % 64 + past
    out = memory[start : start + 900 * columns * 4].view(np.float32).reshape(900, columns)

    def scatter():
        out[...] = 1
        call = out, indices, updates
        options = {"reduction": "add", "out": out}
        if gatherum.get_num_threads() > 1:
            assert gatherum.plan("scatter_slices", *call, **options).algorithm == "by_column"
        return gatherum.scatter_slices(*call, **options).copy()

    with chosen_from({"least_column_bytes": 128}):  # on any processor
        same_for_any_number(scatter)


@pytest.mark.parametrize("name", GATHERS)
def test_gathers(settings_restored, name):
    op, *arguments = GATHERS[name]
    same_for_any_number(lambda: getattr(gatherum, op)(*arguments))


def test_gathers_agree_with_numpy(settings_restored):
    gatherum.set_num_threads(7)
    _, data, indices = GATHERS["gather rows"]
    assert gatherum.gather(data, indices).tobytes() == data[indices].tobytes()
    _, data, indices, axis = GATHERS["gather_elements down"]
    expected = np.take_along_axis(data, indices, axis)
    assert gatherum.gather_elements(data, indices, axis).tobytes() == expected.tobytes()


VALUES = {
    "f4": RNG.standard_normal(MANY, np.float32),
    "f8": RNG.standard_normal(MANY),
    "f2": RNG.standard_normal(MANY).astype(np.float16),
    "i4": RNG.integers(-(2**31), 2**31, MANY).astype(np.int32),
    "c8": RNG.standard_normal(2 * MANY, np.float32).view(np.complex64),
}
FOLDS = [
    (dtype, reduction, include_self)
    for dtype in VALUES
    for reduction in REDUCTIONS
    for include_self in (True, False)
    if (include_self if reduction == "none" else is_reducible(np.dtype(dtype), reduction))
]


@pytest.mark.parametrize("indices_of", [spread, crowded])
@pytest.mark.parametrize(("dtype", "reduction", "include_self"), FOLDS)
def test_scatters_of_points(settings_restored, dtype, reduction, include_self, indices_of):
    data = np.resize(VALUES[dtype][::-1], 600_000)
    indices = indices_of(data.size)[:, None]
    with np.errstate(all="ignore"):
        same_for_any_number(
            lambda: gatherum.scatter_nd(
                data, indices, VALUES[dtype], reduction=reduction, include_self=include_self
            )
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reduction", ["none", "add", "max", "mean"])
def test_scatters_of_elements(settings_restored, axis, reduction):
    data, indices = ROWS[:10_000], RNG.integers(-64, 64, (10_000, 64))
    updates = ROWS[10_000:]
    same_for_any_number(
        lambda: gatherum.scatter_elements(data, indices, updates, axis, reduction=reduction)
    )


@pytest.mark.parametrize("reduction", ["none", "add", "min", "mean"])
@pytest.mark.parametrize("rows", [50, 10_000])
def test_scatters_of_rows(settings_restored, reduction, rows):
    data, updates = ROWS[:10_000], ROWS[10_000:]
    indices = RNG.integers(0, rows, (10_000, 1))
    same_for_any_number(lambda: gatherum.scatter_nd(data, indices, updates, reduction=reduction))


def test_a_sum_is_the_left_fold(settings_restored):
    gatherum.set_num_threads(7)
    indices = crowded(5)
    result = gatherum.scatter_nd(
        np.zeros(600_000, "f4"), indices[:, None], VALUES["f4"], reduction="add"
    )
    for destination in range(5):
        fold = np.add.accumulate(np.r_[np.float32(0), VALUES["f4"][indices == destination]])
        assert result[destination] == fold[-1]


def test_the_last_duplicate_wins(settings_restored):
    gatherum.set_num_threads(7)
    indices = spread(1_000)
    updates = np.arange(MANY, dtype=np.int64)
    result = gatherum.scatter_nd(np.full(200_000, -1), indices[:, None] % 1_000, updates)
    expected = np.full(200_000, -1)
    for position, index in enumerate((indices % 1_000).tolist()):
        expected[index] = position
    assert result.tolist() == expected.tolist()


def test_the_first_bad_index_is_the_first_for_any_number(settings_restored):
    indices = np.zeros(3_000_000, np.int32)
    indices[2_900_000:] = 20_000
    indices[1_234_567] = -20_001
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        with pytest.raises(IndexError) as caught:
            gatherum.gather(ROWS[:, 0], indices)
        assert str(caught.value) == (
            "gather: index -20001 is out of bounds for axis 0 of size 20000 (indices[1234567])"
        )


def test_calls_of_several_python_threads_do_not_disturb_each_other(settings_restored):
    gatherum.set_num_threads(2)
    op, *arguments = GATHERS["gather rows"]
    expected = getattr(gatherum, op)(*arguments).tobytes()
    wrong = []

    def work():
        for _ in range(5):
            if getattr(gatherum, op)(*arguments).tobytes() != expected:
                wrong.append(threading.current_thread().name)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


FORK = """
import os, gatherum, numpy as np
data, indices = np.arange(1_000_000.0), np.arange(1_000_000)[::-1].copy()
gatherum.set_num_threads(2)
expected = gatherum.gather(data, indices)
child = os.fork()
if child == 0:
    same = [np.array_equal(gatherum.gather(data, indices), expected) for _ in range(3)]
    os._exit(0 if all(same) else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, np.array_equal(gatherum.gather(data, indices), expected))
"""


@POSIX
def test_a_forked_child_starts_its_own_threads(python):
    done = python(FORK, PYTHONWARNINGS="ignore::DeprecationWarning")
    assert (done.stdout, done.stderr) == ("0 True\n", "")


# Every index of an empty result is checked, so this call takes minutes and needs no memory.
LONG = """
import gatherum, numpy as np
gatherum.set_num_threads({threads})
indices = np.broadcast_to(np.int8(0), 1 << 40)
print("ready", flush=True)
try:
    gatherum.gather(np.zeros((4, 0)), indices)
except KeyboardInterrupt:
    print("interrupted", gatherum.gather([1, 2], [1]))
"""


@POSIX
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_is_answered(threads):
    with subprocess.Popen(
        [sys.executable, "-c", LONG.format(threads=threads)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": SOURCE},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "interrupted [2]\n")


# Interrupts at twenty moments, some while indices are checked, some while it writes.
WRITES = """
import os, signal, threading, time
import gatherum, numpy as np
gatherum.set_num_threads({threads})
indices = np.broadcast_to(np.int8(0), (4000, 1 << 13))
updates = np.broadcast_to(np.int64(1), indices.shape)
data = np.zeros((4000, 2), "i8")
def add():
    gatherum.scatter_elements(data, indices, updates, 1, reduction="add", out=data)
begin = time.perf_counter()
add()
whole = time.perf_counter() - begin
for part in range(20):
    data[:] = 0
    timer = threading.Timer(whole * part / 20, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        add()
        time.sleep(10)
    except KeyboardInterrupt:
        print(*set(data[:, 0].tolist()), flush=True)
"""


@POSIX
@pytest.mark.parametrize("threads", [1, 2])
def test_a_scatter_that_has_begun_to_write_finishes(python, threads):
    done = python(WRITES.format(threads=threads))
    assert done.stderr == ""
    sums = done.stdout.splitlines()
    assert len(sums) == 20
    assert set(sums) <= {"0", str(1 << 13)}
    assert str(1 << 13) in sums


def test_threads_that_share_the_positions_of_lists():
    rows, places = RNG.random((100_000, 16), np.float32), spread(40_000, 100_000)
    table = np.ones((40_000, 16), np.float32)
    positive = places % 40_000
    same_for_any_number(
        lambda: gatherum.scatter_slices(table, places, rows, reduction="mean"), (1, 8, 16)
    )
    same_for_any_number(
        lambda: gatherum.aggregate(rows, np.arange(100_000), positive, 40_000, "add"), (1, 8, 16)
    )
