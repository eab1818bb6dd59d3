"""Files and memory as the system has them, through the core's one header of #ifdefs."""

import subprocess
from pathlib import Path

import foreign

ROOT = Path(__file__).parents[1]
pytestmark = foreign.needs(foreign.CXX)


def test_files_and_memory_are_what_the_core_takes_them_for(tmp_path):
    program = tmp_path / "platform.exe"
    strict = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src' / 'core'}"]
    more = ["-static"] if foreign.EMULATOR else ["-pthread"]
    source = ROOT / "tests" / "c" / "platform.cpp"
    subprocess.run([foreign.CXX, *strict, source, "-o", program, *more], check=True)
    run = foreign.run(program, tmp_path / "file")
    assert run.stdout.split() == ["ok"], run.stdout + run.stderr
