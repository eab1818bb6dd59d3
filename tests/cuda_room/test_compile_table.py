"""Every kernel, compiled by NVRTC for every architecture that is promised, and what it became.

`nox -s cuda` runs this; NVRTC needs no GPU.
"""

import re

import pytest
from variants import AXES, FOLDS, variants

from gatherum.cuda import kernels
from gatherum.cuda.device import COMPILER_OPTIONS
from variants import AXES, FOLDS, variants

nvrtc = pytest.importorskip(
    "cuda.bindings.nvrtc", reason="needs NVRTC: pip install cuda-bindings nvidia-cuda-nvrtc"
)
slow = pytest.mark.slow  # hundreds of variants

ARCHITECTURES = (75, 80, 90, 100, 120)


def checked(result):
    status, *values = result
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
    return values[0] if values else None


def compiled(kernel, architecture, kind="PTX"):
    """What NVRTC makes of a kernel: PTX, or machine code where `kind` is CUBIN."""
    headers = {name: text for name, text in kernels.sources().items() if name.endswith(".cuh")}
    source = kernels.sources()[f"{kernel.name}.cu"]
    program = checked(
        nvrtc.nvrtcCreateProgram(
            source.encode(),
            f"{kernel.name}.cu".encode(),
            len(headers),
            [text.encode() for text in headers.values()],
            [name.encode() for name in headers],
        )
    )
    real = "sm" if kind == "CUBIN" else "compute"
    options = [*COMPILER_OPTIONS, f"--gpu-architecture={real}_{architecture}"]
    options += [f"-D{name}={value}" for name, value in kernel.macros]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    size = checked(nvrtc.nvrtcGetProgramLogSize(program))
    log = b" " * size
    checked(nvrtc.nvrtcGetProgramLog(program, log))
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    assert log.strip(b" \0\n") == b"", log.decode()
    code = b" " * checked(getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
    checked(getattr(nvrtc, f"nvrtcGet{kind}")(program, code))
    checked(nvrtc.nvrtcDestroyProgram(program))
    return code if kind == "CUBIN" else code.decode()


def commonest(name):
    return next(variants(name))


def test_the_table_has_every_kernel():
    assert set(AXES) == set(kernels.names())


@pytest.mark.parametrize("name", sorted(AXES))
def test_a_kernel_compiles_for_every_architecture(name):
    for architecture in ARCHITECTURES:
        assert compiled(commonest(name), architecture, "CUBIN").startswith(b"\x7fELF")


@slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(AXES))
def test_every_variant_compiles(name, architecture):
    """For one architecture all of them, for the others every fifth."""
    for kernel in list(variants(name))[:: 1 if architecture == 90 else 5]:
        ptx = compiled(kernel, architecture)
        assert f".entry {name}(" in ptx
        assert ".local" not in ptx, kernel  # registers and shared memory are enough


QUICK = [("float32", "mean"), ("complex64", "mul"), ("float16", "add"), ("float64", "mul")]


@pytest.mark.parametrize("name", ["fold", "fold_long"])
@pytest.mark.parametrize(
    ("value", "reduction"),
    [pytest.param(*pair, marks=() if pair in QUICK else slow) for pair in FOLDS],
)
def test_a_fold_has_no_fused_product_and_no_flush_to_zero(name, value, reduction):
    chosen = {("VALUE", f"value_{value}"), ("REDUCTION", reduction)}
    ptx = compiled(next(k for k in variants(name) if chosen <= set(k.macros)), 90)
    assert re.findall(r"\bfma\.\S+|\b\S+\.ftz\S*|\S+\.approx\S*|\bred\.\S+|\batom\.\S+", ptx) == []
    assert ".local" not in ptx
    operation = {"add": "add", "mul": "mul", "mean": "div"}.get(reduction)
    bits = {"float32": 32, "complex64": 32, "float64": 64, "complex128": 64}.get(value)
    if operation and bits:
        assert f"{operation}.rn.f{bits}" in ptx


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_sorted", "fold"])
def test_what_moves_is_loaded_and_stored_128_bits_at_a_time(name):
    ptx = compiled(commonest(name), 90)
    assert re.search(r"\bld(\.global)?(\.nc)?(\.v4\.[bu]32|\.v2\.[bu]64)", ptx)
    assert re.search(r"\bst(\.global)?(\.v4\.[bu]32|\.v2\.[bu]64)", ptx)
