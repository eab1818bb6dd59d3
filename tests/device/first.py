"""Run the checks that need a GPU within a few minutes, the most informative first.

    nox -s device                                     # here: makes build/device, prints its path
    python3 tests/device/first.py build/device OUT    # there: on a machine with a GPU

The script needs no network: the kit of `pack.py` contains the packages that the machine lacks. Each
step has a time limit and prints one line: ok, or the failure. A failed step does not end the run.
OUT receives ``report.md`` (the table), ``log.txt`` (all output of the steps) and the times as JSON.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).parents[2]
CALLS = "tests/device/first_calls.py"
GPU_TESTS = "tests/frameworks/cuda/test_cuda_gpu.py"
# Warnings of that machine's packages are not errors of this package.
PYTEST = ("-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", "--tb=short", GPU_TESTS)
# `cuda.bindings` queries functions that the driver may lack, which is not an error of a kernel.
SANITIZER = ("compute-sanitizer", "--report-api-errors", "no", "--error-exitcode", "9", "--tool")
TOOLKIT = "/usr/local/cuda/bin"  # location of compute-sanitizer if it is not on the path
# Seconds that are reserved for the end of the whole run.
RESERVE = 5


class Step(NamedTuple):
    """A command, its time limit in seconds, and its additional environment variables."""

    name: str
    limit: int
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


class Outcome(NamedTuple):
    """The outcome of a step; an empty `problem` means ok."""

    step: Step
    seconds: float
    problem: str
    last: str


def steps(python: tuple[str, ...], out: Path, scale: float) -> list[Step]:
    """Return the steps, the most informative first."""
    waits = (("CUDA_LAUNCH_BLOCKING", "1"),)
    few = (("GATHERUM_EXAMPLES", "10"),)
    later = "far or inductor"
    others = f"not ({later} or cases or every_shape)"
    bench, constants = "benchmarks/cuda_bench.py", "benchmarks/cuda_constants.py"
    curve = "benchmarks/limits/curve.py", "--only", "rows,add"

    def times(file: str, factor: int) -> tuple[str, ...]:
        return "--rounds", "7", "--scale", str(factor * scale), "--json", str(out / file)

    small = "--rounds", "21", "--calls", str(max(1, round(500 * scale)))
    small = *small, "--json", str(out / "small.json")
    memory = (("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),)
    return [
        Step("versions", 60, (*python, "tests/device/versions.py")),
        Step("first calls", 90, (*python, CALLS), waits),
        Step("cases", 90, (*python, *PYTEST, "-k", "cases")),
        Step("properties", 90, (*python, *PYTEST, "-k", "every_shape"), few),
        Step("host times", 60, (*python, "benchmarks/cuda_small.py", *small)),
        Step("device times", 100, (*python, bench, *times("bench.json", 1))),
        Step("surface", 90, (*python, "tests/device/surface.py"), memory),
        Step("training", 60, (*python, "tests/device/training.py")),
        Step("protocols, CUB, streams, graphs", 90, (*python, *PYTEST, "-k", others)),
        Step("memcheck", 100, (*SANITIZER, "memcheck", *python, CALLS)),
        Step("racecheck", 100, (*SANITIZER, "racecheck", *python, CALLS)),
        Step("verify", 90, (*python, "-m", "gatherum", "verify", "--device", "cuda")),
        Step("far offsets, inductor", 90, (*python, *PYTEST, "-k", later)),
        Step("device times, 10 times as large", 120, (*python, bench, *times("large.json", 10))),
        Step("constants", 90, (*python, constants, *times("constants.json", 1))),
        Step("threads of the processor", 60, (*python, *curve, *times("curve.json", 1))),
    ]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kit", type=Path, help="the folder that `nox -s device` made")
    parser.add_argument("out", type=Path, help="the folder for the report and the logs")
    parser.add_argument("--minutes", type=float, default=9.0, help="of the whole run")
    parser.add_argument("--only", nargs="+", metavar="STEP", help="the names of steps to run")
    parser.add_argument("--python", default=sys.executable, help="the command that runs Python")
    parser.add_argument("--scale", type=float, default=0.1, help="of the first benchmark")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes - RESERVE
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        variables = installed(options.kit, Path(folder))
        outcomes = []
        for step in chosen(steps(tuple(shlex.split(options.python)), out, options.scale), options):
            outcomes.append(run(step, deadline - time.monotonic(), variables, out / "log.txt"))
            print(line(outcomes[-1]), flush=True)
            (out / "report.md").write_text(report(outcomes), encoding="utf-8")
    return int(any(outcome.problem for outcome in outcomes))


def chosen(every: list[Step], options: argparse.Namespace) -> list[Step]:
    """Return the steps that `--only` names, or all of them. The first one always runs."""
    if unknown := set(options.only or ()) - {step.name for step in every}:
        sys.exit(f"first: no step is named {', '.join(sorted(unknown))}")
    first, *others = every
    return [first, *(step for step in others if not options.only or step.name in options.only)]


def installed(kit: Path, folder: Path) -> dict[str, str]:
    """Unpack the kit into a folder. Return the environment variables with which Python finds it."""
    site, cache = folder / "site", folder / "kernels"
    wheels = sorted(map(str, kit.glob("*.whl")))
    pip = "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(site)
    if wheels:
        subprocess.run([sys.executable, *pip, *wheels], check=True)
    with tarfile.open(kit / "kernels.tar.xz") as kernels:
        kernels.extractall(cache, filter="data")
    search_path = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(site), *([search_path] if search_path else [])])
    return {
        "PYTHONPATH": path,
        "GATHERUM_CUDA_CACHE": str(cache),
        "PYTHONUNBUFFERED": "1",
        "PATH": os.pathsep.join([os.environ["PATH"], TOOLKIT]),
        # Plugins of other packages may fail on that machine, and none is needed.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def run(step: Step, left: float, variables: dict[str, str], log: Path) -> Outcome:
    """Run a step within its time limit, and append its output to the log."""
    if left <= 1:
        return Outcome(step, 0.0, "not run: no time is left", "")
    with log.open("a+b") as output:
        output.write(f"\n===== {step.name}: {shlex.join(step.command)}\n".encode())
        output.flush()
        begin, start = time.monotonic(), output.tell()
        problem = status(step, min(step.limit, left), variables, output)
        output.seek(start)
        printed = output.read().decode(errors="replace").strip().splitlines()
    return Outcome(step, time.monotonic() - begin, problem, printed[-1] if printed else "")


def status(step: Step, limit: float, variables: dict[str, str], output: object) -> str:
    """Run a step. Return a description of its failure, or an empty string."""
    environment = os.environ | variables | dict(step.variables)
    try:
        process = subprocess.Popen(
            step.command, cwd=TREE, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # type: ignore[call-overload]  # fmt: skip
    except OSError as why:
        return str(why)
    try:
        ended = process.wait(limit)
    except subprocess.TimeoutExpired:
        return f"stopped after {limit:.0f} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the processes of the step, too
        process.wait()
    return f"ended with status {ended}" if ended else ""


def line(outcome: Outcome) -> str:
    """Return the line that is printed for a step."""
    words = f"{outcome.problem}: {outcome.last}" if outcome.problem else "ok"
    return f"{outcome.step.name:<32} {outcome.seconds:6.1f} s  {words}"


def report(outcomes: list[Outcome]) -> str:
    """Return the table in the format of docs/cuda-devices.md. The first step names the card."""
    card, today = outcomes[0].last, datetime.datetime.now(datetime.UTC).date()
    rows = [
        f"| {card} | {step.name} | {today} | {seconds:.0f} s | {problem or 'ok'} "
        f"| {last.replace('|', '/')[:160]} |"
        for step, seconds, problem, last in outcomes
    ]
    head = ["| card | step | when | took | result | last line |", "|---|---|---|--:|---|---|"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    sys.exit(main())
