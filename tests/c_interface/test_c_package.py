"""The CMake package, the pkg-config file, the crate, and the examples that the docs print."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import foreign
import gatherum
from recipes import copied
from source import ROOT

EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "c-interface.md").read_text(encoding="utf-8")
LIBRARY = Path(gatherum.get_library()).parent
PRINTED = {
    "gather": "20 21\n0 1\n30 31\n",
    "scatter_add": "105 0 9\n",
    "invalid_index": (
        "scatter_slices: `updates` must have shape (3, 2), got (2, 2)\n"
        "an index is out of bounds: 9 (indices[2])\n"
    ),
    "rows": "20 21\n0 1\n30 31\n104 0 7\nan index is out of bounds: 9 (indices[2])\n",
}
SUFFIXES = dict.fromkeys(PRINTED, "c") | {"rows": "cpp"}
OTHERS = ("rust/examples/rows.rs", "c/CMakeLists.txt")
RUST_PRINTED = (
    "[20.0, 21.0, 0.0, 1.0, 30.0, 31.0] [3, 2]\n[104.0, 0.0, 7.0]\n"
    "an index is out of bounds: 9 (indices[2])\n"
    "scatter_slices: `updates` must have shape (3, 2), got (2, 2)\n"
)
pytestmark = [
    *foreign.needs(foreign.C),
    pytest.mark.skipif(
        "SANITIZER" in os.environ, reason="a sanitized core needs its runtime: run it without"
    ),
]
needs_cmake = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")),
    reason="builds with CMake: install cmake and ninja",
)


def cmake_version():
    """Return the version of the CMake on the path, or () without one."""
    if shutil.which("cmake") is None:
        return ()
    said = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


needs_package = pytest.mark.skipif(
    not (LIBRARY / "cmake").is_dir(), reason="the core was built by something else than CMake"
)


def run(command, folder, **settings):
    """Run a command in a folder, and return its output."""
    environment = {"CMAKE_GENERATOR": "Ninja"} | os.environ | settings
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def built(where, folder):
    """Build the examples with CMake and the package's location. Return the output of each."""
    run(["cmake", "-S", EXAMPLES / "c", "-B", folder, where], folder)
    run(["cmake", "--build", folder], folder)
    return {name: run([folder / name], folder) for name in PRINTED}


@needs_cmake
@needs_package
def test_cmake_finds_the_package_next_to_the_header(tmp_path):
    prefix = Path(gatherum.get_include()).parent
    assert built(f"-DCMAKE_PREFIX_PATH={prefix}", tmp_path) == PRINTED


@pytest.mark.slow
@needs_cmake
@needs_package
@pytest.mark.parametrize(("asked", "compatible"), [("0.2", True), ("0.1", False), ("99", False)])
def test_cmake_compares_the_version(tmp_path, asked, compatible):
    asked = gatherum.__version__.rpartition(".")[0] if compatible else asked
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20...4.4)\nproject(asks LANGUAGES C)\n"
        f'find_package(gatherum {asked} CONFIG)\nmessage("found ${{gatherum_FOUND}}")\n'
    )
    settings = f"-DCMAKE_PREFIX_PATH={Path(gatherum.get_include()).parent}"
    command = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", settings]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"found {int(compatible)}" in done.stderr


@needs_package
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="install pkg-config")
def test_pkg_config_knows_the_version():
    settings = {"PKG_CONFIG_PATH": str(LIBRARY / "pkgconfig")}
    assert run(["pkg-config", "--modversion", "gatherum"], ROOT, **settings).strip() == (
        gatherum.__version__
    )


@pytest.mark.slow
@needs_package
@pytest.mark.parametrize("block", re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
def test_the_commands_of_the_page_run_as_printed(tmp_path, block):
    crate = "cargo" in block
    tools = ("cargo", "pkg-config") if crate else ("pkg-config",)
    for tool in ("cmake", "ninja") if "cmake" in block else tools:
        if not shutil.which(tool):
            pytest.skip(f"install {tool}")
    folder = shutil.copytree(EXAMPLES / ("rust" if crate else "c"), tmp_path / "copy")
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    wrapper.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    printed = run(["sh", "-e", "-c", block], folder, PATH=path, CARGO_NET_OFFLINE="true")
    assert printed.endswith(RUST_PRINTED if crate else PRINTED["gather"])


def test_the_page_prints_whole_programs():
    """Every program of the page is a file of the examples, so it compiles."""
    printed = set(re.findall(r"^<!-- render: file examples/(\S+) -->$", PAGE, re.MULTILINE))
    folders = "c", "rust/examples"
    there = {str(p.relative_to(EXAMPLES)) for d in folders for p in (EXAMPLES / d).iterdir()}
    assert printed == there == {*OTHERS, *(f"c/{name}.{s}" for name, s in SUFFIXES.items())}
    assert len(re.findall(r"^```(?:c|cpp|rust|cmake)$", PAGE, re.MULTILINE)) == (
        len(printed) + 1  # a build script of two lines
    )
    assert all(text in PAGE for text in (PRINTED["invalid_index"], PRINTED["rows"], RUST_PRINTED))


@pytest.mark.parametrize("name", [*PRINTED, "header"])
def test_an_example_compiles_without_a_warning(tmp_path, name):
    include, source = f"-I{gatherum.get_include()}", EXAMPLES / "c" / f"{name}.{SUFFIXES.get(name)}"
    if name == "header":  # in C++; names of initializers in the examples are C's
        source = tmp_path / "header.cpp"
        source.write_text("#include <gatherum.h>\nint main() { gatherum_defaults(); }\n")
    cpp = source.suffix == ".cpp"
    compiler = shlex.split(foreign.CXX if cpp else foreign.C)
    strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-std={'c++17' if cpp else 'c99'}"]
    run([*compiler, *strict, include, source], tmp_path)


@pytest.mark.slow
@needs_package
def test_views_of_cpp_and_their_errors(tmp_path):
    link = [f"-I{gatherum.get_include()}", f"-L{LIBRARY}", "-lgatherum", f"-Wl,-rpath,{LIBRARY}"]
    source = ROOT / "tests" / "c_interface" / "wrapper.cpp"
    run([*shlex.split(foreign.CXX), "-std=c++17", source, *link, "-o", "wrapper"], tmp_path)
    assert run([tmp_path / "wrapper"], tmp_path) == "done\n"


@pytest.mark.release  # builds a core; test_add_algorithm.py also tests without Python
@needs_cmake
@pytest.mark.skipif(cmake_version() < (3, 25), reason="building the core needs cmake 3.25")
@pytest.mark.parametrize("library_type", ["shared", "static"])
def test_the_core_is_installed_without_python(tmp_path, library_type):
    tree = copied(tmp_path / "tree", "src", "CMakeLists.txt")
    settings = [
        "-DGATHERUM_PYTHON=OFF", "-DGATHERUM_SYSTEM_INSTALL=ON", "-DGATHERUM_LEVELS=",
        "-DGATHERUM_OPTIMISATION=-O0", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_INSTALL_LIBDIR=lib/deep",
        f"-DGATHERUM_STATIC={'ON' if library_type == 'static' else 'OFF'}",
    ]  # fmt: skip
    prefix = tmp_path / "prefix"
    run(["cmake", "-S", tree, "-B", tree / "build", *settings], tree)
    run(["cmake", "--build", tree / "build"], tree)
    run(["cmake", "--install", tree / "build", "--prefix", prefix], tree)
    (tmp_path / "examples").mkdir()
    where = f"-Dgatherum_DIR={prefix}/lib/deep/cmake/gatherum"
    assert built(where, tmp_path / "examples") == PRINTED
    files = {p.relative_to(prefix).as_posix() for p in prefix.rglob("*") if p.is_file()}
    assert {"include/gatherum.h", "include/gatherum.hpp"} <= files
    assert "lib/deep/pkgconfig/gatherum.pc" in files
    assert ("lib/deep/libgatherum.a" in files) == (library_type == "static")
    if shutil.which("cargo"):
        crate = shutil.copytree(EXAMPLES / "rust", tmp_path / "rust")
        command = ["cargo", "run", "--offline", "--quiet", "--example", "rows"]
        assert run(command, crate, GATHERUM_LIBRARY_DIR=str(prefix / "lib/deep")) == RUST_PRINTED
    if shutil.which("pkg-config"):
        moved = prefix.rename(tmp_path / "moved")
        completed = run(["pkg-config", "--cflags", "--libs", "gatherum"], tmp_path,
                        PKG_CONFIG_PATH=str(moved / "lib/deep/pkgconfig"))  # fmt: skip
        folders = [flag[2:] for flag in completed.split() if flag[:2] in ("-I", "-L")]
        expected = [str(moved / "include"), str(moved / "lib/deep")]
        assert [str(Path(folder).resolve()) for folder in folders] == expected
