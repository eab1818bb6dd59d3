"""Kill a run at every call that changes the disk, resume it, and check the files.

test_kills.py starts this program with a scenario and a folder. Runs are forked from one process, so
that a few hundred of them take seconds. SIGKILL ends each run before the n-th call that writes,
forces, renames or removes a file. The program prints the number of kills.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import choose_pass, get, leftovers, put
from gatherum import files
from gatherum.files.durable import build, sinks
from gatherum.files.strategies import table_pass

CALLS = ("pwrite", "fsync", "replace", "rename", "unlink", "mkdir", "ftruncate", "rmdir")
MEMORY = "64KiB"
build.SYNC_BYTES = 20_000
sinks.BUFFERED = 3000


def kill_before(step: int) -> None:
    """Kill this process before the `step`-th call that changes the disk."""
    calls = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **extra: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)
            # the kernel keeps its buffers when a process is killed, so no wait for the disk is
            # needed
            return None if call.__name__ == "fsync" else call(*args, **extra)

        return run

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def forked(run: Callable[[bool], object], resume: bool, step: int) -> bool:
    """Run in a child that is killed before `step`. Return True if the child finished first."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            kill_before(step)
            run(resume)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status != 0:
        raise SystemExit(f"step {step}: the run failed with status {status}")
    return True


def scenario(name: str, folder: Path) -> tuple[Callable[[bool], object], str, Any]:
    """Make the inputs. Return the run, the output's path and the output's expected content."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 1000, (1200, 10)).astype(np.float32)
    file_format = "zarr3" if "zarr" in name else "hdf5" if "hdf5" in name else "npy"
    if name.startswith("gather"):
        choose_pass(pytest.MonkeyPatch(), "passing" in name)
        table_pass.GAP_BYTES = 20_000
        indices = rng.integers(0, 1200, 2500)
        paths = put(folder, "table", table, file_format), put(folder, "indices", indices)
        out = old_output(folder, file_format)
        return (
            lambda resume: files.gather_file(*paths, out, memory=MEMORY, resume=resume),
            out,
            table[indices],
        )
    indices, updates = rng.integers(0, 1200, 2000), rng.random((2000, 10)).astype(np.float32)
    expected = table.copy()
    np.add.at(expected, indices, updates)
    path = put(folder, "table", table, "safetensors" if "tensor" in name else file_format)
    others = put(folder, "indices", indices[:, None]), put(folder, "updates", updates)
    in_place = "place" in name
    memory = "1MiB" if "memory" in name else MEMORY
    out = path if in_place else old_output(folder, file_format)
    return (
        lambda resume: files.scatter_nd_file(
            path, *others, out, reduction="add", memory=memory, in_place=in_place, resume=resume
        ),
        out,
        expected,
    )


def old_output(folder: Path, file_format: str) -> str:
    """Make the output that the run replaces: a file with one array."""
    old = np.ones((3, 2), np.float32)
    if file_format != "hdf5":
        return put(folder, "out", old, file_format)
    out = f"{folder}/out.h5:wanted"
    files.gather_file(old, np.arange(3), out)
    return out


def main(name: str, folder: Path, stride: int, again: int) -> None:
    """Kill at every `stride`-th step of a scenario, and kill the resumed run at step `again`."""
    step, kills = 1 - stride, -1
    alive = True
    while alive:
        step, kills = step + stride, kills + 1
        here = folder / str(step)
        here.mkdir()
        run, out, expected = scenario(name, here)
        old = get(out)
        alive = not forked(run, False, step)
        if alive and "place" not in name and not replacing(out, old, expected):
            raise SystemExit(f"{name}, step {step}: the old output was harmed")
        if alive and again:
            forked(run, True, again)
        if alive:
            forked(run, True, -1)
        if get(out).tobytes() != expected.tobytes():
            raise SystemExit(f"{name}, step {step}: the resumed result is different")
        if leftovers(here):
            raise SystemExit(f"{name}, step {step}: left {leftovers(here)}")
        shutil.rmtree(here)
    print(kills)


def replacing(out: str, old: Any, expected: Any) -> bool:
    """Return True if the output is the old one, the new one, or being exchanged."""
    file = Path(out.split(":", maxsplit=1)[0])
    if not file.exists():
        # a directory is moved aside for the new one
        return Path(f"{file}.partial.old").exists()
    return get(out).tobytes() in (old.tobytes(), expected.tobytes())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
