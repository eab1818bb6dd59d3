"""Copies of the tree in which mutants are built and tested."""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from mutation.mutants import ROOT, Mutant

__all__ = ["COMPILER", "HOW", "LEVELS", "PARTS", "Tree", "level_for", "tests_for"]

PARTS = ("src", "tests", "fuzz", "examples", "CMakeLists.txt", "pyproject.toml", "README.md")
# Tests that look at what the core and plans do: those that take seconds, and those that do not.
QUICK = (
    "cases", "corner_cases", "errors", "plan", "memory_results", "properties", "fuzz_corpus",
    "kernel_edges", "slab_blocks", "program", "walks", "c_interface", "c_limits", "choices",
)  # fmt: skip
SLOW = (
    "untouched", "bounds", "integer_bins", "accumulator", "groups", "report", "config", "hostile",
    "determinism", "threads", "races", "processes", "peak_memory", "far_offsets", "algorithms",
)  # fmt: skip
# What is likeliest to fail for a file comes first; a file of another room has tests of its own.
FIRST = {
    "accumulate.hpp": ("accumulator_states", "accumulator"),
    "arguments.py": ("errors",),
    "arrays.py": ("arrays",),
    "blocks.hpp": ("walks", "cases", "slab_blocks"),
    "combine.hpp": ("cases", "halves", "groups"),
    "conversions.py": ("errors", "corner_cases"),
    "dtypes.py": ("errors", "plan"),
    "engine.cpp": ("choices", "cases", "hostile", "threads"),
    "halves.hpp": ("halves",),
    "indices.hpp": ("bounds", "cases"),
    "looks.hpp": ("hostile",),
    "lowering.py": ("cases", "choices"),
    "nest.hpp": ("c_limits",),
    "operators.py": ("errors", "cases", "files/test_equality"),
    "hooks.py": ("plan", "errors", "cuda_room/test_cuda_cupy"),
    "plan.py": ("plan", "errors"),
    "programs.py": ("plan", "errors"),
    "pool.cpp": ("threads", "processes"),
    "report.py": ("report", "ranks"),
    "fold_items.hpp": ("prepare",),
    "fold_lists.hpp": ("prepare", "aggregate"),
    "row_lists.cpp": ("groups", "aggregate", "prepare"),
    "row_sums.hpp": ("groups", "aggregate", "prepare"),
    "gradients.cpp": ("c_gradients",),
    "scatter_gradients.hpp": ("c_gradients",),
    "scatter_grouped.hpp": ("groups",),
    "scatter_partition.hpp": ("choices", "algorithms"),
    "scatter_private.hpp": ("integer_bins",),
    "scatter_shares.hpp": ("shares",),
    "scatter_slabs.hpp": ("slab_blocks", "integer_bins"),
    "shapes.py": ("errors", "cases", "overlaps"),
    "signature.py": ("errors", "plan", "check_order"),
    "slabs.hpp": ("slab_blocks", "integer_bins"),
    "memory.cpp": ("memory_results",),
    "calls.cpp": ("plan", "hostile", "errors", "arrays"),
    "arrays.cpp": ("memory_results",),
    "folds.cpp": ("accumulator", "accumulator_states"),
    "programs.cpp": ("program", "plan"),
    "plan_table.cpp": ("views", "plan", "hostile"),
    "plan_table.hpp": ("views", "plan", "cases"),
    "views.cpp": ("views", "plan", "hostile"),
    "released.hpp": ("threads", "processes", "hostile"),
    "runs.cpp": ("views", "plan", "hostile"),
    "view_calls.cpp": ("views",),
    "dtypes.hpp": ("views",),
    "program.cpp": ("program", "c_limits", "choices"),
    "interface.cpp": ("c_limits", "c_interface", "cases"),
    "types.hpp": ("c_limits", "choices"),
    "implementations.cpp": ("choices", "program", "cases", "untouched", "report", "groups"),
    "gather_stretches.cpp": ("choices", "cases"),
    "gather_packed.cpp": ("choices", "cases"),
    "gather_units.cpp": ("choices", "cases"),
    "scatter_units.cpp": ("choices", "cases"),
    "accumulator.cpp": ("accumulator_states", "accumulator"),
    "scatter_groups.cpp": ("choices", "groups"),
    "scatter_partition.cpp": ("choices", "algorithms"),
    "scatter_slabs.cpp": ("choices", "shares", "cases", "slab_blocks"),
    "schedule.hpp": ("choices", "cases", "properties", "threads"),
}
OWN = {
    "accumulator.py": ("accumulator_states", "accumulator"),
    "accumulator_state.py": ("accumulator_states",),
    "row_reads.cpp": ("files/test_row_reads",),
    "file_calls.cpp": ("files/test_row_reads",),
    "entries.cpp": ("entries", "errors"),
    "regular.py": ("regular",),
    "surface.py": ("surface",),
    "scattering.py": ("files/test_equality", "files/test_call"),
    "numbers.py": ("cli_limits",),
    "buffers.py": ("directml/test_buffer_formats", "directml/test_dispatch"),
    "jsontext.py": ("directml/test_json", "directml/test_json_linear"),
    "npy.py": ("files/test_malformed",),
    "inflating.py": ("files/test_special",),
    "bounded.py": ("files/test_special",),
    "journal.py": ("files/test_outputs",),
    "batches.py": ("files/test_stream",),
    "stream.py": ("files/test_stream",),
    "inputs.py": ("files/test_stream",),
    "windows.py": ("files/test_call",),
    "mapping.py": ("onnx_check",),
    "check.py": ("directml/test_check", "directml/test_one_verdict"),
}
# The room of CUDA, whose files have the names of others.
CUDA = ("cuda_room/test_kernels", "cuda_room/test_kernel_folds", "cuda_room/test_kernels_far")
OPTIONS = (
    "-x", "-v", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "mutation.order",
    "--hypothesis-seed=0", "--hypothesis-profile=mutants",
)  # fmt: skip
# What the core of a copy is built for: portable, and also v3 for what only its vectors show. Two
# levels need -O1: what -O0 does not inline, the linker takes from either of them.
LEVELS = ("portable", "v3")
OPTIMISATION = {"": "-O0", "v3": "-O1"}
BY_VECTORS = ("scatter_shares.hpp", "lanes.hpp")
EXAMPLES = "100"
COMPILER = "the compiler"  # is a killer, too
# What a verdict rests on besides files.
HOW = (*OPTIONS, EXAMPLES, *OPTIMISATION.values())
# So many seconds without the end of a test are a hang; the slowest test takes about 20 of them.
PATIENCE = 150


def tests_for(mutant: Mutant, which: str) -> tuple[str, ...]:
    """Return the files of tests for a mutant, the likeliest to fail first: all, quick, slow."""
    name = Path(mutant.file).name
    chosen = {"all": QUICK + SLOW, "quick": QUICK, "slow": SLOW}[which]
    if mutant.equivalent and mutant.old:
        chosen = QUICK  # every one of them runs
    first = FIRST.get(name, ())
    if not mutant.old:
        own = [*FIRST.values(), *OWN.values(), CUDA]
        chosen += tuple(test for tests in own for test in tests)
    elif "32_t" in mutant.new and "32_t" not in mutant.old:
        first += ("far_offsets",)
    if which == "slow":
        first = tuple(test for test in first if test in SLOW)
    chosen = (CUDA if "/cuda/" in mutant.file else OWN.get(name)) or first + chosen
    files = (f"tests/{test}.py" if "/" in test else f"tests/test_{test}.py" for test in chosen)
    return tuple(dict.fromkeys(files))


def level_for(mutant: Mutant) -> str:
    """Return the level that is built besides portable, "" for none."""
    if not mutant.old:
        return mutant.file
    # Portable vectors leave one value at most for the end of a block.
    at_ends = mutant.new.startswith("beyond = ")
    return "v3" if at_ends or Path(mutant.file).name in BY_VECTORS else ""


class Tree:
    """A copy of the tree, with a core built without optimisation."""

    def __init__(self, number: int, compilers: int) -> None:
        self.root = ROOT / "build" / "mutants" / str(number)
        self.compilers = compilers
        self.process: subprocess.Popen[str] | None = None
        for part in PARTS:
            _copy(ROOT / part, self.root / part)

    def run(self, mutant: Mutant, tests: tuple[str, ...], likely: Iterable[str]) -> str | None:
        """Put a mutant into the tree; return what kills it, and leave the source as it was.

        The tests that are `likely` to kill it run before the others.
        """
        if not mutant.old:
            return self._run(tests, level_for(mutant), likely)
        path = self.root / mutant.file
        text = path.read_text()
        self._write(path, mutant.applied(text))
        try:
            return self._run(tests, level_for(mutant), likely)
        finally:
            self._write(path, text)

    def stop(self) -> None:
        """End what runs in the tree."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, 9)

    def _write(self, path: Path, text: str) -> None:
        """Write a source; Python tells bytecode's age by the second."""
        path.write_text(text)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, tests: tuple[str, ...], level: str, likely: Iterable[str]) -> str | None:
        # The core is built with this mutant in it, or at last without the one before.
        if not self._build(level):
            return COMPILER
        names = [f"tests/{test}" for test in likely]
        order = {"likely": names, "seconds": str(self.root.parent / "seconds.json")}
        (self.root / "order.json").write_text(json.dumps(order), encoding="utf-8")
        return self._test(tests)

    def _build(self, level: str) -> bool:
        """Build the core of the copy, for portable and a level; False: it does not compile."""
        core = self.root / f"build{level}"
        settings = [
            f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=None",
            f"-DGATHERUM_LEVELS={level}", f"-DGATHERUM_OPTIMISATION={OPTIMISATION[level]}",
        ]  # fmt: skip
        note = core / "settings"
        if not note.exists() or note.read_text() != repr(settings):
            shutil.rmtree(core, ignore_errors=True)
            subprocess.run(["cmake", "-S", self.root, "-B", core, "-G", "Ninja", *settings],
                           check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            note.write_text(repr(settings))
        command = ["ninja", "-C", str(core), "-j", str(self.compilers)]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            return False
        # Both libraries and the header, side by side as in a wheel.
        command = ["cmake", "--install", core, "--prefix", self.root / "src"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return True

    def _test(self, tests: tuple[str, ...]) -> str | None:
        """Run the tests, and return the one that fails, or what else went wrong."""
        # Bytecode saves half of the time until the first test.
        environment = {"GATHERUM_EXAMPLES": EXAMPLES} | os.environ
        environment |= {
            "PYTHONPATH": os.pathsep.join(["src", "tests"]),
            "PYTHONDONTWRITEBYTECODE": "",
            "GATHERUM_ORDER": "order.json",
        }
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "pytest", *OPTIONS, *tests],
            cwd=self.root, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
        )  # fmt: skip
        self.process = process
        lines = _lines(process)
        if process.returncode == 0:
            return None
        for line in lines:
            if line.startswith(("FAILED ", "ERROR ")):
                return line.split(" ", 1)[1].split(" - ")[0].strip().removeprefix("tests/")
        last = next((line for line in reversed(lines) if line.startswith("tests/")), "").strip()
        last = re.split(" (?:PASSED|FAILED|ERROR|SKIPPED|Fatal)", last)[0]
        what = "the clock" if process.returncode == -9 else f"a crash ({process.returncode})"
        return f"{what} in {last.removeprefix('tests/')}"


def _lines(process: "subprocess.Popen[str]") -> list[str]:
    """Return what a process writes; kill it where that takes too long.

    Seconds are counted one by one: while this process is stopped, as its child may be, none passes.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    assert process.stdout is not None
    output = process.stdout

    def follow() -> None:
        for line in output:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=follow, daemon=True).start()
    found: list[str] = []
    waited = 0
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            waited += 1
            if waited == PATIENCE:
                os.killpg(process.pid, 9)
            continue
        if line is None:
            break
        found.append(line)
        waited = 0
    process.wait()
    return found


def _copy(source: Path, target: Path) -> None:
    """Make a copy of a file or a folder as it is; what has been built there stays."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        # A file that is the same already is not written: what depends on it would be built anew.
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.write_bytes(source.read_bytes())
        return
    kept = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for old in [path for path in target.rglob("*") if path.is_file()]:
        if old.relative_to(target) not in kept:
            old.unlink()
    for name in kept:
        if name.suffix not in (".so", ".pyd", ".pyc"):
            _copy(source / name, target / name)
