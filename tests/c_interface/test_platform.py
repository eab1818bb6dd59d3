"""Files, memory and processor of the system, through the core's headers of #ifdefs."""

import platform
import subprocess

import pytest

import foreign
from source import ROOT

pytestmark = foreign.needs(foreign.CXX)


def test_the_core_describes_files_and_memory_correctly(tmp_path):
    program = tmp_path / "platform.exe"
    strict = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src' / 'core'}"]
    more = ["-static"] if foreign.EMULATOR else ["-pthread"]
    source = ROOT / "tests" / "c_interface" / "platform.cpp"
    subprocess.run([foreign.CXX, *strict, source, "-o", program, *more], check=True)
    run = foreign.run(program, tmp_path / "file")
    assert run.stdout.split() == ["ok"], run.stdout + run.stderr


LEVELS = """
#include "platform/processor.hpp"
#include <cstdio>
int main() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  const int known[] = {1, v3, v4}, levels[] = {0, 3, 4};
  for (int i = 0; i < 3; ++i) std::printf("%d%d ", gatherum::processor_has(levels[i]), known[i]);
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are x86-64's")
def test_levels_are_those_that_the_compiler_s_library_finds(tmp_path):
    source, program = tmp_path / "levels.cpp", tmp_path / "levels.exe"
    source.write_text(LEVELS)
    core = f"-I{ROOT / 'src' / 'core'}"
    subprocess.run([foreign.CXX, "-std=c++20", core, source, "-o", program], check=True)
    assert set(foreign.run(program).stdout.split()) <= {"00", "11"}
