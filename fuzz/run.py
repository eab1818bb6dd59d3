"""Fuzz the targets one after the other, guided by coverage, and say what came of it.

    python fuzz/run.py --seconds 60 calls readers

A target fails when anything but its `run` returning comes of an input: the input is kept in
build/fuzz, and the command that repeats it is printed. What is new is kept there too, and the next
run begins with it. Atheris does the mutating: libFuzzer for Python. The inputs are shared out among
the instruction-set levels of this machine.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build" / "fuzz"
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

import levels  # noqa: E402
from records import Run  # noqa: E402
from targets import TARGETS, target  # noqa: E402

# An input may not take longer than this, nor the process more memory than that.
SECONDS_AN_INPUT = 60
MEBIBYTES = 4096
LONGEST = {
    "calls": 192,
    "readers": 1024,
    "stores": 128,
    "descs": 1024,
    "dispatch": 256,
    "models": 512,
}


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"default: all, {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, at most")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the mutations; 0: another each time"
    )
    parser.add_argument("--levels", help="instruction-set levels, as in v4,portable; default: all")
    parser.add_argument(
        "--record", action="store_true", help="write the last lines to tests/records.toml"
    )
    parser.add_argument("--replay", action="store_true", help="run the kept inputs, no new ones")
    parser.add_argument("--input", type=Path, help="run one input on one target")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.targets:
        if name not in TARGETS:
            parser.error(f"no such target: {name}; there are {', '.join(TARGETS)}")
    if given.record and (given.runs >= 0 or given.replay or given.input):
        parser.error("--record is for runs that end when their time is over")
    if given.child:  # what fuzzes must see the import of the package
        given.levels = tuple(given.levels.split(","))
        return given
    load_core_counters()
    there = levels.available()
    given.levels = tuple(given.levels.split(",")) if given.levels else there
    for level in given.levels:
        if level not in there:
            parser.error(f"no such level: {level}; there are {', '.join(there)}")
    return given


def main() -> int:
    """Fuzz each target in a process of its own; 1 when one of them failed."""
    given = arguments()
    names = given.targets or TARGETS
    if given.input:
        data = given.input.read_bytes()
        print(f"on {levels.choose(data, given.levels)}", flush=True)
        print(target(names[0]).run(data))
        return 0
    if given.replay:
        return replay(names, given.levels)
    if given.child:
        fuzz(names[0], given)
    failed = [name for name in names if not recorded(name, given)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def recorded(name: str, given: argparse.Namespace) -> bool:
    """Fuzz a target in a child, say what came of it, and record that if it was asked for."""
    core = "--core " if "GATHERUM_FUZZ_COUNTERS" in os.environ else ""
    command = f"nox -s fuzz -- {core}{shlex.join(sys.argv[1:])}"
    run = Run(f"fuzz-{name}", command) if given.record else None
    line, errors = run_child(name, given)
    print(line, flush=True)
    print(errors, end="", file=sys.stderr)
    if run is not None:
        run.ended(line, given.levels)
    return not errors


def replay(names: tuple[str, ...], on: tuple[str, ...]) -> int:
    """Run the inputs in the repository and those of earlier runs, without any engine."""
    for name in names:
        files = sorted(path for folder in folders(name) for path in folder.iterdir())
        for path in files:
            data = path.read_bytes()
            level = levels.choose(data, on)
            try:
                target(name).run(data)
            except BaseException:
                print(f"{path} fails on {level}:", file=sys.stderr)
                raise
        print(f"{name}: {len(files)} inputs on {', '.join(on)}")
    return 0


def folders(name: str) -> list[Path]:
    """Return where a target's inputs lie: those that are new, and those in the repository."""
    own = WORK / name
    own.mkdir(parents=True, exist_ok=True)
    return [own, HERE / "corpus" / name]


def run_child(name: str, given: argparse.Namespace) -> tuple[str, str]:
    """Fuzz a target in a child; return one line of figures, and what is to be said of a failure."""
    options = [f"--{option}={getattr(given, option)}" for option in ("seconds", "runs", "seed")]
    on = f"--levels={','.join(given.levels)}"
    command = [sys.executable, __file__, "--child", *options, on, name]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    stats = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
    covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", done.stderr)
    edges, features, kept = covered[-1] if covered else ("?", "?", "?")
    runs = f"{stats.get('number_of_executed_units', '?')} inputs on {', '.join(given.levels)}"
    line = f"{name}: {runs}, {edges} edges, {features} features, {kept} kept"
    if done.returncode == 0:
        return line, ""
    artifacts = re.findall(r"Test unit written to (\S+)", done.stderr)
    repeat = [f"repeat: python fuzz/run.py {name} {on} --input {path}\n" for path in artifacts]
    return f"{line}, FAILED", f"{done.stderr[-6000:]}\n{''.join(repeat)}"


def fuzz(name: str, given: argparse.Namespace) -> None:
    """Fuzz a target until its time is over; the engine ends the process."""
    import atheris

    counters = load_core_counters()
    # The oracle is slow enough as it is, and what it does is not in question.
    with atheris.instrument_imports(["gatherum", "targets"], exclude=["gatherum.reference"]):
        module = target(name)
    own = folders(name)
    words = WORK / f"{name}.dict"
    words.write_text("".join(f'"{escaped(word)}"\n' for word in module.DICTIONARY))
    options = [
        f"-max_total_time={given.seconds}",
        f"-runs={given.runs}",
        f"-max_len={LONGEST[name]}",
        f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={MEBIBYTES}",
        f"-artifact_prefix={WORK}/{name}-",
        "-print_final_stats=1",
        *([f"-seed={given.seed}"] if given.seed else []),
        *([f"-dict={words}"] if module.DICTIONARY else []),
    ]
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (2 * MEBIBYTES << 20, 2 * MEBIBYTES << 20))

    def one_input(data: bytes) -> None:
        levels.choose(data, given.levels)
        module.run(data)

    atheris.Setup([sys.argv[0], *options, *map(str, own)], one_input)
    if counters is not None:
        lend(counters)
    atheris.Fuzz()


def load_core_counters() -> ctypes.CDLL | None:
    """Load what counts the branches of a core built for it; its name must be there for the core."""
    path = os.environ.get("GATHERUM_FUZZ_COUNTERS")
    return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) if path else None


def lend(counters: ctypes.CDLL) -> None:
    """Let libFuzzer look at the core's counters."""
    engine = find_spec("atheris.core_with_libfuzzer")
    libfuzzer = ctypes.CDLL(str(engine and engine.origin))
    counters.lend(libfuzzer.__sanitizer_cov_8bit_counters_init, libfuzzer.__sanitizer_cov_pcs_init)


def escaped(word: bytes) -> str:
    """Return a word as libFuzzer's dictionaries write it."""
    return "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in word)


if __name__ == "__main__":
    sys.exit(main())
