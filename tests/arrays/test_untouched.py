"""Operands that a call may not change stay the same in every algorithm, on success and failure."""

import numpy as np
import pytest

import gatherum
from algorithm_calls import GATHERS, SCATTERS
from canaries import byte_rows, guarded, guarded_copy, strays
from sizes import family


def _bytes_of(arrays):
    return [byte_rows(array).tobytes() for array in arrays]


def _algorithm(work, operands, **more):
    return family(gatherum.plan(work.op, *operands, **work.attributes, **more).algorithm)


@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_that_fails_has_changed_nothing(settings_restored, name):
    work = SCATTERS[name]
    operands = work.operands()
    data, indices, _ = operands
    out = guarded(data.shape, data.dtype)
    assert _algorithm(work, operands, out=data) == work.algorithm
    for threads, position, bad in [
        (1, 0, work.size),
        (3, indices.size // 2, -work.size - 1),
        (3, indices.size - 1, 2**31 - 1),
        (7, indices.size - 2, -(2**31)),
    ]:
        gatherum.set_num_threads(threads)
        valid, indices.flat[position] = indices.flat[position], bad
        watched = [*operands, out]
        before = _bytes_of(watched)
        for more in ({"out": data}, {"out": out}, {}):
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis [01] of"):
                work.run(operands, **more)
            assert _bytes_of(watched) == before
        assert [strays(array) for array in watched] == [[]] * len(watched)
        indices.flat[position] = valid


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("mode", ["raise", "drop"])
def test_a_scatter_writes_nowhere_else(settings_restored, name, mode):
    work = SCATTERS[name]
    operands = work.operands()
    data, indices, updates = operands
    if mode == "drop":
        indices.flat[:: 2 * indices.shape[-1] + 1] = work.size
        indices.flat[1 :: 2 * indices.shape[-1] + 1] = -(2**31)
    kept = _bytes_of(operands)
    out = guarded(data.shape, data.dtype)
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        expected = work.run(operands, mode=mode)
        work.run(operands, mode=mode, out=out)
        assert _bytes_of([expected, *operands]) == _bytes_of([out]) + kept
        place = guarded_copy(data)
        work.run([place, indices, updates], mode=mode, out=place)
        assert _bytes_of([place]) == _bytes_of([out])
        assert [strays(array) for array in (*operands, out, place)] == [[]] * 5


@pytest.mark.parametrize("name", GATHERS)
def test_a_gather_writes_nowhere_else(settings_restored, name):
    work = GATHERS[name]
    operands = work.operands()
    out = guarded(work.run(operands).shape, work.dtype)
    assert _algorithm(work, operands, out=out) == work.algorithm
    before = _bytes_of(operands)
    watched = [*operands, out]
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        assert work.run(operands, out=out) is out
        assert _bytes_of([work.run(operands), *operands]) == _bytes_of([out]) + before
        assert [strays(array) for array in watched] == [[]] * 3
    indices = operands[1]
    for position, bad in [(indices.size // 2, work.size), (indices.size - 1, -work.size - 1)]:
        indices.flat[position] = bad
        before = _bytes_of(operands)
        with pytest.raises(IndexError, match=f"index -?{work.size}"):
            work.run(operands, out=out)
        work.run(operands, out=out, mode="fill")
        assert _bytes_of(operands) == before
        assert [strays(array) for array in watched] == [[]] * 3


def test_data_that_must_be_copied_is_not_while_an_index_may_be_bad(settings_restored):
    data, out = np.arange(18_000.0)[::2], np.full(9_000, 7.0)
    indices, updates = np.zeros((300_000, 1), np.int32), np.ones(300_000)
    indices[-1] = 9_000
    for threads in (1, 4):
        gatherum.set_num_threads(threads)
        plan = gatherum.plan("scatter_nd", data, indices, updates, reduction="add", out=out)
        assert family(plan.algorithm) == "accumulators"
        with pytest.raises(IndexError):
            gatherum.scatter_nd(data, indices, updates, reduction="add", out=out)
        assert (out == 7).all()
