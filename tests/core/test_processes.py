"""Processes that fork, end or are interrupted around a call, each in a fresh Python."""

import importlib.util
import os

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fork and signals of POSIX systems")
QUIET = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}  # about a fork with threads

START = """
import os, signal, sys, threading, time
import numpy as np
import gatherum
gatherum.set_num_threads(3)
data, indices = np.arange(600_000.0), np.arange(600_000)[::-1].copy()
expected = gatherum.gather(data, indices)
assert np.array_equal(expected, data[::-1])

def works():
    out = np.zeros(1000)
    gatherum.scatter_nd(out, indices[:, None] % 1000, 1.0, reduction="add", out=out)
    again = gatherum.gather(data, indices)
    return bool((out == 600).all() and np.array_equal(again, expected))

def child_works():
    child = os.fork()
    if child == 0:
        os._exit(0 if works() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
FORKS = {
    "a child of a child": """
child = os.fork()
if child == 0:
    os._exit(0 if works() and child_works() and works() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and works())
""",
    "beside a call of another thread": """
stopped, finished = threading.Event(), []
def go_on():
    while not stopped.is_set():
        finished.append(works())
thread = threading.Thread(target=go_on)
thread.start()
children = [child_works() for _ in range(10)]
stopped.set()
thread.join()
print(all(children) and all(finished) and works())
""",
    "from another thread": """
outcomes = []
thread = threading.Thread(target=lambda: outcomes.append(child_works()))
thread.start()
thread.join()
print(outcomes == [True] and works())
""",
    "while large results are held": """
results = [gatherum.gather(data, indices) for _ in range(3)]
del results[1:]
fine = child_works()
results.clear()
print(fine and child_works())
""",
}
TORCH = """
import torch
torch.set_num_threads(2)
ones = torch.ones(2_000_000)
assert float((ones + ones).sum()) == 4e6
print(works() and child_works() and float((ones + ones).sum()) == 4e6 and works())
"""
EXITS = {
    "with a pool that sleeps": "print(works())",
    "in an exception": "print(works())\nsys.exit(0)",
    "at exit": "import atexit\natexit.register(lambda: print(works()))",
    "in a thread that goes on": "threading.Thread(target=lambda: print(works())).start()",
    "with large results": "kept = [gatherum.gather(data, indices)] * 3\nprint(works())",
    "without goodbye": "print(works(), flush=True)\nos._exit(0)",
    "with a plan that a daemon thread keeps": """
plan = gatherum.plan("gather", data, indices)
threading.Thread(target=lambda kept: time.sleep(100), args=(plan,), daemon=True).start()
print(works())
""",
    # A call that takes minutes.
    "with a call in a daemon thread": """
def work():
    gatherum.gather(np.zeros((4, 0), np.int8), np.broadcast_to(np.int8(0), 1 << 40))
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print(works())
""",
    "with reads of files in daemon threads": """
import tempfile
from gatherum._system import native
file = tempfile.TemporaryFile()
data.tofile(file)
file.flush()
where = (0, 8, 8, data.size)
def work():
    into = np.zeros(data.nbytes, "u1")
    while True:
        options = 1.0, False, 1 << 20, 0, False
        native.read_file_rows(file.fileno(), where, indices, None, into, *options)
        native.start_writing(file.fileno(), 0, data.nbytes)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print(works())
""",
    # At any moment, the thread may be returning from a call, or checking for signals.
    "with calls in daemon threads": """
def work():
    while True:
        works()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print(works())
""",
}


@pytest.mark.parametrize("name", FORKS)
def test_forks(python, name):
    done = python(START + FORKS[name], **QUIET)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.frameworks
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="install torch for a fork beside its threads"
)
def test_a_fork_with_threads_of_pytorch(python):
    done = python(START + TORCH, **QUIET)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("name", EXITS)
def test_exits(python, name):
    # A daemon thread may have helpers when its process ends, which ThreadSanitizer reports as a
    # leak.
    options = os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"
    done = python(START + EXITS[name], TSAN_OPTIONS=options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# The alarm comes while the call runs or, on a very slow machine, before or after it. After it,
# Python 3.14 checks for signals when a loop repeats: pause() would wait for a second.
ALARM = """
import signal, time
import numpy as np
import gatherum
gatherum.set_num_threads(THREADS)
gatherum.scatter_nd, gatherum.scatter_elements  # imported before the clock starts
signal.signal(signal.SIGALRM, signal.default_int_handler)
SETUP
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    CALL
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    print(ANSWER)
"""
INTERRUPTED = {
    "one slab": (
        "data = np.zeros(5, np.int64); indices = np.broadcast_to(np.int8(3), (1 << 27, 1))",
        "gatherum.scatter_nd(data, indices, 1, reduction='add', out=data)",
        "data.tolist() in ([0] * 5, [0, 0, 0, 1 << 27, 0])",
    ),
    "rows": (
        "data = np.zeros((5, 16)); indices = np.broadcast_to(np.int8(3), (1 << 23, 1))",
        "gatherum.scatter_nd(data, indices, 1, reduction='add', out=data)",
        "not data[[0, 1, 2, 4]].any() and data[3].tolist() in ([0] * 16, [1 << 23] * 16)",
    ),
    "lines": (
        "data = np.zeros((64, 5)); indices = np.broadcast_to(np.int8(3), (64, 1 << 20))",
        "gatherum.scatter_elements(data, indices, np.float64(1), 1, reduction='add', out=data)",
        "not data[:, [0, 1, 2, 4]].any() and data[:, 3].tolist() in ([0] * 64, [1 << 20] * 64)",
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_scatter_in_place_has_written_all_or_nothing(python, name, threads):
    setup, call, answer = INTERRUPTED[name]
    code = ALARM.replace("SETUP", setup).replace("CALL", call).replace("ANSWER", answer)
    done = python(code.replace("THREADS", str(threads)))
    assert (done.stdout, done.stderr) == ("True\n", "")


# A handler forks while helper threads are working, which the child does not have.
FORKING = """
import os, signal
import numpy as np
import gatherum
from gatherum import gather, scatter_nd
from gatherum._system import native
gatherum.set_num_threads(3)
child = into = None
def handler(*_):
    global child
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)  # what ends a child that hangs
        HANDLED
signal.signal(signal.SIGALRM, handler)
SETUP
delay = 0.03
while child is None:  # the machine may be so fast that the call ends before the alarm
    if into is not None:
        into[:] = 0
    signal.setitimer(signal.ITIMER_REAL, delay)
    delay /= 2
    try:
        result = CALL
        status = 0 if ANSWER else 1
    except (IndexError, InterruptedError) as error:
        status = 2 if "index 5 is" in str(error) else 3
    signal.setitimer(signal.ITIMER_REAL, 0)
if child == 0:
    os._exit(status)
print(status, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
FORKED = {
    "a gather": (
        "data = np.arange(1 << 16); indices = np.arange(1 << 25) % data.size",
        "gatherum.gather(data, indices)",
        "np.array_equal(result.reshape(-1, data.size), np.broadcast_to(data, (512, data.size)))",
        0,
    ),
    "a scatter": (
        "data = np.arange(5); indices = np.broadcast_to(np.int8(3), (1 << 27, 1))",
        "gatherum.scatter_nd(data, indices, 1, reduction='add')",
        "result.tolist() == [0, 1, 2, 3 + (1 << 27), 4]",
        0,
    ),
    "in place": (
        "data = np.zeros((5, 1)); indices = np.broadcast_to(np.int8(3), (1 << 27, 1))",
        "gatherum.scatter_nd(data, indices, 1, out=data)",
        "result.tolist() == [[0], [0], [0], [1], [0]]",
        0,
    ),
    "an invalid index": (
        "data = np.zeros((5, 0)); indices = np.zeros(1 << 26, np.int8); indices[-1] = 5",
        "gatherum.gather(data, indices)",
        "False",
        2,
    ),
    "rows of a file": (
        """
import tempfile
file = tempfile.TemporaryFile()
rows = np.arange(1 << 24).reshape(-1, 4)
rows.tofile(file)
file.flush()
numbers, into = np.arange(len(rows))[::2].copy(), np.zeros((len(rows) // 2, 4), int)
def read():
    return native.read_file_rows(file.fileno(), (0, 32, 32, len(rows)), numbers, None,
                                 into.reshape(-1).view("u1"), 1.0, False, 1 << 20, 0, False)
""",
        "read()",
        "result[0] == 'done' and np.array_equal(into, rows[::2])",
        0,
    ),
}


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("name", FORKED)
def test_a_signal_handler_may_fork(python, name, raises):
    if os.environ.get("SANITIZER") == "thread" and name == "rows of a file" and not raises:
        pytest.skip("run without ThreadSanitizer: it takes the child's threads for its parent's")
    setup, call, answer, status = FORKED[name]
    code = FORKING.replace("SETUP", setup).replace("CALL", call).replace("ANSWER", answer)
    done = python(code.replace("HANDLED", "raise InterruptedError" if raises else "pass"), **QUIET)
    assert (done.stdout, done.stderr) == (f"{status} {3 if raises else status}\n", "")


def test_a_signal_handler_may_call_and_raise(python):
    done = python(
        START
        + """
def handler(*_):
    print(works())
    raise InterruptedError
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    gatherum.gather(np.zeros((4, 0), np.int8), np.broadcast_to(np.int8(0), 1 << 40))
except InterruptedError:
    print(works())
"""
    )
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")
