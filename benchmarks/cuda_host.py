"""Time the host's part of calls on a CUDA device, without a device.

    python benchmarks/cuda_host.py                   # every call
    python benchmarks/cuda_host.py --only gather
    python benchmarks/cuda_host.py --json times.json

The driver is `libcuda.c` of the tests, whose functions return immediately, and tensors in host
memory count as tensors on a device. The time of a real driver for each launch, and the time of the
sort, are not included. The script prints the best processor time of several loops, and the goals.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frameworks" / "cuda"))

import stand_in

LOOPS, RUNS = 20, 100
EDGES = 8192  # more than a block sorts
GOALS = {"tensor": 4.0, "protocol": 15.0, "composition": 171.0}  # microseconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="calls whose name contains this")
    parser.add_argument("--json", help="also write the times to this file")
    options = parser.parse_args()
    if sys.platform != "linux" or stand_in.COMPILER is None:
        print("cuda_host: needs Linux and a C compiler", file=sys.stderr)
        return 1
    if "GATHERUM_STAND_IN" in os.environ:
        return measure(options.only, options.json)
    with tempfile.TemporaryDirectory() as folder:
        environment = stand_in.build(Path(folder)) | {"GATHERUM_STAND_IN": "1"}
        environment |= {"GATHERUM_CUDA_CACHE": folder, "OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


def measure(only: str, path: str | None) -> int:
    """Print a table of the times of all calls."""
    rows = []
    print("| call | us | goal |\n|---|---:|---:|")
    for call_type, name, call in calls():
        if only in name:
            rows.append({"call": name, "us": best(call), "goal": GOALS[call_type]})
            print(f"| {name} | {rows[-1]['us']:.1f} | {GOALS[call_type]:.0f} |", flush=True)
    if path:
        Path(path).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


def best(call: Callable[[], object]) -> float:
    """Return the best mean time of a call in several loops, in microseconds."""
    for _ in range(10):
        call()
    times = []
    for _ in range(LOOPS):
        begin = time.process_time()
        for _ in range(RUNS):
            call()
        times.append((time.process_time() - begin) / RUNS)
    return 1e6 * min(times)


def calls() -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the kind, the name and the function of each call."""
    import numpy as np
    import torch

    import gatherum as g
    from gatherum.cuda import cub
    from gatherum.torch import torch_scatter

    stand_in.Driver()
    cuda = stand_in.use()
    stand_in.compile_nothing()
    type(cuda.FRAMEWORK).sort = lambda self, pairs, *_: pairs
    cub.sort_with_cub = lambda framework, pairs, *_: pairs
    table = torch.arange(256 * 64).reshape(256, 64)
    index = torch.arange(32) * 7
    arrays = {"float32": table.float(), "int32": table.int()}

    class Array:
        """An array with a protocol."""

        def __init__(self, array: Any) -> None:
            self._interface = array.__array_interface__ | {"stream": None}

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return self._interface

    def of_protocol(tensor: Any) -> Any:
        array = np.asarray(tensor)
        kept.append(array)
        return Array(array)

    yield from compositions(table.float())
    rows = table[:32].float()
    yield (
        "tensor",
        "torch_scatter.scatter, sum, raise",
        lambda: torch_scatter.scatter(rows, index, 0, dim_size=256, reduce="sum"),
    )
    kept: list[Any] = []
    for call_type, convert in (("tensor", lambda tensor: tensor), ("protocol", of_protocol)):
        t = {name: convert(each) for name, each in arrays.items()}
        u = {name: convert(each[:32].clone()) for name, each in arrays.items()}
        i = convert(index)
        for mode in ("clip", "raise"):
            yield (
                call_type,
                f"{call_type}: gather, {mode}",
                lambda t=t, i=i, mode=mode: g.gather(t["float32"], i, mode=mode),
            )
            for label, dtype, fold in (
                ("scatter", "float32", "none"),
                ("int32 add, atomics", "int32", "add"),
                ("float32 add, sort in a block", "float32", "add"),
            ):
                yield (
                    call_type,
                    f"{call_type}: {label}, {mode}",
                    lambda a=t[dtype], i=i, b=u[dtype], fold=fold, mode=mode: g.scatter_slices(
                        a, i, b, reduction=fold, mode=mode
                    ),
                )


def compositions(table: Any) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the calls that sort once: all scatters of a call have the same order."""
    import torch

    import gatherum as g
    from gatherum.groups import transform

    groups = torch.arange(EDGES) % 256
    values, sources = torch.ones(EDGES, 8), groups.flip(0).contiguous()
    run = g.prepare("scatter_slices", table, groups, reduction="add")
    updates = table[groups]
    for name, call in (
        ("prepared float32 add", lambda: run(table, updates)),
        ("aggregate", lambda: g.aggregate(table, sources, groups, 256, "add", mode="clip")),
        ("softmax of groups", lambda: transform(values, groups, "softmax", size=256, mode="clip")),
    ):
        yield "composition", f"{name}, {EDGES} updates", call


if __name__ == "__main__":
    sys.exit(main())
