"""C and C++ programs for the system under test, which may differ from this one.

`CC` and `CXX` name the compilers. `GATHERUM_TEST_EMULATOR` (such as ``wine``) runs their programs,
and `GATHERUM_TEST_LIBRARY` is the core that they built:

    CC=x86_64-w64-mingw32-gcc-posix CXX=x86_64-w64-mingw32-g++-posix GATHERUM_TEST_EMULATOR=wine
    GATHERUM_TEST_LIBRARY=build/mingw/libgatherum.dll
    python -m pytest tests/c_interface/test_c_interface.py
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import gatherum

C = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
EMULATOR = shlex.split(os.environ.get("GATHERUM_TEST_EMULATOR", ""))


def needs(compiler: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a test module that compiles programs."""
    return [
        pytest.mark.skipif(
            not compiler or shutil.which(compiler) is None,
            reason="compiles a program: install a C and C++ compiler, or name them in CC and CXX",
        ),
        pytest.mark.skipif(os.name == "nt", reason="the command line is that of Unix compilers"),
    ]


def library(folder: Path) -> list[str]:
    """Return the compiler options for the core. On Windows, copy the core next to the program."""
    path = Path(os.environ.get("GATHERUM_TEST_LIBRARY", gatherum.get_library())).resolve()
    if path.suffix != ".dll":
        return [str(path), f"-Wl,-rpath,{path.parent}"]
    shutil.copy(path, folder)
    return [str(folder / path.name)]


def run(program: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a program with files and words as arguments."""
    command = [*EMULATOR, program, *arguments]
    quiet = os.environ | {"WINEDEBUG": "-all"}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=quiet
    )
