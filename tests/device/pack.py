"""Make the kit for a machine with a GPU that cannot reach a package index.

    nox -s device                              # for Python 3.12, sm_90
    nox -s device --force-python 3.13 -- --architecture sm_80

The kit is the folder build/device: the wheels of this package and of packages that the machine is
expected to lack, and compiled kernels. The installed NVRTC compiles them here, without a GPU. The
machine uses them if its NVRTC has the same version, and compiles them again otherwise.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import kernels

from gatherum.cuda import cub, nvidia

TREE = Path(__file__).parents[2]
KIT = Path("build") / "device"
# Limit on the size of the kit, including the sources.
MOST = 64 << 20
LIBRARY = TREE / "tests" / "frameworks" / "cuda" / "libcuda.c"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--no-sorters", action="store_true", help="leave CUB's sorts out")
    options = parser.parse_args()
    shutil.rmtree(KIT, ignore_errors=True)
    KIT.mkdir(parents=True)
    for wheel in options.wheels:
        shutil.copy(wheel, KIT)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GATHERUM_CUDA_CACHE"] = cache
        compile_kernels(options.architecture)
        if not options.no_sorters:
            compile_sorters(options.architecture)
        with tarfile.open(KIT / "kernels.tar.xz", "w:xz") as packed:
            packed.add(cache, ".")
    check_size()
    python = ".".join(map(str, sys.version_info[:2]))
    print(f"\nOn the machine with the GPU, which has Python {python}, in the same sources:\n")
    print(f'    python3 tests/device/first.py {KIT} "$OUT"')


def compile_kernels(architecture: str) -> None:
    """Compile the kernels that the steps launch into the cache."""
    needed = kernels.needed()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = pool.map(lambda kernel: len(nvidia.kernel_code(kernel, architecture)), needed)
        print(f"{len(needed)} kernels for {architecture}, {sum(sizes) / 2**20:.1f} MiB")


def compile_sorters(architecture: str) -> None:
    """Compile CUB's sorts for all widths into the cache."""
    with a_driver():
        sizes = [len(cub.sorter_code(widths, architecture)) for widths in product((4, 8), (4, 8))]
    print(f"{len(sizes)} sorts for {architecture}, {sum(sizes) / 2**20:.1f} MiB")


@contextmanager
def a_driver() -> Iterator[None]:
    """Load a stub of the driver's library if there is no driver: `cuda.compute` links to it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            built = str(Path(folder) / "libcuda.so.1")
            compiler = os.environ.get("CC", "cc")
            flags = "-std=c11", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", built
            subprocess.run([compiler, *flags, str(LIBRARY), "-ldl"], check=True)
            ctypes.CDLL(built)
        yield


def check_size() -> None:
    """Print the size of the kit. Exit with an error if it is too large."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
    tracked = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    sources = sum(path.stat().st_size for path in tracked if path.is_file())
    kit = {path.name: path.stat().st_size for path in sorted(KIT.iterdir())}
    for name, nbytes in {**kit, "the sources": sources}.items():
        print(f"{nbytes / 2**20:8.1f} MiB  {name}")
    total = sources + sum(kit.values())
    print(f"{total / 2**20:8.1f} MiB of {MOST / 2**20:.0f}")
    if total > MOST:
        sys.exit("pack: this is more than can be carried; leave wheels out")


if __name__ == "__main__":
    main()
