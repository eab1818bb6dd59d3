"""Fuzz the targets one after the other, guided by coverage, and say what came of it.

    python fuzz/run.py --seconds 60 calls readers

A target fails when anything but its `run` returning comes of an input: the input is kept in
build/fuzz, and the command that repeats it is printed. What is new is kept there too, and the next
run begins with it. Atheris does the mutating: libFuzzer for Python.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build" / "fuzz"
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from targets import TARGETS, target  # noqa: E402

# An input may not take longer than this, nor the process more memory than that.
SECONDS_AN_INPUT = 60
MEBIBYTES = 4096
LONGEST = {"calls": 192, "readers": 1024, "descs": 1024, "models": 512}


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"default: all, {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, at most")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the mutations; 0: another each time"
    )
    parser.add_argument("--replay", action="store_true", help="run the kept inputs, no new ones")
    parser.add_argument("--input", type=Path, help="run one input on one target")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.targets:
        if name not in TARGETS:
            parser.error(f"no such target: {name}; there are {', '.join(TARGETS)}")
    return given


def main() -> int:
    """Fuzz each target in a process of its own; 1 when one of them failed."""
    given = arguments()
    names = given.targets or TARGETS
    if given.input:
        print(target(names[0]).run(given.input.read_bytes()))
        return 0
    if given.replay:
        return replay(names)
    if given.child:
        fuzz(names[0], given)
    failed = [name for name in names if not run_child(name, given)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def replay(names: tuple[str, ...]) -> int:
    """Run the inputs in the repository and those of earlier runs, without any engine."""
    for name in names:
        files = sorted(path for folder in folders(name) for path in folder.iterdir())
        for path in files:
            try:
                target(name).run(path.read_bytes())
            except BaseException:
                print(f"{path} fails:", file=sys.stderr)
                raise
        print(f"{name}: {len(files)} inputs")
    return 0


def folders(name: str) -> list[Path]:
    """Return where a target's inputs lie: those that are new, and those in the repository."""
    own = WORK / name
    own.mkdir(parents=True, exist_ok=True)
    return [own, HERE / "corpus" / name]


def run_child(name: str, given: argparse.Namespace) -> bool:
    """Fuzz a target in a child, and print one line of figures."""
    options = [f"--{option}={getattr(given, option)}" for option in ("seconds", "runs", "seed")]
    command = [sys.executable, __file__, "--child", *options, name]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    stats = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
    covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", done.stderr)
    edges, features, kept = covered[-1] if covered else ("?", "?", "?")
    runs = stats.get("number_of_executed_units", "?")
    print(f"{name}: {runs} inputs, {edges} edges, {features} features, {kept} kept", flush=True)
    if done.returncode == 0:
        return True
    print(done.stderr[-6000:], file=sys.stderr)
    for artifact in re.findall(r"Test unit written to (\S+)", done.stderr):
        print(f"repeat: python fuzz/run.py {name} --input {artifact}", file=sys.stderr)
    return False


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
    atheris.Setup([sys.argv[0], *options, *map(str, own)], lambda data: module.run(data) and None)
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
