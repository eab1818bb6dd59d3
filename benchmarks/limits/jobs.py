"""Compare complete jobs with limit kernels: plain loops with the same accesses and no checks.

python benchmarks/limits/jobs.py [--only sum,max] [--threads 1] [--clock cpu] [--rounds 7]
"""

import ctypes
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from run import compiled  # this also adds the folder of `bench` to sys.path, after this folder

# isort: split
from bench.job_workloads import JOBS
from bench.jobs import Answer, Job
from bench.peers import with_gatherum
from turns import head, parser, timed

# The kernel of a job, by operation and reduction. run.py has the kernels that only move rows.
KERNELS = {
    ("groups", "sum"): 0, ("groups", "mean"): 1, ("groups", "max"): 2, ("counts", "count"): 3,
    ("messages", "sum"): 4, ("maxima", "max"): 5,
    ("bags", "sum"): 6, ("product", "sum"): 6, ("combine", "sum"): 7, ("positions", "argmax"): 8,
}  # fmt: skip
INTEGERS = ("counts", "positions")  # the compared results are computed from these
POINTERS = ("values", "groups", "rows", "indptr", "weights", "out")
NUMBERS = ("count", "size", "width", "ahead", "threads")
# The names of the operands in a job of edges.
NAMES = {"values": "table", "groups": "targets", "rows": "sources"}


class Call(ctypes.Structure):
    """The argument of a limit kernel, as job_kernels.cpp declares it."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in NUMBERS),
    )


def operands_of(job: Job, answer: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of a job by the kernel's names."""
    operands = {
        name: job.operands.get(name, job.operands.get(NAMES.get(name))) for name in POINTERS
    }
    out = np.empty(answer.shape, "i8" if job.op in INTEGERS else answer.dtype)
    return {name: array for name, array in (operands | {"out": out}).items() if array is not None}


def limit_of(
    library: ctypes.CDLL, job: Job, answer: np.ndarray, threads: int
) -> Callable[[], object]:
    """Return the limit kernel of a job, with the best distance and threads found by a search."""
    arrays = operands_of(job, answer)
    width = arrays["out"][0].size
    count = arrays.get("rows", arrays.get("groups")).size
    kernel = KERNELS[job.op, job.func]

    def run(ahead: int, used: int) -> np.ndarray:
        call = Call(**{name: array.ctypes.data for name, array in arrays.items()})
        for name, number in zip(NUMBERS, (count, job.size, width, ahead, used), strict=True):
            setattr(call, name, number)
        library.run_job(ctypes.c_int64(kernel), ctypes.byref(call))
        return arrays["out"]

    times = {}
    for settings in product((0, 8, 16, 32), {1, threads}):
        run(*settings)
        begin = perf_counter()
        run(*settings)
        times[settings] = perf_counter() - begin
    return partial(run, *min(times, key=times.__getitem__))


def main() -> None:
    """Print the medians."""
    options = parser(__doc__)
    options.add_argument("--only", default="")
    options.add_argument("--scale", type=float, default=1.0)
    settings = options.parse_args()
    print(head(settings))
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder, "job_kernels.cpp")
        for workload in JOBS:
            job = workload.make(settings.scale, np.random.default_rng(0))
            wanted = any(part in workload.name for part in settings.only.split(","))
            if not wanted or (job.op, job.func) not in KERNELS:
                continue
            ours = with_gatherum.JOBS[job.op](job)
            result = ours["recycled"]()
            answer = np.asarray(result)
            limit = limit_of(library, job, answer, settings.threads)
            arranged = result.arranged if isinstance(result, Answer) else np.asarray
            np.testing.assert_allclose(arranged(limit()), answer, rtol=2e-2)
            runs = {"limit": limit} | {name: run for name, run in ours.items() if name != "fresh"}
            times = {name: median(spent) for name, spent in timed(runs, settings).items()}
            shown = (f"{name} {spent:.2f}" for name, spent in times.items())
            ratio = times["recycled"] / times["limit"]
            print(f"{workload.name:<18}{ratio:>6.2f} of its limit: {', '.join(shown)}", flush=True)


main()
