"""Facts that kernels share with the core and with Python: the headers that are generated from it."""

import os
import re
import subprocess

import pytest
from shim.device import COMPILER, NO_COMPILER, SHIM

from gatherum._core import Mode
from gatherum.cuda import kernels

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
    for file, text in kernels.sources().items():
        for old, new in changes.get(file, {}).items():
            assert old in text
            text = text.replace(old, new)
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
    macros = {"MODE": mode, "CHUNK_BYTES": 4, "PER_THREAD": 4}
    errors = errors_of(
        tmp_path, "gather", {"modes.cuh": {"mode_drop": "mode_drop, mode_new"}}, **macros
    )
    expected = ["resolve: a mode has no rule for an invalid index"] if mode == "mode_new" else []
    assert errors == expected
