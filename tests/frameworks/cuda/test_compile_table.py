"""Every kernel, compiled by NVRTC for every supported architecture, and the resulting code.

`nox -s cuda` runs this; NVRTC needs no GPU. `compile_table.py` writes the results into the docs.
"""

import re

import compile_table
import pytest
from compile_table import ARCHITECTURES
from variants import AXES, EXACT, FOLDS, variants

from gatherum.cuda import kernels
from gatherum.cuda.driver import Compiler

pytestmark = pytest.mark.cuda
slow = pytest.mark.slow  # hundreds of variants


@pytest.fixture(scope="module")
def compiler():
    nvrtc = pytest.importorskip(
        "cuda.bindings.nvrtc", reason="needs NVRTC: pip install cuda-bindings nvidia-cuda-nvrtc"
    )
    return Compiler(nvrtc)


def commonest(name):
    return next(variants(name))


def ptx_of(compiler, kernel):
    result = compile_table.compiled(compiler, kernel, 90, "PTX")
    assert result.log == ""
    return result.code.decode()


def test_the_table_has_every_kernel():
    assert set(AXES) == set(kernels.names())


@pytest.mark.parametrize("name", sorted(AXES))
def test_a_kernel_compiles_for_every_architecture(compiler, name):
    for architecture in ARCHITECTURES:
        assert compile_table.usage(compiler, commonest(name), architecture).registers > 8


@slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(AXES))
def test_every_variant_compiles(compiler, name, architecture):
    """The machine code needs no more registers and shared memory than there are."""
    for kernel in variants(name):
        result = compile_table.usage(compiler, kernel, architecture)
        most = 568 if "exact" in name else 0  # the limbs of one sum of float64
        assert result.stack <= most, kernel
        assert result.spilled == 0, kernel
        assert result.registers * 256 <= 1 << 16  # otherwise a block of a launch would not fit
        assert result.shared <= 48 << 10


def test_the_page_has_the_table():
    page = compile_table.PAGE.read_text(encoding="utf-8")
    text = page.partition(compile_table.BEGIN)[2].partition(compile_table.END)[0]
    assert compile_table.heading(ARCHITECTURES) in text
    counts = {name: len(set(variants(name))) for name in AXES}
    assert dict(re.findall(r"^\| `(\w+)` \| (\d+) ", text, re.MULTILINE)) == {
        name: str(count) for name, count in counts.items()
    }
    assert f"from the sources with the digest {compile_table.digest()}." in text


def test_a_table_takes_the_place_of_the_one_before():
    page = f"before\n{compile_table.BEGIN}old\n{compile_table.END}after\n"
    expected = f"before\n{compile_table.BEGIN}\nnew\n\n{compile_table.END}after\n"
    assert compile_table.written(page, "new\n") == expected
    with pytest.raises(SystemExit):
        compile_table.written("before\n", "new\n")


def test_rows_of_other_kernels_are_kept():
    heading = "| kernel | sm_75 |\n|---|--:|\n"
    old = f"of old sources\n\n{heading}| `a` | 1 |\n| `c` | 2 |\n"
    new = f"of new sources\n\n{heading}| `c` | 3 |\n| `b` | 4 |\n"
    expected = f"of new sources\n\n{heading}| `a` | 1 |\n| `b` | 4 |\n| `c` | 3 |\n"
    assert compile_table.with_other_rows(old, new) == expected


QUICK = [("float32", "mean"), ("complex64", "mul"), ("float16", "add"), ("float64", "mul")]


@pytest.mark.parametrize(("name", "group"), [("fold", 0), ("fold_long", 32), ("fold_long", 256)])
@pytest.mark.parametrize(
    ("value", "reduction"),
    [pytest.param(*pair, marks=() if pair in QUICK else slow) for pair in FOLDS],
)
def test_a_fold_has_no_fused_product_and_no_flush_to_zero(compiler, name, group, value, reduction):
    chosen = {("VALUE", f"value_{value}"), ("REDUCTION", reduction)}
    chosen |= {("GROUP_THREADS", str(group))} if group else set()
    ptx = ptx_of(compiler, next(k for k in variants(name) if chosen <= set(k.macros)))
    # A warp waits for its lanes, and not for the block, whose other warps fold other runs.
    assert ("bar.warp.sync" in ptx, "bar.sync" in ptx) == (group == 32, group == 256)
    assert re.findall(r"\bred\.\S+|\batom\.\S+", ptx) == []
    assert_rounds(ptx, value, reduction)


@pytest.mark.parametrize(
    ("value", "reduction"),
    [pytest.param(*pair, marks=() if pair in QUICK else slow) for pair in FOLDS],
)
def test_a_small_fold_has_no_fused_product_and_no_flush_to_zero(compiler, value, reduction):
    chosen = {("VALUE", f"value_{value}"), ("REDUCTION", reduction)}
    kernel = next(k for k in variants("fold_small") if chosen <= set(k.macros))
    assert_rounds(ptx_of(compiler, kernel), value, reduction)


def assert_rounds(ptx, value, reduction):
    """Assert that every operation of floats rounds separately, and that no memory is local."""
    assert re.findall(r"\bfma\.\S+|\b\S+\.ftz\S*|\S+\.approx\S*", ptx) == []
    assert ".local" not in ptx
    operation = {"add": "add", "mul": "mul", "mean": "div"}.get(reduction)
    bits = {"float32": 32, "complex64": 32, "float64": 64, "complex128": 64}.get(value)
    if operation and bits:
        assert f"{operation}.rn.f{bits}" in ptx


@pytest.mark.parametrize("kernel", [*variants("elementary")], ids=str)
def test_exp_and_log_have_no_fused_product_and_no_flush_to_zero(compiler, kernel):
    ptx = ptx_of(compiler, kernel)
    assert re.findall(r"\bfma\.\S+|\b\S+\.ftz\S*|\S+\.approx\S*", ptx) == []
    assert ".local" not in ptx
    assert "mul.rn.f64" in ptx


@pytest.mark.parametrize(("name", "group"), [("fold_exact", 0), ("fold_exact_long", 32)])
@pytest.mark.parametrize("value", sorted({value for value, _ in EXACT}))
def test_an_exact_sum_has_no_operation_of_floats(compiler, name, group, value):
    chosen = {("VALUE", f"value_{value}")} | ({("GROUP_THREADS", str(group))} if group else set())
    ptx = ptx_of(compiler, next(k for k in variants(name) if chosen <= set(k.macros)))
    assert re.findall(r"\S+\.(?:f16|bf16|f32|f64)\b.*", ptx) == []
    # Atomics only add to the limbs, which the threads of a group share.
    atomics = {instruction.split(".")[1] for instruction in re.findall(r"\b(?:atom|red)\.\S+", ptx)}
    assert atomics == ({"shared"} if group else set())


ROWS = ["gather", "scatter", "scatter_small", "scatter_sorted", "fold", "fold_long", "fold_small"]


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_moved_128_bits_at_a_time(compiler, name):
    wide = {("CHUNK_BYTES", "16"), ("VALUE_ALIGN", "16")}
    ptx = ptx_of(compiler, next(k for k in variants(name) if wide & set(k.macros)))
    assert re.search(r"\bld(\.global)?(\.nc)?(\.v4\.[bu]32|\.v2\.[bu]64)", ptx)
    assert re.search(r"\bst(\.global)?(\.cs)?(\.v4\.[bu]32|\.v2\.[bu]64)", ptx)
