"""The core compiled for systems that are not at hand, by the Clang that PyPI has; nothing is run.

    nox -s systems                          # macOS, and the bindings to Python with it
    nox -s systems -- x86_64-linux-musl     # the core alone, which needs no Python

What is built stays in build/systems, a folder a system: its library runs where such a system, or an
emulator, is ("Other machines" in CONTRIBUTING.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

TREE = Path(__file__).resolve().parents[1]
CMAKE_NAMES = {"macos": "Darwin", "linux": "Linux", "windows": "Windows"}
# NumPy's headers are those of this system, and ask for a header that macOS has under another name.
ENDIAN = """\
#include <machine/endian.h>
#define __BYTE_ORDER BYTE_ORDER
#define __LITTLE_ENDIAN LITTLE_ENDIAN
#define __BIG_ENDIAN BIG_ENDIAN
"""


def settings(target: str, folder: Path) -> list[str]:
    """Return what CMake is told of a system: `target` is Clang's name of it."""
    machine, system, *_ = target.split("-")
    flags = f"-target {target} -Werror"
    found = [
        "-DCMAKE_BUILD_TYPE=None", "-DGATHERUM_OPTIMISATION=-O0", "-DGATHERUM_LEVELS=",
        f"-DCMAKE_SYSTEM_NAME={CMAKE_NAMES[system]}", f"-DCMAKE_SYSTEM_PROCESSOR={machine}",
        # Nothing is linked to see what the compiler can do.
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY", "-DCMAKE_HAVE_LIBC_PTHREAD=1",
    ]  # fmt: skip
    if system != "macos":
        return [*found, f"-DCMAKE_CXX_FLAGS={flags}", "-DGATHERUM_PYTHON=OFF"]
    headers = folder / "headers"
    headers.mkdir(parents=True, exist_ok=True)
    (headers / "endian.h").write_text(ENDIAN)
    return [
        *found, f"-DCMAKE_CXX_FLAGS={flags} -idirafter {headers}",
        "-DCMAKE_CROSSCOMPILING_EMULATOR=env", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
        f"-DPython_NumPy_INCLUDE_DIR={np.get_include()}",
    ]  # fmt: skip


def build(target: str) -> None:
    """Build the core's library for a system, and compile the bindings where they are asked for."""
    folder = TREE / "build" / "systems" / target
    compiler = {"CXX": f"{sys.executable} -m ziglang c++"}
    subprocess.run(
        ["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
         *settings(target, folder)],
        check=True, env=os.environ | compiler, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    # The bindings are not linked: that takes a linker of the system's own.
    units = json.loads((folder / "compile_commands.json").read_text())
    own = [unit["output"] for unit in units if Path(unit["file"]).is_relative_to(TREE / "src")]
    objects = [os.path.relpath(folder / output, folder) for output in own]
    subprocess.run(["ninja", "-C", folder, "gatherum", *objects], check=True)
    print(f"{target}: {len(objects)} sources compiled, and the core linked")


def main() -> int:
    """Build for the systems that the command line names."""
    for target in sys.argv[1:] or ["aarch64-macos"]:
        build(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
