"""Applies the recipes of CONTRIBUTING.md, which are patches, to a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copied(folder: Path, *parts: str) -> Path:
    """Copy parts of the tree, without build outputs."""
    built = shutil.ignore_patterns("*.so", "*.dylib", "__pycache__")
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=built)
        else:
            shutil.copy(ROOT / part, folder / part)
    return folder


def patched(folder: Path, patch: Path) -> list[str]:
    """Apply a patch, and return the files that it changes."""
    command = ["patch", "-p1", "-s", "-i", str(patch)]
    subprocess.run(command, cwd=folder, check=True)
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def run(tree: Path, *arguments: str) -> str:
    """Run Python in the copy, and return its output."""
    paths = os.pathsep.join(str(tree / part) for part in ("src", "tests"))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout
