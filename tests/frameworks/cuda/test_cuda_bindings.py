"""Calls to the driver through the real `cuda.bindings`, by a C library that records them."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source import SOURCE

COMPILER = shutil.which("cc") or shutil.which("gcc")
HAS_BINDINGS = importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.bindings")
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not HAS_BINDINGS, reason="needs cuda.bindings: pip install cuda-bindings"),
    pytest.mark.skipif(sys.platform != "linux", reason="the library stands in for libcuda.so.1"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]

SCRIPT = """
from gatherum.cuda import driver, nvidia
from gatherum.cuda.array_protocols import Protocols
d = driver.open_driver()
def of(text): print(f"# {text}", flush=True)
of(f"{d.architecture(1)} {d.attribute(1, 'MULTIPROCESSOR_COUNT')}")
of(d.device_of(4096))
of((d.captures(40), d.captures(41)))
gpu = nvidia.Nvidia(Protocols(), 1, 40)
buffer = gpu.allocate(100)
gpu.clear(buffer, 50)
of(gpu.read(buffer, 50) == bytes(50))
d.launch(d.kernel(d.load(b"a cubin"), "check"), 3, 128, 40, b"0123456789")
for code in (b"struct 24 check\\0", b"shown 24 check\\0"):
    of(d.parameters(d.kernel(d.load(code), "check")))
event = d.record(40)
of(d.is_done(event))
d.wait(40, 50)
of(d.time_copy(buffer.address, buffer.address, 64, 1))
for name, *call in (("cuMemAllocAsync", 1 << 41, 1), ("cuDeviceGet", 7)):
    try:
        d.call(name, *call)
    except (MemoryError, RuntimeError) as error:
        of(f"{type(error).__name__}: {error}")
del buffer
"""
EXPECTED = """
attribute 75 1 0
attribute 76 1 0
attribute 16 1 0
# sm_90 132
pointer attribute 9 4096 0
# 1
# (True, False)
push 4097 0 0
allocate 100 40 0
pop 0 0 0
push 4097 0 0
memset 0 50 40
pop 0 0 0
push 4097 0 0
copy out 50 40 0
wait for 40 0 0
pop 0 0 0
# True
load 97 0 0
kernel check of 77
launch 88 grid 3 1 1 block 128 1 1 shared 0 stream 40 struct 0123456789 extra 0
# [(0, 24)]
# None
event 2 0 0
record 153 40 0
# False
event 2 0 0
record 153 50 0
wait on the device 40 153 0
destroy 153 0 0
event 0 0 0
event 0 0 0
record 153 1 0
copy 64 1 0
record 153 1 0
destroy 153 0 0
destroy 153 0 0
# 0.0005
allocate 2199023255552 1 0
# MemoryError: gatherum.cuda: cuMemAllocAsync: words
# RuntimeError: gatherum.cuda: cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE: words
push 4097 0 0
free 40 0 0
pop 0 0 0
"""


def test_calls_arrive_as_they_are_meant(tmp_path):
    source = Path(__file__).with_name("libcuda.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    options += ["-Wl,-soname,libcuda.so.1", "-o", str(tmp_path / "libcuda.so.1")]
    command = [COMPILER, *options, str(source), "-ldl"]
    subprocess.run(command, check=True)
    environment = os.environ | {"PYTHONPATH": SOURCE, "LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().splitlines() == EXPECTED.strip().splitlines()


def test_a_real_compiler_makes_machine_code_and_it_is_kept(tmp_path, monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC: pip install cuda-bindings")
    from gatherum.cuda import driver, explain, nvidia

    try:
        driver.Compiler(driver._import("nvrtc")).version()
    except RuntimeError:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc")
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", str(tmp_path))
    plan = explain.plan("gather", ((4, 8), "f4"), ((3,), "i8"), mode="clip")
    (kernel,) = explain.list_launches(plan).kernels
    codes = {number: nvidia.kernel_code(kernel, f"sm_{number}") for number in (75, 90, 120)}
    assert all(code.startswith(b"\x7fELF") for code in codes.values())
    assert len(set(codes.values())) == len(list(tmp_path.iterdir())) == 3
    monkeypatch.setattr(driver.Compiler, "compile", None)  # not called again
    assert nvidia.kernel_code(kernel, "sm_90") == codes[90]
