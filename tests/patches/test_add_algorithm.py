"""Follow the recipe "Add an algorithm": a file, its declarations, and a row."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

import gatherum
from gatherum._system import native
from source import ROOT

COMPILER = os.environ.get("CXX", "g++")
KERNELS = "CMakeFiles/kernels_*.dir/src/core/kernels/level/*.o"
BUILDS = sorted({path.parents[6] for path in ROOT.glob(f"build/*/{KERNELS}")})
pytestmark = [
    pytest.mark.release,  # compiles most of the core
    pytest.mark.skipif(
        not COMPILER or shutil.which(COMPILER) is None,
        reason="compiles the core: install a C++ compiler, or name it in CXX",
    ),
    pytest.mark.skipif(
        not BUILDS,
        reason="links kernels that are compiled in this tree: build the wheel here first",
    ),
    pytest.mark.skipif(os.name == "nt", reason="the command line is that of Unix compilers"),
]

NEW_FILE = """
#include "algorithms/algorithms.hpp"

namespace gatherum {

// Very few updates, one after the other on the calling thread.
bool applies_few(const Program& p, int, std::string* why) {
  if (p.tuples > 4 || needs_accumulator(p.fold_rule)) return false;
  append(why, p.tuples, " updates are few");
  return true;
}

RunResult run_few(const Program& p, const Execution& call) {
  const Range everything{
      .chunk = p.nest.line_loop().extent, .begin = 0, .end = points(p.nest, p.unit_loops)};
  const bool valid =
      chosen_kernels().scatter(p.nest, p.unit_loops, call.operands, everything, p.fold_rule, {});
  return {.valid = valid};
}

}  // namespace gatherum
"""
DECLARED = """Applies applies_few;
Runs run_few;
"""
ROW = """    Algorithm{.name = "few",
              .applies = applies_few,
              .scratch = no_scratch,
              .run = run_few,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
"""


def _insert(path, before, text):
    whole = path.read_text()
    assert whole.count(before) == 1, before
    path.write_text(whole.replace(before, text + before))


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Build a library of the core with one additional algorithm."""
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(ROOT / "src" / "core", folder / "core")
    inside = folder / "core" / "algorithms"
    (inside / "scatter" / "few.cpp").write_text(NEW_FILE)
    _insert(inside / "algorithms.hpp", "Applies applies_partitioned", DECLARED)
    _insert(inside / "list.cpp", '    Algorithm{.name = "partitioned",', ROW)
    kernels = sorted(BUILDS[0].glob(KERNELS))
    levels = [path.parts[-6].removesuffix(".dir").removeprefix("kernels_") for path in kernels]
    defined = [f"-DGATHERUM_{level.upper()}=1" for level in levels if level != "portable"]
    others = folder / "core" / "python", folder / "core" / "kernels"
    sources = [
        path
        for path in sorted((folder / "core").rglob("*.cpp"))
        if not any(other in path.parents for other in others)
    ]
    library_path = folder / "libfew.so"
    flags = ["-std=c++20", "-O0", "-fPIC", "-shared", "-pthread", "-Werror=switch"]
    flags += ["-DGATHERUM_BUILDING", f"-I{folder / 'core'}", *defined]
    subprocess.run([COMPILER, *flags, *sources, *kernels, "-o", library_path], check=True)
    library = ctypes.CDLL(str(library_path))
    library.gatherum_algorithm.restype = ctypes.c_char_p
    return library


class Buffer(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_void_p),
        ("bytes_before", ctypes.c_int64),
        ("bytes_after", ctypes.c_int64),
    ]


class Operands(ctypes.Structure):
    _fields_ = [
        *((name, Buffer) for name in ("data", "indices", "updates", "out")),
        ("fill", ctypes.c_void_p),
        ("fresh", ctypes.c_int32),
    ]


class Description(ctypes.Structure):
    _fields_ = [
        ("algorithm", ctypes.c_char_p),
        ("reason", ctypes.c_char * 512),
        ("scratch", ctypes.c_int64),
    ]


def _names(core):
    names = []
    while (name := core.gatherum_algorithm(len(names))) is not None:
        names.append(name.decode())
    return names


def test_the_new_one_is_in_its_place(core):
    names = _names(core)
    assert [name for name in names if name != "few"] == native.algorithm_names()
    assert names.index("few") == names.index("partitioned") - 1


@pytest.mark.parametrize(("updates", "expected"), [(3, "few"), (30, "direct")])
def test_it_runs_where_it_applies_with_the_same_bits(core, updates, expected):
    rng = np.random.default_rng(1)
    arrays = {
        "data": rng.standard_normal(50),
        "indices": rng.integers(0, 50, (updates, 1)),
        "updates": rng.standard_normal(updates),
        "out": np.empty(50),
    }
    *operands, out = arrays.values()
    plan = gatherum.plan("scatter_nd", *operands, reduction="add")
    content, program = bytes(plan.program), ctypes.c_void_p()
    assert core.gatherum_program_read(content, len(content), ctypes.byref(program), None) == 0
    said = Description()
    assert core.gatherum_describe(program, ctypes.byref(said)) == 0
    assert said.algorithm.decode() == expected
    assert expected != "few" or said.reason == b"3 updates are few"
    call = Operands(**{name: Buffer(a.ctypes.data, 0, a.nbytes) for name, a in arrays.items()})
    assert core.gatherum_check(program, ctypes.byref(call), None) == 0
    assert core.gatherum_run(program, ctypes.byref(call), None, None) == 0
    core.gatherum_program_free(program)
    assert out.tobytes() == gatherum.scatter_nd(*operands, reduction="add").tobytes()
