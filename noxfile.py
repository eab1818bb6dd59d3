"""Define the sessions that CONTRIBUTING.md lists: ``nox -s test``, ``lint``, ``asan``."""

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
from pathlib import Path

import nox
from filelock import FileLock  # installed with nox, whose virtualenv needs it

nox.needs_version = ">=2025.2.9"
nox.options.error_on_missing_interpreters = True

PROJECT = nox.project.load_toml("pyproject.toml")
# The sources of the package, and the variables that affect its build.
SOURCES = ("src/**/*", "CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE")
BUILD_VARIABLES = ("CMAKE_ARGS", "CXX", "CXXFLAGS", "SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE")
BUILT = {".so", ".pyd", ".pyc"}
WHEELS = Path("build/wheels")
WORKFLOWS = sorted(map(str, Path(".github/workflows").glob("*.yml")))


def group(name: str) -> tuple[str, ...]:
    """Return the requirements of a dependency group."""
    return nox.project.dependency_groups(PROJECT, name)


def wheel(session: nox.Session) -> Path:
    """Return a wheel of the current sources, built once for all sessions of a Python."""
    python = str(session.run("python", "-c", "import sys; print(sys.version)", silent=True))
    state = hashlib.sha256(python.encode())
    for variable in BUILD_VARIABLES:
        state.update(f"{variable}={os.environ.get(variable)}\n".encode())
    for path in sorted(path for pattern in SOURCES for path in Path().glob(pattern)):
        if path.is_file() and path.suffix not in BUILT:
            state.update(f"{path}\n".encode() + path.read_bytes())
    wheels = WHEELS / python.split(maxsplit=1)[0]
    folder = wheels / state.hexdigest()[:16]
    WHEELS.mkdir(parents=True, exist_ok=True)
    with FileLock(WHEELS / "lock"):  # another nox may build the same wheel
        if not folder.is_dir():
            shutil.rmtree(wheels, ignore_errors=True)
            building = wheels / "building"
            session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(building), ".")
            building.rename(folder)
    (built,) = folder.glob("*.whl")
    return built


def install(session: nox.Session, extras: str, *requirements: str) -> None:
    """Install the package, with its extras, and other requirements."""
    session.install(f"{wheel(session)}{extras}", *requirements)


def levels(arguments: list[str]) -> str:
    """Return the levels to build besides portable, as a CMake list: all, or those in ``--levels``.

    Levels that this processor lacks are built in vain: only the core knows which levels can run.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--levels", default="v3,v4")
    chosen: str = parser.parse_known_args(arguments)[0].levels
    return ";".join(level for level in chosen.split(",") if level != "portable")


@nox.session
def test(session: nox.Session) -> None:
    """Build and install the package, and run the quick tests; ``--`` passes pytest arguments."""
    install(session, "", *group("test"))
    session.run("pytest", *(session.posargs or ("-m", "not slow")))


# Tests of parts that may fail on only one Python or NumPy: conversions of arguments, references and
# finalizers, threads and processes, signatures and annotations, messages, and streams.
BINDING_TESTS = (
    *(
        f"tests/{folder}/test_{name}.py"
        for folder, names in {
            "arrays": "accumulator_states array_likes arrays errors hostile operators views",
            "command": "cli_streams",
            "core": "memory_results processes threads xla_call",
            "directml": "buffer_formats json types",
            "files": "faults stream table",
            "patches": "add_framework",
            "plans": "plan program",
            "project": "import_orders stub surface",
        }.items()
        for name in names.split()
    ),
    "tests/core/test_races.py::test_calls_of_every_kind_from_many_threads_at_once",
    # These check the core's division of work, and the text of the sources.
    "--deselect", "tests/core/test_threads.py::test_scatters_of_points",
    "--deselect", "tests/arrays/test_operators.py::test_nothing_is_read_off_an_operators_name",
    "--deselect", "tests/arrays/test_errors.py::test_every_message_is_tested",
)  # fmt: skip


@nox.session(default=False)
def bindings(session: nox.Session) -> None:
    """Run the quick tests that depend on the Python; ``--`` passes pytest arguments."""
    install(session, "", *group("test"))
    session.run("pytest", *(session.posargs or ("-m", "not slow", *BINDING_TESTS)))


@nox.session(default=False)
def frameworks(session: nox.Session) -> None:
    """Test with PyTorch, JAX, Dask, pyarrow and fsspec; ``--`` passes pytest arguments."""
    install(session, "[arrow,dask,jax,remote,torch]", *group("test"), *group("frameworks"))
    session.run("pytest", *(session.posargs or ("-m", "frameworks and not release")))


# The extras tested with their oldest versions. A second PyTorch would be too large to install.
OLDEST = ("cli", "onnx", "zarr", "hdf5", "arrow", "remote", "safetensors", "dask", "jax")
OLDEST_TESTS = (
    "tests/frameworks/jax", "tests/frameworks/dask", "tests/files",
    "tests/conformance/test_onnx_backend.py", "tests/conformance/test_onnx_reference_ops.py",
    "tests/command/test_cli.py", "tests/command/test_cli_explain.py",
    "tests/command/test_cli_files.py", "tests/command/test_cli_groups.py",
    "tests/command/test_cli_models.py", "tests/command/test_cli_statuses.py",
    "tests/arrays/test_array_likes.py",
    "tests/project/test_private_names.py", "tests/arrays/test_operators.py",
    # These depend on messages of click, labels that onnx's parser reads, and modules without Dask.
    "--deselect", "tests/command/test_cli_statuses.py::test_usage_is_status_2_and_one_line",
    "--deselect", "tests/command/test_cli_models.py::test_check_of_a_model",
    "--ignore", "tests/files/test_windows.py",
)  # fmt: skip


def oldest() -> list[str]:
    """Return the requirements of the package and its extras, pinned to their oldest versions."""
    extras = PROJECT["project"]["optional-dependencies"]
    requirements = PROJECT["project"]["dependencies"]
    requirements = [*requirements, *(r for name in OLDEST for r in extras[name])]
    return [requirement.replace(">=", "==") for requirement in requirements]


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Test with the oldest supported versions; `frameworks` uses the newest."""
    needed = ("pytest>=8", "hypothesis>=6.100", "safetensors>=0.7", "flatbuffers", "absl-py")
    # A newer numcodecs warns about a package that the oldest zarr installs.
    session.install(wheel(session), *needed, *oldest(), "numcodecs<0.16.4")
    session.run("pytest", *(session.posargs or ("-m", "not slow", *OLDEST_TESTS)))


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """Interrupt calls on Dask clusters midway; ``--`` passes arguments to tests/faults.py."""
    install(session, "[dask]", *group("test"))
    session.run("python", "tests/faults.py", *session.posargs)


# The package with CUB's sorts.
SORTS = "cuda-cccl[minimal-cu13]>=1.1"


@nox.session(default=False)
def cuda(session: nox.Session) -> None:
    """Test CUDA arrays and kernels without a GPU; ``--`` passes pytest arguments.

    The kernels run on this processor in random orders, and NVRTC compiles them for every
    architecture. Without arguments they then run on real threads under ThreadSanitizer.
    """
    install(session, "[cuda]", *group("test"), SORTS)
    cache = str(Path("build", "shim").absolute())
    tests = "tests/frameworks/cuda"
    session.run("pytest", tests, *session.posargs, env={"GATHERUM_SHIM_CACHE": cache})
    if session.posargs:
        return
    files = "kernels", "kernel_folds", "kernel_small", "kernel_sorts"
    kernels = [f"{tests}/test_{name}.py" for name in files]
    session.run(
        "pytest", "-s", *kernels, "-k", "not every",
        env={
            "GATHERUM_SHIM_CACHE": cache,
            "GATHERUM_SHIM_AT_ONCE": "1",
            "LD_PRELOAD": preloaded(session, "libtsan.so"),
            "TSAN_OPTIONS": "halt_on_error=1",
        },
    )  # fmt: skip


# The version in PyTorch for CUDA 13.0: compiled kernels are found by it.
NVRTC = "nvidia-cuda-nvrtc==13.0.*"


@nox.session(default=False, python="3.12")
def device(session: nox.Session) -> None:
    """Pack a first run on a GPU without a network; ``--`` passes tests/device/pack.py arguments.

    The Python version is the device's. ``--force-python`` selects another version, or a path.
    """
    install(session, "[cuda]", *group("test"), SORTS, NVRTC)
    wheels = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    fetch = "python", "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"
    session.run(*fetch, "-d", str(wheels), SORTS)
    packed = wheel(session), *wheels.glob("*.whl")
    session.run("python", "tests/device/pack.py", *map(str, packed), *session.posargs)


@nox.session(name="wheel", default=False)
def test_wheel(session: nox.Session) -> None:
    """Run the tests on the wheel without a compiler, outside the source folder."""
    install(session, "", *group("test"))
    away = Path(session.create_tmp()) / "away"
    shutil.rmtree(away, ignore_errors=True)
    for part in ("tests", "fuzz", "examples", "benchmarks", "docs", "src", "tools", ".ci"):
        shutil.copytree(part, away / part, ignore=shutil.ignore_patterns("*.so", "*.pyd", "_build"))
    for page in [*Path().glob("*.md"), Path("pyproject.toml"), Path("noxfile.py")]:
        shutil.copy(page, away)
    shell = away / "shell"
    shell.mkdir()
    if bash := shutil.which("bash"):
        (shell / "bash").symlink_to(bash)
    path = os.pathsep.join([session.bin, str(shell)])
    with session.chdir(away):
        session.run("pytest", *session.posargs, env={"PATH": path, "CC": "", "CXX": ""})


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style of Python and C++, and the types of the package."""
    # Types of optional dependencies are checked against the packages themselves.
    session.install(*group("lint"), *group("test"), *PROJECT["project"]["dependencies"])
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    session.run("sp-repo-review", ".")
    session.run("lint-imports", "--no-logo", env={"PYTHONPATH": "src"})
    session.run("mypy")
    # Otherwise it uses the .venv of this folder, which contains only nox.
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True)
    session.run("basedpyright", "--pythonpath", str(python).strip())
    sources = [
        path for path in Path("src/core").rglob("*") if path.suffix in (".cpp", ".hpp", ".h")
    ]
    sources += Path("src/gatherum/cuda/kernels").glob("*.cu*")
    sources += Path("tests/frameworks/cuda/shim").glob("*pp")
    session.run("clang-format", "--dry-run", "-Werror", *sorted(map(str, sources)))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation from scratch, run its examples, and follow its links.

    With ``-- --fast``, only build the site, without the frameworks: a few minutes less.
    """
    if "--fast" in session.posargs:
        install(session, "[cli,onnx]", *group("docs"), "ml_dtypes>=0.5")
        shutil.rmtree("docs/_build", ignore_errors=True)
        session.run("sphinx-build", "--keep-going", "-q", "docs", "docs/_build/html")
        return
    extras = "[arrow,cli,dask,hdf5,jax,onnx,remote,torch,zarr]"  # examples of every module
    install(session, extras, *group("docs"), *group("frameworks"))
    session.run("python", "docs/examples.py")
    session.run("python", "docs/observed.py", "--check")
    session.run("python", "docs/onnx_cases.py", "--check")
    shutil.rmtree("docs/_build", ignore_errors=True)
    session.run("sphinx-build", "-W", "--keep-going", "-n", "-q", "docs", "docs/_build/html")
    session.run("python", "docs/links.py", "docs/_build/html")


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz; ``--`` passes arguments to fuzz/run.py, except ``--core``."""
    arguments = list(session.posargs)
    environment = {}
    if "--core" in arguments:
        arguments.remove("--core")
        environment = _install_followed_core(session)
    else:
        install(session, "")
    session.install(*group("fuzz"))
    session.run("python", "fuzz/run.py", *arguments, env=environment)


def _install_followed_core(session: nox.Session) -> dict[str, str]:
    """Install a core that reports its branches; return the environment variables of a run."""
    defined = {
        "GATHERUM_LEVELS": levels(session.posargs),
        "GATHERUM_OPTIMISATION": "-O1;-ftree-vectorize",
        "CMAKE_CXX_FLAGS": "-O1 -fsanitize-coverage=trace-pc",
        "CMAKE_EXE_LINKER_FLAGS": "-Wl,--unresolved-symbols=ignore-all",
    }
    settings = [f"-Ccmake.define.{name}={value}" for name, value in defined.items()]
    session.install("--no-deps", "-Cbuild-dir=build/fuzz-core", *settings, ".")
    session.install(*PROJECT["project"]["dependencies"])
    counters = Path(session.create_tmp()) / "counters.so"
    compiler = os.environ.get("CXX", "g++")
    session.run(
        compiler, "-O2", "-shared", "-fPIC", "-o", str(counters), "fuzz/counters.cpp", external=True
    )
    return {"GATHERUM_FUZZ_COUNTERS": str(counters.resolve())}


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure this machine; ``--`` passes arguments to the benchmarks."""
    install(session, "[cli,peers]", "torch==2.13.0", "matplotlib")
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session(default=False)
def limits(session: nox.Session) -> None:
    """Measure this machine against plain loops; ``--`` passes arguments to the report."""
    install(session, "[cli,peers]", *group("test"))
    session.run("python", "benchmarks/limits/run.py", *session.posargs)


def preloaded(session: nox.Session, library: str) -> str:
    """Return the libraries to preload.

    Python is not built with the sanitizer, which must be loaded before the functions it replaces.
    """
    return " ".join(
        str(session.run("g++", f"-print-file-name={name}", external=True, silent=True)).strip()
        for name in (library, "libstdc++.so")
    )


def sanitized(session: nox.Session, sanitizer: str, library: str, **environment: str) -> None:
    """Build the core with a sanitizer and test it; ``--`` passes tests/sanitized.py arguments."""
    session.install(*PROJECT["build-system"]["requires"], *group("test"), "cmake", "ninja")
    build = Path("build", session.name)
    site = (build / "site").absolute()
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True)
    session.run(
        "cmake", "-S", ".", "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Sanitize",
        "-DCMAKE_CXX_COMPILER=g++", f"-DPython_EXECUTABLE={str(python).strip()}",
        f"-DGATHERUM_SANITIZE={sanitizer}", f"-DGATHERUM_LEVELS={levels(session.posargs)}",
    )  # fmt: skip
    session.run("cmake", "--build", str(build))
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree("src/gatherum", site / "gatherum", ignore=shutil.ignore_patterns("*.so"))
    session.run("cmake", "--install", str(build), "--prefix", str(site))
    session.run(
        "python", "tests/sanitized.py", session.name, *session.posargs,
        env={
            "PYTHONPATH": str(site),
            "LD_PRELOAD": preloaded(session, library),
            "SANITIZER": sanitizer,
            "GATHERUM_NUM_THREADS": "4",
            "GATHERUM_EXAMPLES": os.environ.get("GATHERUM_EXAMPLES", "60"),
        }
        | environment,
    )  # fmt: skip


@nox.session(default=False)
def asan(session: nox.Session) -> None:
    """Run tests of the core under AddressSanitizer and UndefinedBehaviorSanitizer."""
    options = (
        "detect_leaks=0",  # CPython does not free everything at exit
        "allocator_may_return_null=1",  # failed allocations raise MemoryError here, too
        "detect_stack_use_after_return=1",
        "halt_on_error=1",
    )
    sanitized(
        session,
        "address",
        "libasan.so",
        PYTHONMALLOC="malloc",  # every NumPy buffer has red zones
        ASAN_OPTIONS=":".join(options),
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )


@nox.session(default=False)
def tsan(session: nox.Session) -> None:
    """Run the tests with threads under ThreadSanitizer."""
    options = (
        "die_after_fork=0",  # tests fork, and children start threads
        "halt_on_error=1",
    )
    sanitized(session, "thread", "libtsan.so", TSAN_OPTIONS=":".join(options))


@nox.session(default=False)
def portability(session: nox.Session) -> None:
    """Test on another interpreter, compiler or machine; ``--`` selects one."""
    session.install(*PROJECT["build-system"]["requires"], "cmake", "ninja")
    session.run("python", "tests/portability.py", *session.posargs)


@nox.session(default=False)
def systems(session: nox.Session) -> None:
    """Compile the core for macOS, or for the systems in ``--``, without running it."""
    session.install(*PROJECT["build-system"]["requires"], *group("systems"), "cmake", "ninja")
    session.run("python", "tests/systems.py", *session.posargs)


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build wheels for manylinux and musllinux; ``--root`` selects systems to try them in."""
    session.install(*PROJECT["build-system"]["requires"], *group("wheels"), "cmake", "ninja")
    session.run("python", "tests/wheels.py", *session.posargs)


@nox.session(default=False)
def prerelease(session: nox.Session) -> None:
    """Run checks too long for every change: rare tests, sanitizers, fuzzing, other systems."""
    others = ("systems", "wheel", "wheels", "cuda", "versions")
    for name in ("asan", "tsan", "faults", *others):
        session.notify(name, ())
    session.notify("test", ("-m", "release and not frameworks"))
    session.notify("frameworks", ("-m", "frameworks and release"))
    session.notify("fuzz", ("--core", "--seconds", "600"))


if __name__ == "__main__":
    nox.main()
