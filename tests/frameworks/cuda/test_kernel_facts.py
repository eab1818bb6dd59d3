"""Facts that kernels share with the core and with Python."""

import os
import re
import subprocess

import pytest
from shim.device import COMPILER, NO_COMPILER, SHIM

from gatherum._core import Mode, Value
from gatherum.cuda import checks, kernel_tables, kernels, launch_sizes, programs
from source import ROOT

needs_compiler = pytest.mark.skipif(not COMPILER, reason=NO_COMPILER)
INDEX = {
    "OFFSET_BITS": 32,
    "LOOPS": 8,
    "COMPONENTS": 4,
    "INDEX": "int64",
    "INDEX_ALIGN": 8,
    "INDEX_SWAPPED": 0,
    "MODE": "mode_drop",
}


def errors_of(folder, name, changes, **macros):
    """Return the compiler's errors for a kernel after changes of its sources."""
    sources = kernels.sources()
    for file, (old, new) in changes.items():
        assert old in sources[file]
        sources[file] = sources[file].replace(old, new)
    for file, text in sources.items():
        (folder / file).write_text(text)
    options = [f"-D{macro}={value}" for macro, value in (INDEX | macros).items()]
    options += [f"-DKERNEL={name}", f'-DKERNEL_FILE="{name}.cu"', f"-I{folder}"]
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-include", SHIM / "shim.hpp", *options]
    english = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(
        [*command, SHIM / "entry.cpp"], capture_output=True, text=True, check=False, env=english
    )
    return re.findall(r"error: (?:static assertion failed: )?(.*)", done.stderr)


def test_kernels_have_the_modes_of_the_core():
    (names,) = re.findall(r"enum Mode \{ (.*) \};", kernels.sources()["modes.cuh"])
    assert names.split(", ") == [f"mode_{mode.name}" for mode in Mode]
    assert [kernels.mode_macro(mode) for mode in Mode] == names.split(", ")


@needs_compiler
@pytest.mark.parametrize("mode", ["mode_wrap", "mode_new"])
def test_a_mode_without_a_rule_does_not_compile(tmp_path, mode):
    changes = {"modes.cuh": ("mode_drop", "mode_drop, mode_new")}
    macros = {"MODE": mode, "CHUNK_BYTES": 4, "PER_THREAD": 4}
    expected = ["resolve: a mode has no rule for an invalid index"] if mode == "mode_new" else []
    assert errors_of(tmp_path, "gather", changes, **macros) == expected


@needs_compiler
@pytest.mark.parametrize("neutral", ["lowest", "none"])
def test_an_atomic_fold_without_a_neutral_element_does_not_compile(tmp_path, neutral):
    row = "R == Reduction::max ? Neutral::"
    changes = {"reductions.cuh": (f"{row}lowest", f"{row}{neutral}")}
    macros = {"VALUE": "value_int32", "REDUCTION": "max", "TABLE_BYTES": 8192, "PER_THREAD": 4}
    expected = ["neutral: a reduction has no neutral element"] if neutral == "none" else []
    assert errors_of(tmp_path, "fold_table", changes, **macros)[:1] == expected


def fields_of(struct):
    """Return the names of a struct's fields, which the kernels' sources declare."""
    text = "\n".join(kernels.sources().values())
    (body,) = re.findall(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    body = re.sub(r"//.*", "", body).partition("__device__")[0]
    declarations = re.findall(r"\w+ ([\w, ]+);", body)
    return [name for names in declarations for name in names.split(", ")]


@pytest.mark.parametrize(
    ("struct", "fields"),
    [
        ("Loop", kernel_tables.DeviceLoop),
        ("Component", kernel_tables.DeviceComponent),
        ("Divisor", kernel_tables.DeviceDivisor),
        ("Record", checks.Record),
    ],
)
def test_python_packs_the_fields_of_a_struct_in_their_order(struct, fields):
    assert fields_of(struct) == list(fields._fields)


def test_the_core_reads_the_record_that_kernels_write():
    """Its first word is the number of invalid tuples."""
    assert checks.Record._fields[0] == "invalid_tuples"
    assert constant("kMostRead") >= checks.RECORD_BYTES


def test_programs_have_the_operands_of_the_core():
    assert constant("kOperandSlots") == programs.OPERANDS
    assert constant("kMostOperands") == programs.WEIGHTS + 1


def constant(name):
    """Return a constant of the core's device programs."""
    text = (ROOT / "src" / "core" / "device" / "program.hpp").read_text()
    (number,) = re.findall(rf"\b{name} = (\d+);", text)
    return int(number)


def test_python_and_kernels_have_the_same_size_of_a_warp():
    (threads,) = re.findall(r"kWarpThreads = (\d+);", kernels.sources()["platform.cuh"])
    assert int(threads) == launch_sizes.WARP


def test_kernels_have_every_value_type():
    text = "\n".join(kernels.sources().values())
    names = [value.name for value in Value if value is not Value.none]
    assert sorted(re.findall(r"using value_(\w+) =", text)) == sorted(names)
