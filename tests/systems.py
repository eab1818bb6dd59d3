"""Compile the core for other systems with the Clang of PyPI. Nothing is run.

    nox -s systems                          # macOS, and the bindings to Python with it
    nox -s systems -- x86_64-linux-musl     # only the core, without Python

The results are kept in build/systems, a folder for each system. The library runs on such a system
or on an emulator of one ("Other machines" in CONTRIBUTING.md).
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
# NumPy's headers are those of this system, and include a header that macOS has under another name.
ENDIAN = """\
#include <machine/endian.h>
#define __BYTE_ORDER BYTE_ORDER
#define __LITTLE_ENDIAN LITTLE_ENDIAN
#define __BIG_ENDIAN BIG_ENDIAN
"""


def settings(target: str, folder: Path) -> list[str]:
    """Return CMake's settings for a system; `target` is Clang's name for it."""
    machine, system, *_ = target.split("-")
    flags = f"-target {target} -Werror"
    definitions = [
        "-DCMAKE_BUILD_TYPE=None", "-DGATHERUM_OPTIMISATION=-O0", "-DGATHERUM_LEVELS=",
        f"-DCMAKE_SYSTEM_NAME={CMAKE_NAMES[system]}", f"-DCMAKE_SYSTEM_PROCESSOR={machine}",
        # CMake's checks of the compiler do not link.
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY", "-DCMAKE_HAVE_LIBC_PTHREAD=1",
    ]  # fmt: skip
    if system != "macos":
        return [*definitions, f"-DCMAKE_CXX_FLAGS={flags}", "-DGATHERUM_PYTHON=OFF"]
    headers = folder / "headers"
    headers.mkdir(parents=True, exist_ok=True)
    (headers / "endian.h").write_text(ENDIAN)
    return [
        *definitions, f"-DCMAKE_CXX_FLAGS={flags} -idirafter {headers}",
        "-DCMAKE_CROSSCOMPILING_EMULATOR=env", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
        f"-DPython_NumPy_INCLUDE_DIR={np.get_include()}",
    ]  # fmt: skip


def build(target: str) -> None:
    """Build the core's library for a system, and compile the bindings if they are requested."""
    folder = TREE / "build" / "systems" / target
    compiler = {"CXX": f"{sys.executable} -m ziglang c++"}
    subprocess.run(
        ["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
         *settings(target, folder)],
        check=True, env=os.environ | compiler, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    # The bindings are not linked: that requires the system's linker.
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
