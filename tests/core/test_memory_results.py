"""The memory of large results: recycled, bounded, and otherwise like any array's."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum._system import native
from source import ROOT

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


def test_a_much_smaller_result_does_not_use_cached_memory():
    large = result_of(LARGE)
    del large
    small = result_of(LARGE[: 2 * MIB])
    assert native.cached_output_bytes() == 4 * MIB
    assert small.tobytes() == LARGE[: 2 * MIB].tobytes()


def test_memory_that_has_gone_back_is_forgotten():
    results = [result_of(LARGE[: 2 * MIB]) for _ in range(16)]
    del results[4:12]
    gatherum.clear_output_cache()
    larger = [result_of(LARGE) for _ in range(3)]  # some reuse a smaller one's address
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
    kept, freed = result_of(LARGE), result_of(LARGE)
    del freed
    assert native.cached_output_bytes() == 4 * MIB
    gatherum.clear_output_cache()
    assert native.cached_output_bytes() == 0
    assert kept.tobytes() == LARGE.tobytes()


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


def _of_this_process(what):
    """Return Linux's figure for all memory of this process, in bytes."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(f"{what}:"))


ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")


@ON_LINUX
def test_memory_that_is_kept_is_offered_to_the_system():
    before = _of_this_process("LazyFree")
    result = result_of(LARGE)
    assert _of_this_process("LazyFree") == before
    del result
    assert _of_this_process("LazyFree") == before + 4 * MIB
    again = result_of(LARGE)
    assert again.tobytes() == LARGE.tobytes()
    assert _of_this_process("LazyFree") == before


def test_large_results_begin_huge_pages_also_when_they_are_recycled():
    for _ in range(3):
        result = result_of(LARGE)
        assert result.ctypes.data % (2 * MIB) == 0
        del result


@ON_LINUX
def test_recycled_results_stay_on_huge_pages():
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text():
        pytest.skip("this system has huge pages turned off")
    before = _of_this_process("AnonHugePages")
    result = result_of(LARGE)
    if _of_this_process("AnonHugePages") < before + 4 * MIB:
        pytest.skip("this system has no huge page left")
    del result
    result = result_of(LARGE)
    assert _of_this_process("AnonHugePages") >= before + 4 * MIB
    assert result.tobytes() == LARGE.tobytes()


def test_a_result_beyond_the_cap_leaves_the_others_in_the_cache():
    gatherum.set_output_cache_limit(5 * MIB)
    kept, large = result_of(LARGE), result_of(np.tile(LARGE, 2))
    del kept
    assert native.cached_output_bytes() == 4 * MIB
    del large
    assert native.cached_output_bytes() == 4 * MIB


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_a_separate_cache(python):
    done = python(
        """
import os, numpy as np, gatherum
data = np.arange(1 << 22, dtype=np.uint8)
result, freed = (gatherum.gather(data[None], 0) for _ in range(2))
place = freed.ctypes.data
del freed
if (child := os.fork()) == 0:
    mine = gatherum.gather(data[None, ::-1], 0)
    same = mine.ctypes.data == place and mine.tobytes() == data[::-1].tobytes()
    result[:] = 0
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
assert result.tobytes() == data.tobytes()
mine = gatherum.gather(data[None], 0)
print(mine.ctypes.data == place, mine.tobytes() == data.tobytes())
"""
    )
    assert done.stdout == "True True\n", done.stderr


@ON_LINUX
def test_under_a_limit_of_addresses_the_cache_gives_way(python):
    done = python(
        """
import resource, numpy as np, gatherum
from gatherum._system import native
small, large = (np.zeros((1, n << 20), np.uint8) for n in (64, 160))
gatherum.set_num_threads(1)
results = [gatherum.gather(small, 0) for _ in range(3)]
del results
assert native.cached_output_bytes() == 192 << 20
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), used + (32 << 20)))
result = gatherum.gather(large, 0)
print(result.nbytes >> 20, native.cached_output_bytes())
try:
    gatherum.gather(np.broadcast_to(np.uint8(0), (1, 1 << 40)), 0)
except MemoryError:
    print("MemoryError", gatherum.gather([1, 2], [1]).tolist())
"""
    )
    assert done.stdout == "160 0\nMemoryError [2]\n", done.stderr


def test_memory_of_other_arrays_is_not_cached():
    array = np.ones(4 * MIB, np.uint8)
    del array
    assert native.cached_output_bytes() == 0


COMPILER = shutil.which("c++")
CORE = ROOT / "src" / "core"


@pytest.mark.skipif(
    COMPILER is None or not CORE.is_dir(), reason="needs a compiler and the sources"
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux what is mapped")
def test_failed_allocations_of_notes(tmp_path):
    program = tmp_path / "memory_faults"
    sources = [Path(__file__).with_name("memory_faults.cpp"), CORE / "engine" / "memory.cpp"]
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{CORE}"]
    subprocess.run([COMPILER, *flags, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_a_failed_allocation_is_a_memory_error():
    data = np.broadcast_to(np.uint8(0), (1 << 48,))  # more than a process can address
    with pytest.raises(MemoryError):
        gatherum.gather(data[None], 0)
    assert gatherum.gather([1, 2], [1]).tolist() == [2]
