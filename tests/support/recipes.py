"""Applies the recipes of CONTRIBUTING.md, which are patches, to a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import gatherum
from source import ROOT

COMPILER = os.environ.get("CXX", "g++")
MACROS = ["LEVEL=level_portable", "KERNELS=kernels_portable", "SLABS=level_portable"]
OPTIONS = ["-std=c++20", "-fsyntax-only", "-Wno-psabi", "-Werror=switch"]
OPTIONS += [f"-DGATHERUM_{macro}" for macro in (*MACROS, 'LEVEL_NAME="portable"')]
KERNELS = "kernels/level/grouped.cpp"
# For recipes that do not change the core: their tests copy the installed one.
COPIES_CORE = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the core's libraries are found as on Unix"),
    pytest.mark.skipif(not shutil.which("patch"), reason="applies a patch: install patch"),
]
# The recipes that change the core and are built together.
BUILT = ("absmax", "first")
CHECKS_CORE = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the command lines are those of Unix"),
    pytest.mark.skipif(not shutil.which("patch"), reason="applies a patch: install patch"),
    pytest.mark.skipif(
        not COMPILER or not shutil.which(COMPILER),
        reason="compiles the core: install a C++ compiler, or name it in CXX",
    ),
]


def copied(folder: Path, *parts: str) -> Path:
    """Copy parts of the tree, without build outputs."""
    built = shutil.ignore_patterns("*.so", "*.dylib", "__pycache__")
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=built)
        else:
            shutil.copy(ROOT / part, folder / part)
    return folder


def copy_installed_core(folder: Path) -> None:
    """Copy the compiled modules of the installed package to a copy of the tree."""
    package = Path(gatherum.__file__).parent
    for built in (*package.glob("_core*"), *package.glob("lib/*")):
        target = folder / "src" / "gatherum" / built.relative_to(package)
        target.parent.mkdir(exist_ok=True)
        if built.is_file() and not target.exists():
            shutil.copy(built, target)


def patched(folder: Path, patch: Path) -> list[str]:
    """Apply a patch, and return the files that it changes."""
    command = ["patch", "-p1", "-s", "-i", str(patch)]
    subprocess.run(command, cwd=folder, check=True)
    return files_of(patch)


def files_of(patch: Path) -> list[str]:
    """Return the files that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def built_tree(factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the recipes of `BUILT`, built without optimization."""
    folder = copied(factory.mktemp("built"), "src", "tests", "tools", "CMakeLists.txt")
    for name in BUILT:
        patched(folder, ROOT / "tests" / "patches" / f"{name}.patch")
    run(folder, "tools/signatures")
    build(folder)
    return folder


def compile_core(sources: Path, name: str = KERNELS) -> subprocess.CompletedProcess[str]:
    """Check that a file of the core in a copy compiles, without writing code.

    The kernels include nearly all rules of the core, but headers compile several times faster.
    """
    core = sources / "src" / "core"
    command = [COMPILER, *OPTIONS, f"-I{core}", "-x", "c++", str(core / name)]
    english = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=english)


def build(tree: Path) -> None:
    """Compile the core of the copy, with portable kernels and without optimization."""
    settings = [
        "-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}", "-DGATHERUM_LEVELS=",
        "-DGATHERUM_OPTIMISATION=-O0",
    ]  # fmt: skip
    folder = tree / "build"
    for command in (
        ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", *settings],
        ["cmake", "--build", folder],
        ["cmake", "--install", folder, "--prefix", tree / "src"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def needs_build(test: Any) -> Any:
    """Mark a test that uses `build` as a release test."""
    missing = not (shutil.which("cmake") and shutil.which("ninja") and find_spec("nanobind"))
    reason = "builds the core: install cmake, ninja and nanobind"
    return pytest.mark.release(pytest.mark.skipif(missing, reason=reason)(test))


def run(tree: Path, *arguments: str) -> str:
    """Run Python in the copy, and return its output."""
    paths = os.pathsep.join(str(tree / part) for part in ("src", "tests", "tests/support"))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout
