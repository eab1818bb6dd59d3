"""Run ONNX test cases on onnx.reference and on ONNX Runtime, and count what each gets wrong.

    gatherum vectors cases --format onnx
    python docs/onnx_cases.py cases [PACKAGE ...]

prints each case that fails, and a table by rule. It needs onnx, and no gatherum. A package that is
not installed is left out. Cases run in another process, which is stopped after 10 seconds.
"""

import argparse
import json
import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from webnn_cases import compared

LIMIT = 10  # seconds for a case
START = 120  # seconds for the import of a package

Run = Callable[[dict[str, Any]], Any]


def reference(model: str) -> Run:
    """Load a model into onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda feeds: evaluator.run(None, feeds)[0]


def runtime(model: str) -> Run:
    """Load a model into ONNX Runtime, on the CPU."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)[0]


LOADS = {"onnx": reference, "onnxruntime": runtime}


def outcome(package: str, folder: str) -> str:
    """Run a case; return "passed", or what came in the place of the answer."""
    import onnx

    model, tensors = f"{folder}/model.onnx", Path(folder, "test_data_set_0")
    names = [one.name for one in onnx.load(model).graph.input]
    feeds = {name: _array(tensors / f"input_{n}.pb") for n, name in enumerate(names)}
    output = tensors / "output_0.pb"
    refused = "passed" if not output.exists() else ""
    try:
        run = LOADS[package](model)
    except Exception as error:  # also where the values must be refused: nothing read them
        return _named(error)
    try:
        found = run(feeds)
    except Exception as error:  # an error is an answer
        return refused or _named(error)
    return f"{found.tolist()}, not an error" if refused else compared(found, _array(output))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _array(path: Path) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


def answers(package: str, pipe: Any) -> None:
    """Answer for folders that come through a pipe."""
    import_module(package)
    warnings.simplefilter("ignore")
    pipe.send("ready")
    while True:
        pipe.send(outcome(package, pipe.recv()))


class Child:
    """A process that runs cases, and a new one after each that hangs or crashes."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.process: Any = None

    def ask(self, folder: str) -> str:
        """Return the outcome of a case, or that none came."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send(folder)
            if self.pipe.poll(LIMIT):
                return str(self.pipe.recv())
            what = f"no answer in {LIMIT} seconds"
        except (EOFError, ConnectionError):
            what = "the process crashed"
        self.stop()
        return what

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=answers, args=(self.package, theirs), daemon=True)
        self.process.start()
        theirs.close()
        if not self.pipe.poll(START):
            raise TimeoutError(f"{self.package} was not imported in {START} seconds")
        self.pipe.recv()

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def table(rows: list[dict[str, Any]], outcomes: dict[str, dict[str, str]]) -> str:
    """Return the counts by rule as a table in Markdown."""
    total = Counter(row["rule"] for row in rows)
    wrong = [
        Counter(row["rule"] for row in rows if found[row["name"]] != "passed")
        for found in outcomes.values()
    ]
    lines = [
        ["rule", "cases", *(f"{name} {import_module(name).__version__}" for name in outcomes)],
        ["---", *["---:"] * (1 + len(wrong))],
        *([f"`{rule}`", *(str(counts[rule]) for counts in (total, *wrong))] for rule in total),
        ["all", *(str(counts.total()) for counts in (total, *wrong))],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Run the cases of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("package", nargs="*", help=" or ".join(LOADS))
    given = parser.parse_args()
    rows = json.loads((given.folder / "cases.json").read_text())
    outcomes: dict[str, dict[str, str]] = {}
    for package in given.package or filter(find_spec, LOADS):
        child, found = Child(package), outcomes.setdefault(package, {})
        for row in rows:
            kind = "errors" if row.get("error") else "cases"
            what = found[row["name"]] = child.ask(str(given.folder / kind / f"test_{row['name']}"))
            if what != "passed":
                print(f"{package}: {row['name']}: {what}", flush=True)
        child.stop()
    print(f"\nCases that fail, by rule\n\n{table(rows, outcomes)}")
    return int(any(what != "passed" for found in outcomes.values() for what in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
