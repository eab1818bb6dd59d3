"""The memory of large results: recycled, bounded, and otherwise like any array's."""

import copy
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum import native

MIB = 1 << 20
LARGE = np.arange(4 * MIB, dtype=np.uint8)  # results of 2 MiB or more are recycled
SMALL = np.arange(1000, dtype=np.uint8)


def result_of(data):
    return gatherum.gather(data, 0) if data.ndim > 1 else gatherum.gather(data[None], 0)


@pytest.fixture(autouse=True)
def empty_cache(settings_restored):
    gatherum.set_output_cache_limit(64 * MIB)
    gatherum.clear_output_cache()
    yield
    gatherum.clear_output_cache()


def test_freed_memory_is_kept_for_the_next_result():
    first = result_of(LARGE)
    place = first.ctypes.data
    assert native.cached_output_bytes() == 0
    del first
    assert native.cached_output_bytes() == 4 * MIB
    second = result_of(LARGE)
    assert second.ctypes.data == place
    assert native.cached_output_bytes() == 0
    assert second.tobytes() == LARGE.tobytes()


def test_a_result_that_is_much_smaller_leaves_freed_memory_alone():
    large = result_of(LARGE)
    del large
    small = result_of(LARGE[: 2 * MIB])
    assert native.cached_output_bytes() == 4 * MIB
    assert small.tobytes() == LARGE[: 2 * MIB].tobytes()


def test_memory_that_has_gone_back_is_forgotten():
    results = [result_of(LARGE[: 2 * MIB]) for _ in range(16)]
    del results[4:12]
    gatherum.clear_output_cache()
    larger = [result_of(LARGE) for _ in range(3)]  # some begin where a smaller one has been
    del larger
    assert native.cached_output_bytes() == 12 * MIB


def test_two_results_are_never_in_one_place():
    one, other = result_of(LARGE), result_of(LARGE)
    assert not np.shares_memory(one, other)
    one[:] = 0
    assert other.tobytes() == LARGE.tobytes()


def test_a_view_keeps_the_memory():
    view = result_of(LARGE)[5:10]
    assert native.cached_output_bytes() == 0
    other = result_of(LARGE)
    other[:] = 255
    assert view.tolist() == [5, 6, 7, 8, 9]


def test_small_results_are_not_kept():
    result = result_of(SMALL)
    del result
    assert native.cached_output_bytes() == 0


def test_the_cap_is_respected():
    gatherum.set_output_cache_limit(9 * MIB)
    results = [result_of(LARGE) for _ in range(4)]
    del results
    assert native.cached_output_bytes() == 8 * MIB
    gatherum.set_output_cache_limit(5 * MIB)
    assert gatherum.get_output_cache_limit() == 5 * MIB
    assert native.cached_output_bytes() == 4 * MIB
    gatherum.set_output_cache_limit(0)
    assert native.cached_output_bytes() == 0
    result = result_of(LARGE)
    del result
    assert native.cached_output_bytes() == 0


def test_the_cache_can_be_emptied():
    held, freed = result_of(LARGE), result_of(LARGE)
    del freed
    assert native.cached_output_bytes() == 4 * MIB
    gatherum.clear_output_cache()
    assert native.cached_output_bytes() == 0
    assert held.tobytes() == LARGE.tobytes()


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_results_are_plain_arrays(data):
    result = result_of(data)
    assert type(result) is np.ndarray
    assert result.base is None
    assert result.flags.owndata
    assert result.flags.writeable
    assert result.flags.c_contiguous
    assert result.flags.aligned
    assert pickle.loads(pickle.dumps(result)).tobytes() == data.tobytes()
    assert copy.deepcopy(result).tobytes() == data.tobytes()


@pytest.mark.parametrize("size", [10, MIB, 3 * MIB, 4 * MIB + 1, 16 * MIB])
@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_results_can_be_resized(data, size):
    result = result_of(data)
    result.resize(size, refcheck=False)
    kept = min(size, data.size)
    assert result[:kept].tobytes() == data[:kept].tobytes()
    assert not result[kept:].any()
    result[:] = 7
    assert int(result.sum(dtype=np.int64)) == 7 * size


def test_a_scatter_has_recycled_memory_too():
    result = gatherum.scatter_nd(LARGE, [[1]], 9)
    place = result.ctypes.data
    del result
    assert native.cached_output_bytes() == 4 * MIB
    assert gatherum.scatter_elements(LARGE, [1], 9).ctypes.data == place
    assert gatherum.scatter_elements(LARGE, [1], 9)[:3].tolist() == [0, 9, 2]


def test_memory_may_be_freed_on_another_thread():
    results = [result_of(LARGE)]
    worker = threading.Thread(target=results.clear)
    worker.start()
    worker.join()
    assert native.cached_output_bytes() == 4 * MIB


def test_arrays_of_others_are_left_alone():
    array = np.ones(4 * MIB, np.uint8)
    del array
    assert native.cached_output_bytes() == 0


COMPILER = shutil.which("c++")
CORE = Path(__file__).parent.parent / "src" / "core"


@pytest.mark.skipif(
    COMPILER is None or not CORE.is_dir(), reason="needs a compiler and the sources"
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux what is mapped")
def test_notes_that_there_is_no_memory_for(tmp_path):
    program = tmp_path / "memory_faults"
    sources = [Path(__file__).with_name("memory_faults.cpp"), CORE / "memory.cpp"]
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([COMPILER, *flags, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_a_failed_allocation_is_a_memory_error():
    data = np.broadcast_to(np.uint8(0), (1 << 48,))  # beyond what a process can address
    with pytest.raises(MemoryError):
        gatherum.gather(data[None], 0)
    assert gatherum.gather([1, 2], [1]).tolist() == [2]
