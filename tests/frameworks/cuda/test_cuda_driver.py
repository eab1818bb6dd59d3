"""Calls to the driver and the compiler, by doubles; missing parts are reported in one sentence."""

import ctypes
import pickle

import numpy as np
import pytest
from doubles import CompilerDouble, DriverDouble, HostArray, Status, array_of

import gatherum
import gatherum.cuda
from gatherum.cuda import checks, driver, kernels, nvidia, plan_launches
from gatherum.cuda.array_protocols import Protocols
from gatherum.cuda.device import COMPILER_OPTIONS, Kernel

KERNEL = Kernel.of("check", OFFSET_BITS=32, MODE="mode_raise")


@pytest.fixture
def compiler(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", str(tmp_path))
    nvidia.loaded_kernel.cache_clear()
    double = CompilerDouble()
    monkeypatch.setattr(nvidia, "open_compiler", lambda: driver.Compiler(double))
    return double


def test_a_kernel_is_compiled_once_and_kept_on_disk(compiler, machine):
    gpu = nvidia.Nvidia(Protocols(), 0, 40)
    for _ in range(3):
        gpu.launch(KERNEL, 5, 128, b"x" * 24)
    (((source, name, headers), options),) = compiler.compiled
    assert source == kernels.sources()["check.cu"].encode()
    assert name == b"check.cu"
    assert headers.keys() == {f.encode() for f in kernels.sources() if f.endswith(".cuh")}
    assert options == tuple(
        option.encode()
        for option in ("--gpu-architecture=sm_90", *COMPILER_OPTIONS, "-DMODE=mode_raise",
                       "-DOFFSET_BITS=32")
    )  # fmt: skip
    assert compiler.destroyed == 1
    assert len(machine.named("cuLibraryLoadData")) == 1
    assert machine.named("cuLibraryGetKernel")[0][2] == b"check"
    nvidia.loaded_kernel.cache_clear()  # simulates another process
    gpu.launch(KERNEL, 5, 128, b"x" * 24)
    gpu.launch(Kernel.of("check", OFFSET_BITS=64), 5, 128, b"x" * 24)
    assert len(compiler.compiled) == 2


def test_a_launch_passes_its_arguments(compiler, machine, monkeypatch):
    struct = bytes(range(200))
    seen = []

    def launch(kernel, *more):
        parameters = more[8]
        pointer = ctypes.c_void_p.from_address(parameters).value
        seen.append((kernel, more[:8], ctypes.string_at(pointer, len(struct)), more[9]))

    monkeypatch.setattr(machine, "_cuLaunchKernel", launch, raising=False)
    nvidia.Nvidia(Protocols(), 2, 40).launch(KERNEL, 7, 256, struct)
    assert seen == [(77, (7, 1, 1, 256, 1, 1, 0, 40), struct, 0)]
    assert machine.named("cuCtxPushCurrent")[-1][1] == "context 2"


def test_a_kernel_that_does_not_compile_says_why(compiler):
    compiler.log = b"check.cu(3): error: no\n"
    with pytest.raises(RuntimeError) as caught:
        nvidia.kernel_code(KERNEL, "sm_75")
    expected = "gatherum.cuda: the kernel check does not compile: check.cu(3): error: no"
    assert str(caught.value) == expected
    assert compiler.destroyed == 1


def test_scratch_and_reads(machine):
    gpu = nvidia.Nvidia(Protocols(), 0, 40)
    assert gpu.processors == 4
    buffer = gpu.allocate(24)
    assert buffer.address % 256 == 0
    gpu.clear(buffer, 16)
    assert gpu.read(buffer, 24) == b"\0" * 16 + b"\xa5" * 8
    assert machine.calls[-3][0] == "cuMemcpyDtoHAsync"
    assert machine.calls[-2] == ("cuStreamSynchronize", 40)


def test_a_device_that_fails_to_launch(compiler, machine):
    machine.fail["cuLaunchKernel"] = Status.CUDA_ERROR_INVALID_VALUE
    words = "^gatherum.cuda: cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE: words of CUDA_"
    with pytest.raises(RuntimeError, match=words):
        gatherum.gather(HostArray(np.arange(4.0)), [1])
    assert machine.contexts == []


WITHOUT = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "cuda" or name.startswith("cuda."):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Finder())
import gatherum.cuda
class OnDevice:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (512, False), "version": 3}
for functions in (gatherum, gatherum.cuda):
    try:
        functions.gather(OnDevice(), [0])
    except ImportError as error:
        print(error)
"""


def test_without_the_packages_one_sentence_names_the_package(python):
    result = python(WITHOUT)
    sentence = (
        "gatherum.cuda: cuda.bindings is not installed; write pip install "
        "'cuda-bindings>=13,<14' 'nvidia-cuda-nvrtc>=13,<14'\n"
    )
    assert (result.stdout, result.stderr) == (2 * sentence, "")


def test_without_a_driver_one_sentence_says_so(monkeypatch):
    def no_library(*_):
        raise RuntimeError("the library libcuda is not there")

    monkeypatch.setattr(DriverDouble, "_cuInit", no_library)
    monkeypatch.setattr(driver, "_import", lambda name: DriverDouble())
    with pytest.raises(RuntimeError) as caught:
        driver.open_driver.__wrapped__()
    assert str(caught.value) == (
        "gatherum.cuda: no CUDA device answers (the library libcuda is not there); install "
        "NVIDIA's driver, or call it on arrays in the host's memory"
    )


def test_without_nvrtc_one_sentence_says_so(monkeypatch):
    def no_library(_):
        raise RuntimeError("Failure finding libnvrtc.so")

    monkeypatch.setattr(CompilerDouble, "nvrtcVersion", no_library)
    monkeypatch.setattr(driver, "_import", lambda name: CompilerDouble())
    with pytest.raises(ImportError, match=r"^gatherum.cuda: NVRTC is not installed; write pip i"):
        driver.open_compiler.__wrapped__()


def test_availability(monkeypatch, machine):
    monkeypatch.setattr(driver, "open_compiler", lambda: None)
    for devices in (2, 0):
        monkeypatch.setattr(machine, "_cuDeviceGetCount", lambda n=devices: n, raising=False)
        assert gatherum.cuda.is_available() == (devices > 0)
    machine.fail["cuDeviceGetCount"] = Status.CUDA_ERROR_INVALID_VALUE
    assert gatherum.cuda.is_available() is False

    def no_package():
        raise ImportError("cuda.bindings is not installed")

    monkeypatch.setattr(driver, "open_driver", no_package)
    assert gatherum.cuda.is_available() is False


def test_nothing_of_cuda_is_imported_before_a_call(python):
    code = (
        "import sys, gatherum.cuda, numpy as np; gatherum.gather(np.arange(3), [0])\n"
        "gatherum.cuda.plan('gather', ((4,), 'f4'), ((3,), 'i8')).scratch\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('cuda', 'cupy', 'torch')])"
    )
    assert python(code).stdout == "[]\n"


def test_the_floor_is_that_of_the_devices_copies(machine, monkeypatch):
    opened = driver.Driver(machine)
    monkeypatch.setattr("gatherum.cuda.explain.open_driver", lambda: opened)
    monkeypatch.setattr("gatherum.cuda.explain._COPIED_BYTES", 1 << 16)
    explained = gatherum.explain(gatherum.cuda.plan("gather", ((4,), "f4"), ((1 << 20,), "i8")))
    seconds, words = explained.floor()
    assert seconds == pytest.approx(16 * 2**20 / (2 * 2**16 / 0.25e-3))
    assert words == "0.524 GB/s, measured: a copy on cuda:0"
    assert machine.memory == {}


def gathered(machine):
    """Gather, with kernels loaded anew. Return the launches."""
    nvidia.loaded_kernel.cache_clear()
    before = len(machine.named("cuLaunchKernel"))
    gatherum.gather(HostArray(np.zeros((3, 2))), HostArray(np.array([1, 2])), mode="clip")
    return machine.named("cuLaunchKernel")[before:]


def test_a_kernel_whose_parameters_are_not_those_of_the_launch_is_refused(compiler, machine):
    assert len(gathered(machine)) == 1  # a driver before CUDA 12.4
    plan = gatherum.cuda.plan("gather", ((3, 2), "f8"), ((2,), "i8"), mode="clip")
    placement = plan_launches.usual_placement(plan)
    (step,) = plan_launches.program_of(plan, placement, processors=4).steps
    nbytes = len(step.arguments.content)
    machine.parameters = [(0, nbytes)]
    assert len(gathered(machine)) == 1
    wanted = f"expected {nbytes} bytes at offset 0"
    for parameters, words in (
        ([(0, nbytes - 8)], f"0 has {nbytes - 8} bytes at offset 0, {wanted}"),
        ([(8, nbytes)], f"0 has {nbytes} bytes at offset 8, {wanted}"),
        ([(0, nbytes), (nbytes, 4)], f"1 has 4 bytes at offset {nbytes}, expected no parameter"),
        ([], f"0 does not exist, {wanted}"),
    ):
        machine.parameters = parameters
        before = len(machine.named("cuLaunchKernel"))
        with pytest.raises(RuntimeError) as raised:
            gathered(machine)
        assert str(raised.value) == (
            "gatherum.cuda: the kernel gather does not take the arguments of its launch: "
            f"parameter {words}"
        )
        assert len(machine.named("cuLaunchKernel")) == before
    machine.parameters = Status.CUDA_ERROR_NOT_SUPPORTED
    assert len(gathered(machine)) == 1


def test_plans_name_the_launches(machine):
    data, updates = HostArray(np.zeros((9, 8), np.float32)), HostArray(np.zeros((5, 8), np.float32))
    index = HostArray(np.zeros((5, 1), np.int64))
    call = "scatter_nd", data, index, updates
    plan = gatherum.plan(*call, reduction="add", mode="drop")
    assert plan.device == "cuda"
    assert plan.algorithm == "fold_small"
    assert plan.scratch == 0
    assert "  launches  fold_small\n" in str(plan)
    words = (
        "launches  fold_small: the scatter is small: each block sorts all updates by destination"
    )
    assert words in str(gatherum.explain(*call, reduction="add", mode="drop"))
    assert gatherum.plan(*call).algorithm == "scatter_small"
    assert gatherum.plan(*call).scratch == checks.RECORD_BYTES


def test_plans_of_larger_scatters_name_the_launches(machine):
    data, count = ((9, 8), "f4"), 600
    call = "scatter_nd", data, ((count, 1), "i8"), ((count, 8), "f4")
    plan = gatherum.cuda.plan(*call, reduction="add", mode="drop")
    assert plan.algorithm == "gather + sorted_keys + fold + fold_long + fold_long"
    assert plan.scratch == count * 8
    assert gatherum.cuda.plan(*call).algorithm == "check + gather + winners + scatter"
    counted = gatherum.cuda.plan("scatter_nd", ((9,), "i8"), ((count, 1), "i8"),
                                 ((count,), "i8"), reduction="add")  # fmt: skip
    assert counted.algorithm == "check + gather + fold_atomic"
    none = gatherum.cuda.plan("gather", ((0, 3), "f4"), ((2,), "i8"), mode="clip")
    assert (none.algorithm, none.scratch) == ("none", 0)


def test_a_plan_of_a_device_describes_itself_in_another_process(python):
    code = (
        "import pickle, gatherum; p = pickle.loads(bytes.fromhex({!r}))\n"
        "print(p.device, p.algorithm, p.scratch)"
    )
    plan = gatherum.cuda.plan("gather", ((4, 8), "f4"), ((3,), "i8"))
    result = python(code.format(pickle.dumps(plan).hex()))
    assert result.stdout == "cuda gather 40\n", result.stderr


@pytest.mark.slow
def test_results_of_the_kernels_through_the_whole_room(on_shim):
    data = HostArray(np.arange(12, dtype=np.float32).reshape(4, 3))
    assert array_of(gatherum.gather(data, [3, -1, 0])).tolist() == [[9, 10, 11]] * 2 + [[0, 1, 2]]
    result = gatherum.scatter_slices(data, [1, 1], np.float32([[1, 2, 3]] * 2), reduction="add")
    assert array_of(result)[1].tolist() == [5, 8, 11]
    before = data.array.copy()
    words = r"^scatter_slices: index 4 is out of bounds for axis 0 of size 4 \(indices\[1\]\)$"
    with pytest.raises(IndexError, match=words):
        gatherum.scatter_slices(data, [0, 4], 7.0)
    assert (data.array == before).all()


def test_whether_calls_can_run(machine, monkeypatch):
    monkeypatch.setattr(driver, "open_compiler", lambda: None)
    assert gatherum.cuda.is_available() is True
    machine.devices = 0
    assert gatherum.cuda.is_available() is False
    for name in ("open_driver", "open_compiler"):
        for error in (ImportError, RuntimeError):

            def missing(error=error):
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(driver, name, missing)
                assert gatherum.cuda.is_available() is False
