"""Build wheels for manylinux and musllinux with the Clang of PyPI's ziglang, and try them.

    nox -s wheels                           # both; manylinux is tried in an environment
    nox -s wheels -- --root FOLDER          # the wheel for an unpacked system, which is tried in it
    nox -s wheels -- --levels v3            # fewer instruction-set levels

The wheels are for the running Python and processor, and are kept in build/wheelhouse. FOLDER is the
root of a Linux system with the same version of Python ("Other machines" in CONTRIBUTING.md). Its
loader determines whether it has glibc or musl. Programs run in it by chroot. README's commands run
without a compiler on the path. The last lines list the names of the wheels, with tags, and their
sizes.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
BUILD = TREE / "build" / "wheelhouse"
MACHINE = platform.machine()
# The oldest system of each C library: Zig's name for it, and the wheel's.
SYSTEMS = {
    "gnu": (f"{MACHINE}-linux-gnu.2.28", f"manylinux_2_28_{MACHINE}"),
    "musl": (f"{MACHINE}-linux-musl", f"musllinux_1_2_{MACHINE}"),
}
# CMake names levels as GCC does. Zig interprets the part after a hyphen as a feature to disable.
COMPILER = """\
#!/bin/sh
for argument; do
  shift
  case $argument in -march=x86-64-*) argument=-march=x86_64_${argument##*-} ;; esac
  set -- "$@" "$argument"
done
exec PYTHON -m ziglang c++ -O2 -target TARGET "$@"
"""
README = (TREE / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(
    r"&& \.venv/bin/gatherum (gather .*)\n```\n\nIt ends with:\n\n```text\n(.*?)```", re.DOTALL
)
EXAMPLES = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def build(libc: str, levels: str) -> Path:
    """Build the wheel for a C library, and tag it with the oldest system that it runs on."""
    target, tag = SYSTEMS[libc]
    folder = TREE / "build" / "wheels" / f"{libc}-{PYTHON}"
    shutil.rmtree(folder / "raw", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    compiler = folder / "zig-cxx"
    compiler.write_text(COMPILER.replace("PYTHON", sys.executable).replace("TARGET", target))
    compiler.chmod(0o755)
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX")).replace("-gnu", f"-{libc}")
    levels = ";".join(level for level in levels.split(",") if level != "portable")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
         "-w", folder / "raw", f"-Cbuild-dir={folder / 'core'}",
         f"-Ccmake.define.GATHERUM_LEVELS={levels}", "-Cinstall.strip=true", TREE],
        check=True, env=os.environ | {"CXX": str(compiler), "SETUPTOOLS_EXT_SUFFIX": suffix},
    )  # fmt: skip
    (raw,) = (folder / "raw").glob("*.whl")
    if libc == "gnu":
        tagged: list[str | Path] = [
            "auditwheel",
            "repair",
            "--only-plat",
            "--plat",
            tag,
            "-w",
            raw.parent,
            raw,
        ]
    else:  # auditwheel supports musllinux on musl systems only; the trial checks it
        tagged = ["wheel", "tags", "--platform-tag", tag, raw]
    subprocess.run([sys.executable, "-m", *tagged], check=True)
    (wheel,) = raw.parent.glob(f"*{tag}.whl")
    BUILD.mkdir(parents=True, exist_ok=True)
    return wheel.replace(BUILD / wheel.name)


def try_in_environment(wheel: Path) -> None:
    """Run the commands of the README in a fresh environment, with only its programs in PATH."""
    folder = BUILD / "environment"
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", f"{wheel}[cli]"], check=True)
    plain = {"PATH": str(folder / "bin"), "CC": "", "CXX": ""}
    run_readme([str(python)], folder, folder, os.environ | plain)


def try_in_root(wheel: Path, libc: str, root: Path) -> None:
    """Run README's commands in an unpacked system without a compiler."""
    programs = root / "usr" / "bin"
    if compilers := [name for name in ("cc", "gcc", "g++", "clang") if (programs / name).exists()]:
        raise SystemExit(f"{root}: it has a compiler, {compilers[0]}")
    inside = Path("/opt/gatherum")
    site = root / inside.relative_to("/")
    shutil.rmtree(site, ignore_errors=True)
    older = ("manylinux_2_27", "manylinux2014") if libc == "gnu" else ()
    tags = [SYSTEMS[libc][1], *(f"{tag}_{MACHINE}" for tag in older)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--target", site,
         *(f"--platform={tag}" for tag in tags), f"{wheel}[cli]"],
        check=True,
    )  # fmt: skip
    python = ["chroot", str(root), f"/usr/bin/{PYTHON}"]
    run_readme(python, site, inside, {"PYTHONPATH": str(inside), "PATH": os.environ["PATH"]})


def run_readme(python: list[str], folder: Path, inside: Path, environment: dict[str, str]) -> None:
    """Run README's first command, its quick start and `gatherum verify`.

    `inside` is the folder's name in the system that runs them.
    """
    shutil.copytree(TREE / "examples", folder / "examples", dirs_exist_ok=True)
    (folder / "quickstart.txt").write_text("\n".join(EXAMPLES.findall(README)), encoding="utf-8")
    match = COMMAND.search(README)
    assert match, "README's first command has another form"
    command = re.sub(r"examples/|shortest\.npy", rf"{inside}/\g<0>", match[1]).split()

    def said(*arguments: str) -> str:
        return _said([*python, "-m", *arguments], folder, environment)

    out = said("gatherum", *command)
    assert out.endswith(match[2]), out
    said("doctest", f"{inside}/quickstart.txt")
    print(*said("gatherum", "verify").splitlines()[-2:], said("gatherum", "info"), sep="\n")


def _said(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def libc_of(root: Path) -> str:
    """Return the C library of an unpacked system."""
    return "musl" if [*root.glob("lib/ld-musl-*"), *root.glob("usr/lib/ld-musl-*")] else "gnu"


def main() -> int:
    """Build, try and list the wheels."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--root", type=Path, action="append", help="an unpacked system")
    parser.add_argument("--levels", default="v3,v4", help="to build besides portable")
    options = parser.parse_args()
    roots = {libc_of(root): root for root in options.root or []}
    for libc in [*roots] or [*SYSTEMS]:
        wheel = build(libc, options.levels)
        tried = "not tried: no --root"
        if libc in roots:
            try_in_root(wheel, libc, roots[libc].resolve())
            tried = "README's commands run in a bare root"
        elif libc == "gnu":
            try_in_environment(wheel)
            tried = "README's commands run in an environment without a compiler"
        with zipfile.ZipFile(wheel) as members:
            unpacked = sum(one.file_size for one in members.infolist())
        sizes = f"{wheel.stat().st_size / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB"
        print(f"{wheel.name}: {sizes}, levels portable,{options.levels}; {tried}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
