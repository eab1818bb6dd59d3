"""Build, test and compare the package on another interpreter, compiler or machine.

    nox -s portability -- python3.13 --python python3.13
    nox -s portability -- clang --cxx clang++ --flags=-stdlib=libc++
    nox -s portability -- aarch64 --root FOLDER --cxx aarch64-linux-gnu-g++
    ... tests/arrays/test_cases.py -x      # arguments of pytest, instead of the quick tests

The first word names the folder in build/portability. FOLDER is a Debian system that is unpacked,
not installed. Its Python is run by qemu if the system is for another processor, and by the system's
own loader otherwise. CONTRIBUTING.md, "Other machines", describes how to make one. The last line is
a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
SUMMARY = re.compile(r"=* ?((?:\d+ \w+,? ?)+ in [\d.]+s.*?) ?=*$")
NEEDED = {"numpy", "pytest", "hypothesis", "ml_dtypes", "click", "rich"}  # by `pytest tests` itself
GLIBC = ("2_28", "2_27", "2_26", "2_17")  # of the accepted wheels
ASKED = """
import json, platform, sys, sysconfig
print(json.dumps([sys.version_info[:2], sysconfig.get_config_var("SOABI"), platform.machine(),
    sys.version.split()[0], sysconfig.get_config_var("Py_GIL_DISABLED") or 0]))
"""


class Platform:
    """An interpreter, the packages installed for it, and the core built for it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = TREE / "build" / "portability" / options.name
        self.site = self.folder / "site"
        self.site.mkdir(parents=True, exist_ok=True)
        self.python = self._launcher() if options.root else shutil.which(options.python)
        if self.python is None:
            raise SystemExit(f"there is no {options.python}")
        self.version, self.abi, self.machine, self.name, self.free = json.loads(
            self._said(self.python, "-c", ASKED)
        )
        self.abi = f"cp{self.version[0]}{self.version[1]}{'t' * self.free}"

    def _launcher(self) -> str:
        """Write a program that runs the Python of an unpacked system."""
        root = self.options.root.resolve()
        patterns = ("lib*/ld-*.so.*", "usr/lib*/ld-*.so.*")  # the first may be a link to the second
        loaders = {path.name: path for pattern in patterns for path in root.glob(pattern)}
        (python,) = root.glob("usr/bin/python3.[0-9][0-9]")
        machine = platform.machine()
        own = next(
            (path for name, path in loaders.items() if machine.replace("_", "-") in name), None
        )
        if own is None:
            run = f'qemu-{self.options.emulates} -0 "$0" -L {root} {python}'
        else:
            libraries = root / "usr" / "lib" / f"{machine}-linux-gnu"
            run = f'{own} --argv0 "$0" --library-path {libraries} {python}'
        launcher = self.folder / "python"
        launcher.write_text(f'#!/bin/sh\nPYTHONHOME={root}/usr exec {run} "$@"\n')
        launcher.chmod(0o755)
        return str(launcher)

    def _said(self, *command: str) -> str:
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout

    def install(self) -> list[str]:
        """Install the requirements of the tests as wheels. Return those without a wheel."""
        project = tomllib.loads((TREE / "pyproject.toml").read_text())
        wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
        if (done := self.folder / "missing.json").exists():
            result: list[str] = json.loads(done.read_text())
            return result
        platforms = self.options.platform or [
            f"manylinux_{version}_{self.machine}" for version in GLIBC
        ] + [f"manylinux2014_{self.machine}"]
        where = [f"--platform={name}" for name in platforms]
        where += [f"--python-version={self.version[0]}.{self.version[1]}", f"--abi={self.abi}"]
        where += ["--abi=abi3", "--abi=none", "--implementation=cp", "--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(self.site), *where]
        missing: list[str] = []
        if subprocess.run([*command, *wanted], check=False).returncode:  # then all except those
            for requirement in wanted:
                name = re.split(r"[><=\[]", requirement)[0]
                if subprocess.run([*command, requirement], check=False).returncode == 0:
                    continue
                if name in NEEDED:
                    raise SystemExit(f"{self.name}: there is no wheel of {name}")
                missing.append(name)
        done.write_text(json.dumps(missing))
        return missing

    def build(self) -> None:
        """Build the core, and install the package next to its requirements."""
        built, options = self.folder / "core", self.options
        flags, settings = options.flags, []
        if options.root:
            root = options.root.resolve()
            (include,) = root.glob("usr/include/python3.[0-9][0-9]")
            flags += f" -idirafter {root}/usr/include"
            settings += [f"-DPython_INCLUDE_DIR={include}"]
        nanobind = self._said(sys.executable, "-m", "nanobind", "--cmake_dir").strip()
        settings += [f"-DCMAKE_CXX_COMPILER={options.cxx}"] if options.cxx else []
        foreign = self.machine != platform.machine()
        levels = "" if foreign else options.levels.replace(",", ";").replace("portable", "")
        settings += [f"-DGATHERUM_LEVELS={levels}"]
        environment = os.environ | {"PYTHONPATH": str(self.site)}
        subprocess.run(
            ["cmake", "-S", str(TREE), "-B", str(built), "-G", "Ninja",
             f"-Dnanobind_DIR={nanobind}", f"-DPython_EXECUTABLE={self.python}",
             f"-DCMAKE_CXX_FLAGS={flags}",
             f"-DPython_NumPy_INCLUDE_DIR={self.site}/numpy/_core/include", *settings],
            check=True, env=environment,
        )  # fmt: skip
        subprocess.run(["cmake", "--build", str(built)], check=True)
        shutil.rmtree(self.site / "gatherum", ignore_errors=True)
        of_others = shutil.ignore_patterns("*.so", "lib", "include", "__pycache__")
        shutil.copytree(TREE / "src" / "gatherum", self.site / "gatherum", ignore=of_others)
        subprocess.run(["cmake", "--install", str(built), "--prefix", str(self.site)], check=True)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run a module. Return its exit status and its last line."""
        last = ""
        command = [str(self.python), "-m", *arguments]
        path = {"PYTHONPATH": str(self.site)}
        if self.options.root:
            environment |= {"CC": "", "CXX": ""}  # the compilers here are for another machine
        with subprocess.Popen(
            command,
            cwd=TREE,
            env=os.environ | path | environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
        return process.returncode, last


def main() -> int:
    """Build, test, and print a summary."""
    options, told = arguments()
    there = Platform(options)
    missing = there.install()
    there.build()
    status, digests = there.run("gatherum", "verify")
    failed, last = there.run("pytest", "-p", "no:cacheprovider", *(told or ["-m", "not slow"]))
    summary = SUMMARY.match(last)
    end = summary[1] if summary else f"ended with status {failed}"
    without = f"; without {', '.join(missing)}" if missing else ""
    print(f"{options.name}: Python {there.name}, {there.machine}: {end}; {digests}{without}")
    return int(status != 0 or failed != 0)


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed command line, and the arguments for pytest."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("name", help="of this platform, such as python3.13 or aarch64")
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter; this one by default"
    )
    parser.add_argument("--root", type=Path, help="an unpacked system, whose Python it is instead")
    parser.add_argument(
        "--emulates", default="aarch64-static", help="which qemu runs another processor"
    )
    parser.add_argument("--cxx", help="the compiler, if it is not CMake's own choice")
    parser.add_argument("--levels", default="v3,v4", help="to build besides portable")
    parser.add_argument("--flags", default="", help="for the compiler")
    parser.add_argument(
        "--platform", action="append", help="of wheels, such as musllinux_1_2_x86_64"
    )
    return parser.parse_known_args()


if __name__ == "__main__":
    sys.exit(main())
