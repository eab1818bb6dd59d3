"""Operands that other threads change during a call, and concurrent calls from many threads.

No memory outside of the operands is read or written.
"""

import re
import threading

import numpy as np
import pytest

import gatherum
from algorithm_calls import GATHERS, SCATTERS
from canaries import byte_rows, guarded, guarded_copy, strays
from gatherum._system import native

# The values of all bytes of the data, of the bytes around it, and of fill values and updates.
INSIDE, OUTSIDE, FILL = 200, 77, 50


class Changes:
    """A thread that alternately writes valid and invalid values into the indices."""

    def __init__(self, indices, size):
        rng = np.random.default_rng(2)
        valid = rng.integers(-size, size, indices.shape).astype(indices.dtype)
        wild = valid.copy()
        near = np.array([size, size + 1, -size - 1, -size - 2])
        info = np.iinfo(indices.dtype)
        wrong = np.concatenate([near, [info.max, info.min, info.max // 8, 2**16]])
        wild.flat[::3] = rng.choice(wrong, wild.flat[::3].size)
        self.indices, self.states = indices, (wild, valid)
        self.turns, self.stopped = 0, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.stopped.is_set():
            # A copy without the interpreter's lock, and by plain stores: this race is intended, and
            # ThreadSanitizer must not report it.
            state = self.states[self.turns % 2]
            np.bitwise_or(state, state, out=self.indices)
            self.turns += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def _marked(work):
    """Return operands whose data has one value, in memory filled with another value."""
    operands = work.operands()
    data = operands[0]
    data.base[:] = OUTSIDE
    byte_rows(data, writable=True)[...] = INSIDE
    return operands


def _surroundings_kept(data):
    around = np.asarray(data.base).copy()
    start = data.ctypes.data - data.base.ctypes.data
    around[start : start + data.nbytes] = OUTSIDE
    return bool((around == OUTSIDE).all())


def _attempts(changes):
    """Repeat until the indices have changed often enough, with one thread, two and three."""
    for attempt in range(1_000):
        gatherum.set_num_threads(1 + attempt % 3)
        yield
        if changes.turns > 12 and attempt >= 2:
            return


@pytest.mark.parametrize("mode", ["raise", "fill", "clip"])
@pytest.mark.parametrize("name", GATHERS)
def test_a_gather_of_changing_indices_reads_only_the_data(settings_restored, name, mode):
    work = GATHERS[name]
    operands = _marked(work)
    out = guarded(work.run(operands).shape, work.dtype)
    fill = {"fill_value": np.full(out.itemsize, FILL, np.uint8).view(out.dtype)[0]}
    seen = set()
    with Changes(operands[1], work.size) as changes:
        for _ in _attempts(changes):
            try:
                work.run(operands, out=out, mode=mode, **fill)
                seen |= set(np.unique(byte_rows(out)).tolist())
            except IndexError as error:
                assert _names_an_index(error, work, operands[1])
    assert seen <= {INSIDE, FILL}
    assert mode == "raise" or INSIDE in seen
    assert _surroundings_kept(operands[0])
    assert strays(operands[1]) == strays(out) == []


def _names_an_index(error, work, indices):
    """Return True if the sentence is one of the two possible ones, with possible numbers."""
    if str(error).endswith("an index was invalid, but `indices` changed during the call"):
        return True
    match = re.search(
        r"index (-?\d+) is out of bounds for axis \d of size (\d+) \(.*\)", str(error)
    )
    value, size = int(match[1]), int(match[2])
    return size == work.size and not -size <= value < size


@pytest.mark.parametrize("reduction", ["as it is", "none"])
@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_of_changing_indices_writes_only_the_output(settings_restored, name, reduction):
    work = SCATTERS[name]
    if reduction == "none":
        work = work._replace(attributes=work.attributes | {"reduction": "none"})
    operands = work.operands()
    data, indices, updates = operands
    byte_rows(data, writable=True)[...] = INSIDE
    byte_rows(updates, writable=True)[...] = FILL
    out = guarded(data.shape, data.dtype)
    seen = set()
    with Changes(indices, work.size) as changes:
        for _ in _attempts(changes):
            for more in (
                {"out": data},
                {"out": out},
                {"mode": "clip"},
                {"mode": "drop", "out": out},
            ):
                try:
                    result = work.run(operands, **more)
                    seen |= set(np.unique(byte_rows(result)).tolist())
                except IndexError as error:
                    assert _names_an_index(error, work, indices)
    assert [strays(array) for array in (*operands, out)] == [[]] * 4
    assert seen <= {INSIDE, FILL} or reduction == "as it is"
    assert (byte_rows(updates) == FILL).all()


@pytest.mark.parametrize("function", ["add", "recurrence", "previous"])
def test_cumulative_functions_of_changing_groups(function):
    """A group number is read only once: the kernel does not use a number that it has not checked.
    Each result counts values of one group.
    """
    values = np.ones(4096)
    groups, out = guarded(values.shape, np.dtype(np.int32)), guarded(values.shape, values.dtype)
    factors = values if function == "recurrence" else None
    with Changes(groups, 70) as changes:
        while changes.turns < 2000:
            native.cumulate(function, "float64", values, factors, groups, 70, out)
            assert set(out.tolist()) <= set(range(values.size + 1))
    assert strays(groups) == strays(out) == []


def test_calls_of_every_kind_from_many_threads_at_once(settings_restored):
    calls = [*GATHERS.items(), *SCATTERS.items()]
    prepared = [(work, work.operands()) for _, work in calls]
    expected = [work.run(operands).tobytes() for work, operands in prepared]
    wrong = []

    def work_through(turn):
        for step in range(len(calls)):
            number = (turn * 5 + step) % len(calls)
            work, operands = prepared[number]
            gatherum.set_num_threads(1 + (turn + step) % 4)
            out = guarded_copy(operands[0]) if work.op.startswith("scatter") else None
            own = operands if out is None else [out, *operands[1:]]
            if work.run(own, out=out).tobytes() != expected[number]:
                wrong.append((turn, calls[number][0]))
            if out is not None and strays(out):
                wrong.append((turn, calls[number][0], "strays"))

    threads = [threading.Thread(target=work_through, args=(turn,)) for turn in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    for _, operands in prepared:
        assert [strays(array) for array in operands] == [[]] * len(operands)
