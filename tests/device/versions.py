"""Print the versions of a machine with a GPU. The last line names the card."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata

PACKAGES = (
    "gatherum", "numpy", "torch", "cupy-cuda13x", "cupy-cuda12x", "cuda-bindings", "cuda-core",
    "cuda-cccl", "cuda-pathfinder", "nvidia-cuda-nvrtc", "pytest", "hypothesis", "ml_dtypes",
)  # fmt: skip
COMMANDS = (
    ["nvidia-smi"],
    ["compute-sanitizer", "--version"],
)


def version(package: str) -> str:
    """Return the version of a package, or a note that it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Print the versions. Report an error if no device responds or kernels cannot be compiled."""
    print(f"Python {platform.python_version()}, {platform.platform()}")
    for package in PACKAGES:
        print(package, version(package), flush=True)
    for command in COMMANDS:
        try:
            subprocess.run(command, check=False)
        except OSError as why:
            print(why, flush=True)
    from gatherum._system import native
    from gatherum.cuda import driver

    device = driver.open_driver()
    print(f"level {native.level()}, {native.get_num_threads()} threads, {device.architecture(0)}, "
          f"NVRTC {driver.open_compiler().version()}", flush=True)  # fmt: skip
    from gatherum._command import verify

    print(verify._on_cuda().name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
