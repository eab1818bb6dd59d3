"""Fuzz the targets one after the other, guided by coverage, and print a summary.

    python fuzz/run.py --seconds 60 calls readers

A target fails when its `run` does not return. The failing input is then kept in build/fuzz, and the
command that repeats it is printed. New inputs are kept in the same folder, and the next run starts
with them. Atheris (libFuzzer for Python) mutates the inputs, which are distributed among the
instruction-set levels of this machine.
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
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "support")]

import corpus  # noqa: E402
import levels  # noqa: E402
from targets import TARGETS, target  # noqa: E402

# Limits on the time of one input and on the memory of the process.
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
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"default: all, {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, at most")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the mutations; 0: another each time"
    )
    parser.add_argument("--levels", help="instruction-set levels, as in v4,portable; default: all")
    parser.add_argument("--replay", action="store_true", help="run the kept inputs, no new ones")
    parser.add_argument("--input", type=Path, help="run one input on one target")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    for name in settings.targets:
        if name not in TARGETS:
            parser.error(f"no such target: {name}; there are {', '.join(TARGETS)}")
    if settings.child:  # the fuzzer must instrument the import
        settings.levels = tuple(settings.levels.split(","))
        return settings
    load_core_counters()
    there = levels.available()
    settings.levels = tuple(settings.levels.split(",")) if settings.levels else there
    for level in settings.levels:
        if level not in there:
            parser.error(f"no such level: {level}; there are {', '.join(there)}")
    return settings


def main() -> int:
    """Fuzz each target in a separate process. Return 1 if one of them failed."""
    settings = arguments()
    names = settings.targets or TARGETS
    if settings.input:
        data = settings.input.read_bytes()
        print(f"on {levels.choose(data, settings.levels)}", flush=True)
        print(target(names[0]).run(data))
        return 0
    if settings.replay:
        return replay(names, settings.levels)
    if settings.child:
        fuzz(names[0], settings)
    failed = [name for name in names if not succeeds(name, settings)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def succeeds(name: str, settings: argparse.Namespace) -> bool:
    """Fuzz a target in a child, print the outcome, and return True if no input failed."""
    line, errors = run_child(name, settings)
    print(line, flush=True)
    print(errors, end="", file=sys.stderr)
    return not errors


def replay(names: tuple[str, ...], on: tuple[str, ...]) -> int:
    """Run the inputs in the repository and those of earlier runs, without a fuzzing engine."""
    for name in names:
        new = {str(path): path.read_bytes() for path in work_folder(name).iterdir()}
        inputs = corpus.read(name) | new
        for kept, data in sorted(inputs.items()):
            level = levels.choose(data, on)
            try:
                target(name).run(data)
            except BaseException:
                print(f"{kept} fails on {level}:", file=sys.stderr)
                raise
        print(f"{name}: {len(inputs)} inputs on {', '.join(on)}")
    return 0


def work_folder(name: str) -> Path:
    """Return the folder of the new inputs that earlier runs found."""
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def unpacked(name: str) -> Path:
    """Unpack the inputs of the repository into a folder for the engine, and return the folder."""
    folder = WORK / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for kept, data in corpus.read(name).items():
        (folder / kept).write_bytes(data)
    return folder


def run_child(name: str, settings: argparse.Namespace) -> tuple[str, str]:
    """Fuzz a target in a child. Return one line of figures, and a description of a failure."""
    options = [f"--{option}={getattr(settings, option)}" for option in ("seconds", "runs", "seed")]
    on = f"--levels={','.join(settings.levels)}"
    command = [sys.executable, __file__, "--child", *options, on, name]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    stats = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
    covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", done.stderr)
    edges, features, kept = covered[-1] if covered else ("?", "?", "?")
    runs = f"{stats.get('number_of_executed_units', '?')} inputs on {', '.join(settings.levels)}"
    line = f"{name}: {runs}, {edges} edges, {features} features, {kept} kept"
    if done.returncode == 0:
        return line, ""
    artifacts = re.findall(r"Test unit written to (\S+)", done.stderr)
    repeat = [f"repeat: python fuzz/run.py {name} {on} --input {path}\n" for path in artifacts]
    return f"{line}, FAILED", f"{done.stderr[-6000:]}\n{''.join(repeat)}"


def fuzz(name: str, settings: argparse.Namespace) -> None:
    """Fuzz a target until its time is over. The engine ends the process."""
    import atheris

    counters = load_core_counters()
    # The oracle is slow enough without instrumentation, and is not under test.
    with atheris.instrument_imports(["gatherum", "targets"], exclude=["gatherum.reference"]):
        module = target(name)
    own = [work_folder(name), unpacked(name)]
    words = WORK / f"{name}.dict"
    words.write_text("".join(f'"{escaped(word)}"\n' for word in module.DICTIONARY))
    options = [
        f"-max_total_time={settings.seconds}",
        f"-runs={settings.runs}",
        f"-max_len={LONGEST[name]}",
        f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={MEBIBYTES}",
        f"-artifact_prefix={WORK}/{name}-",
        "-print_final_stats=1",
        *([f"-seed={settings.seed}"] if settings.seed else []),
        *([f"-dict={words}"] if module.DICTIONARY else []),
    ]
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (2 * MEBIBYTES << 20, 2 * MEBIBYTES << 20))

    def one_input(data: bytes) -> None:
        levels.choose(data, settings.levels)
        module.run(data)

    atheris.Setup([sys.argv[0], *options, *map(str, own)], one_input)
    if counters is not None:
        lend(counters)
    atheris.Fuzz()


def load_core_counters() -> ctypes.CDLL | None:
    """Load the branch counters of an instrumented core, whose symbols the core resolves."""
    path = os.environ.get("GATHERUM_FUZZ_COUNTERS")
    return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) if path else None


def lend(counters: ctypes.CDLL) -> None:
    """Let libFuzzer read the core's counters."""
    engine = find_spec("atheris.core_with_libfuzzer")
    libfuzzer = ctypes.CDLL(str(engine and engine.origin))
    counters.lend(libfuzzer.__sanitizer_cov_8bit_counters_init, libfuzzer.__sanitizer_cov_pcs_init)


def escaped(word: bytes) -> str:
    """Return a word in the syntax of libFuzzer's dictionaries."""
    return "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in word)


if __name__ == "__main__":
    sys.exit(main())
