"""CUB's sort: by a small double of `cuda.compute`, and compiled by the real one."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from doubles import CompilerDouble

from gatherum.cuda import code_cache, cub, driver
from gatherum.cuda.array_protocols import Protocols
from gatherum.cuda.device import Pairs, Widths
from source import SOURCE


def values(array):
    """Return the memory of an array with the protocol."""
    address = array.__cuda_array_interface__["data"][0]
    return np.frombuffer((ctypes.c_char * array.nbytes).from_address(address), array.dtype)


class SmallCompute(ModuleType):
    """A `cuda.compute` that sorts in host memory, and records its calls."""

    SortOrder = SimpleNamespace(ASCENDING="up")

    def __init__(self):
        super().__init__("cuda.compute")
        self.compiled, self.ran, self.asked, self.scratch = [], [], [], 1000

    def make_radix_sort(self, *, order, compute_capability, **arrays):
        addresses = [a.__cuda_array_interface__["data"][0] for a in arrays.values()]
        assert all(addresses)  # otherwise only keys would be sorted
        self.compiled.append((order, compute_capability, *(a.dtype.str for a in arrays.values())))
        return self.compiled[-1]

    def serialize(self, sorter):
        return repr(sorter).encode()

    def deserialize(self, code):
        assert code == repr(self.compiled[-1]).encode()
        return self._sort

    def _sort(self, *, temp_storage, num_items, begin_bit, end_bit, stream, **arrays):
        if temp_storage is None:
            self.asked.append((num_items, end_bit))
            return self.scratch
        buffers = {name: values(array) for name, array in arrays.items()}
        order = np.argsort(buffers["d_in_keys"], kind="stable")
        buffers["d_out_keys"][...] = buffers["d_in_keys"][order]
        buffers["d_out_values"][...] = buffers["d_in_values"][order]
        storage = temp_storage.nbytes
        self.ran.append((storage, num_items, begin_bit, end_bit, stream.__cuda_stream__()))
        return None


@pytest.fixture
def compute(machine, monkeypatch, tmp_path):
    library = SmallCompute()
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", str(tmp_path))
    monkeypatch.setattr(cub, "import_module", lambda name: library)
    monkeypatch.setattr(cub.metadata, "version", lambda name: "1.2.1")
    monkeypatch.setattr(cub, "open_compiler", lambda: driver.Compiler(CompilerDouble()))
    forget()
    yield library
    forget()


def forget():
    """Simulate a new process, which has no sorter yet."""
    cub._compute.cache_clear()
    cub._loaded.cache_clear()
    cub._scratch_bytes.clear()


def sort(widths=(4, 4), count=4, bits=2, device_number=0):
    framework = Protocols()
    buffers = [framework.allocate(count * width, device_number, 40) for width in widths]
    pairs = Pairs(*buffers, count, Widths(*widths, bits))
    return framework.sort(pairs, device_number, 40)


def test_pairs_are_sorted(machine, compute):
    framework = Protocols()
    keys, payload = np.array([3, 1, 3, 0], np.uint32), np.arange(4, dtype=np.uint64)
    buffers = [framework.allocate(a.nbytes, 0, 40) for a in (keys, payload)]
    for memory, array in zip(buffers, (keys, payload), strict=True):
        ctypes.memmove(memory.address, array.ctypes.data, array.nbytes)
    result = framework.sort(Pairs(*buffers, 4, Widths(4, 8, 2)), 0, 40)
    assert ctypes.string_at(result[0].address, 16) == np.array([0, 1, 3, 3], np.uint32).tobytes()
    assert ctypes.string_at(result[1].address, 32) == np.array([3, 1, 0, 2], np.uint64).tobytes()
    assert compute.compiled == [("up", 90, "<u4", "<u4", "<u8", "<u8")]
    assert compute.ran == [(1000, 4, 0, 2, (0, 40))]
    assert machine.contexts == []


def test_a_sorter_is_kept_on_disk(compute, tmp_path, monkeypatch):
    sort()
    sort()
    assert len(compute.compiled) == 1
    (entry,) = tmp_path.iterdir()
    assert entry.suffix == ".sort"
    forget()
    sort()
    assert (len(compute.compiled), len(compute.ran)) == (1, 3)
    sort((8, 4))
    cub.sorter_code((4, 4), "sm_120")
    monkeypatch.setattr(cub.metadata, "version", lambda name: "1.3.0")
    cub.sorter_code((4, 4), "sm_90")
    monkeypatch.setattr(CompilerDouble, "nvrtcVersion", lambda self: (self.good, 13, 6))
    cub.sorter_code((4, 4), "sm_90")
    assert len(compute.compiled) == len(list(tmp_path.iterdir())) == 5


def test_a_damaged_sorter_is_compiled_anew(compute, tmp_path):
    sort()
    (entry,) = tmp_path.iterdir()
    sound = entry.read_bytes()
    entry.write_bytes(sound[:-1] + b"?")
    forget()
    sort()
    assert len(compute.compiled) == 2
    assert entry.read_bytes() == sound


def test_no_scratch_memory_is_one_byte(compute):
    compute.scratch = 0
    sort(count=1)
    assert [run[0] for run in compute.ran] == [1]


def test_the_size_of_scratch_memory_is_requested_once_for_the_same_sort(compute):
    for more in ({}, {}, {"count": 5}, {"bits": 3}, {"device_number": 1}, {"widths": (4, 8)}, {}):
        sort(**more)
    assert compute.asked == [(4, 2), (5, 2), (4, 3), (4, 2), (4, 2)]
    assert len(compute.ran) == 7


MESSAGE = (
    "gatherum.cuda: this scatter sorts its updates by destination, and cuda.compute cannot be "
    "imported ({}); write pip install 'cuda-cccl[minimal-cu13]>=1.1', or give arrays of torch or "
    "CuPy"
)


@pytest.mark.parametrize("error_type", [ModuleNotFoundError, RuntimeError])
def test_without_cub_a_message_names_the_package(compute, monkeypatch, error_type):
    def no_module(name):
        raise error_type(f"no {name}")

    monkeypatch.setattr(cub, "import_module", no_module)
    with pytest.raises(ImportError) as caught:
        sort()
    assert str(caught.value) == MESSAGE.format("no cuda.compute")


@pytest.mark.parametrize("warning", ["libcuda.so.1: cannot open shared object file", None])
def test_an_import_that_only_warns_is_our_error(compute, monkeypatch, warning):
    def import_module(name):
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=1)
        return ModuleType(name)

    monkeypatch.setattr(cub, "import_module", import_module)
    with pytest.raises(ImportError) as caught:
        sort()
    assert str(caught.value) == MESSAGE.format(warning or "it has no function deserialize")


SCRIPT = """
import sys
from gatherum.cuda import cub
make_radix_sort = cub._compute().make_radix_sort
def make(**options):
    print("# compiled")
    return make_radix_sort(**options)
cub._compute().make_radix_sort = make
from gatherum.cuda.array_protocols import Protocols
from gatherum.cuda.device import Pairs, Widths
framework = Protocols()
buffers = [framework.allocate(400, 0, 40) for _ in range(2)]
try:
    framework.sort(Pairs(*buffers, 100, Widths(4, 8, 31)), 0, 40)
except RuntimeError as error:  # CUB asks CUDA's runtime, which finds no device
    print("#", error)
"""


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the library stands in for libcuda.so.1")
def test_a_real_sorter_is_compiled_once_and_moves_values(tmp_path):
    if not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.cccl"):
        pytest.skip("needs cuda.compute: pip install 'cuda-cccl[minimal-cu13]'")
    source, library = Path(__file__).with_name("libcuda.c"), tmp_path / "libcuda.so.1"
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    flags = "-std=c11", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library)
    subprocess.run([compiler, *flags, str(source), "-ldl"], check=True)
    cache = tmp_path / "cache"
    variables = {"PYTHONPATH": SOURCE, "LD_LIBRARY_PATH": str(tmp_path)}
    variables["GATHERUM_CUDA_CACHE"] = str(cache)

    def run():
        return subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | variables,
                              capture_output=True, text=True, check=True).stdout  # fmt: skip

    first = run()
    (entry,) = cache.iterdir()
    assert code_cache._read(entry)
    assert "# compiled\n" in first
    assert "policy_selector_from_typesIjyy" in first  # keys of 4 bytes, values of 8
    assert "# compiled\n" not in (second := run())
    assert first.replace("# compiled\n", "") == second
