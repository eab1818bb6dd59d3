"""Every kernel, compiled by NVRTC for every architecture that is promised, and what it became.

`nox -s cuda` runs this; NVRTC needs no GPU.
"""

import re

import pytest
from variants import AXES, FOLDS, variants

from gatherum.cuda import kernels
from gatherum.cuda.device import COMPILER_OPTIONS, Kernel

nvrtc = pytest.importorskip(
    "cuda.bindings.nvrtc", reason="needs NVRTC: pip install cuda-bindings nvidia-cuda-nvrtc"
)
pytestmark = pytest.mark.slow

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


def test_the_table_has_every_kernel():
    assert set(AXES) == set(kernels.names())


@pytest.mark.parametrize("name", sorted(AXES))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_kernel_compiles(name, architecture):
    for kernel in {variants_first(name), *variants(name)} if architecture == 90 else few(name):
        assert f".entry {name}(" in compiled(kernel, architecture)
    assert compiled(variants_first(name), architecture, "CUBIN").startswith(b"\x7fELF")


def variants_first(name):
    return next(variants(name))


def few(name):
    """Every fifth variant: what an architecture changes is not the arithmetic."""
    return list(variants(name))[::5]


def with_macros(name, **macros):
    kernel = list(variants(name))[-1]
    return Kernel.of(name, **{**dict(kernel.macros), **macros})


@pytest.mark.parametrize("name", ["fold", "fold_long"])
@pytest.mark.parametrize(("value", "reduction"), FOLDS)
def test_a_fold_has_no_fused_product_and_no_flush_to_zero(name, value, reduction):
    chosen = [
        k
        for k in variants(name)
        if dict(k.macros)["VALUE"] == f"value_{value}" and dict(k.macros)["REDUCTION"] == reduction
    ]
    ptx = compiled(chosen[0], 90)
    assert re.findall(r"\bfma\.\S+|\b\S+\.ftz\S*|\S+\.approx\S*|\bred\.\S+|\batom\.\S+", ptx) == []
    arithmetic = {"add": "add", "mul": "mul", "mean": "div"}.get(reduction)
    if value == "float32" and arithmetic:
        assert f"{arithmetic}.rn.f32" in ptx
    if value == "float64" and arithmetic:
        assert f"{arithmetic}.rn.f64" in ptx


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_sorted"])
def test_copies_load_and_store_128_bits(name):
    ptx = compiled(variants_first(name), 90)
    assert re.search(r"ld(\.global)?(\.nc)?(\.L\S+)?\.v4\.[bu]32|ld\S*\.v2\.[bu]64", ptx)
    assert re.search(r"st(\.global)?\.v4\.[bu]32|st\S*\.v2\.[bu]64", ptx)


@pytest.mark.parametrize("name", sorted(AXES))
def test_nothing_lies_in_local_memory(name):
    ptx = compiled(variants_first(name), 90)
    assert ".local" not in ptx
