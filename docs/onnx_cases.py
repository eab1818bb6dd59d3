"""Run ONNX test cases on onnx.reference and on ONNX Runtime, and count their failures.

    gatherum vectors cases --format onnx
    python docs/onnx_cases.py cases [PACKAGE ...]

prints each case that fails, and a table by rule. It needs onnx, and no gatherum. A package that is
not installed is skipped. Cases run in another process, which is stopped after 10 seconds.

    python docs/onnx_cases.py --write    create the cases, and store the failures in
                                         docs/onnx_cases.json, which the page shows; failures of
                                         packages that are not installed are kept
    python docs/onnx_cases.py --check    compare the failures with docs/onnx_cases.json

Failures may differ if the version of the package differs from the kept one.
"""

import argparse
import json
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from webnn_cases import compared

KEPT = Path(__file__).with_suffix(".json")
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


def outcome(package: str, folder: str, row: dict[str, Any]) -> str:
    """Run a case of a folder; return "passed", or the wrong answer or error.

    The row is the case's record in the index of the folder.
    """
    import onnx

    model = Path(folder, row["model"])
    names = [one.name for one in onnx.load(model).graph.input]
    arrays = [_array(Path(folder, path)) for path in row["inputs"]]
    feeds = dict(zip(names, arrays, strict=True))
    refused = "" if "output" in row else "passed"
    try:
        run = LOADS[package](str(model))
    except Exception as error:  # also if the values must raise, as they were not read
        return _named(error)
    try:
        result = run(feeds)
    except Exception as error:  # an error is an answer
        return refused or _named(error)
    if refused:
        return f"{result.tolist()}, not an error"
    return compared(result, _array(Path(folder, row["output"])))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _array(path: Path) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


def answers(package: str, pipe: Any) -> None:
    """Run cases whose folders and records are read from a pipe."""
    import_module(package)
    warnings.simplefilter("ignore")
    pipe.send("ready")
    while True:
        pipe.send(outcome(package, *pipe.recv()))


class Child:
    """A process that runs cases. It is replaced after a case that hangs or crashes."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.process: Any = None

    def ask(self, folder: str, row: dict[str, Any]) -> str:
        """Return the outcome of a case, or the reason why it has none."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send((folder, row))
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
        Counter(row["rule"] for row in rows if results[row["name"]] != "passed")
        for results in outcomes.values()
    ]
    lines = [
        ["rule", "cases", *(f"{name} {import_module(name).__version__}" for name in outcomes)],
        ["---", *["---:"] * (1 + len(wrong))],
        *([f"`{rule}`", *(str(counts[rule]) for counts in (total, *wrong))] for rule in total),
        ["all", *(str(counts.total()) for counts in (total, *wrong))],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ask(folder: Path, rows: list[dict[str, Any]], package: str) -> dict[str, str]:
    """Return the outcome of each case of a folder, by its name."""
    child = Child(package)
    try:
        return {row["name"]: child.ask(str(folder), row) for row in rows}
    finally:
        child.stop()


def run(folder: Path, packages: list[str]) -> int:
    """Run the cases of a folder, and print the failures."""
    rows = json.loads((folder / "cases.json").read_text())
    outcomes: dict[str, dict[str, str]] = {}
    for package in packages or filter(find_spec, LOADS):
        outcomes[package] = ask(folder, rows, package)
        for name, what in outcomes[package].items():
            if what != "passed":
                print(f"{package}: {name}: {what}", flush=True)
    print(f"\nCases that fail, by rule\n\n{table(rows, outcomes)}")
    return int(any(what != "passed" for results in outcomes.values() for what in results.values()))


def observe() -> dict[str, Any]:
    """Make the cases, and run them on the installed packages. Return the failures."""
    from gatherum.conformance import vectors, write

    cases = Counter(case.rule for case in vectors("onnx"))
    observed: dict[str, Any] = {"cases": dict(cases), "packages": {}}
    packages = [package for package in LOADS if find_spec(package)]
    if not find_spec("onnx"):  # it writes the models
        return observed
    with TemporaryDirectory() as name:
        write(name, "onnx")
        rows = json.loads(Path(name, "cases.json").read_text())
        rules = {row["name"]: row["rule"] for row in rows}
        for package in packages:
            failed = {
                case: rules[case]
                for case, what in ask(Path(name), rows, package).items()
                if what != "passed"
            }
            observed["packages"][package] = {"version": metadata.version(package), "fails": failed}
    return observed


def differences(kept: dict[str, Any], observed: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield each difference, and whether it is an error."""
    if kept["cases"] != observed["cases"]:
        yield True, f"the cases are {observed['cases']}, not {kept['cases']}; run with --write"
    for package, now in observed["packages"].items():
        was = kept["packages"].get(package, {"version": "", "fails": {}})
        for name in sorted({*now["fails"]} ^ {*was["fails"]}):
            what = "fails" if name in now["fails"] else "passes"
            same = now["version"] == was["version"]
            yield same or not was["version"], f"{package} {now['version']}: {name} {what}"


def check() -> int:
    """Compare the failures of the packages with the kept failures."""
    observed = observe()
    changes = list(differences(json.loads(KEPT.read_text()), observed))
    for wrong, line in changes:
        print(line if wrong else f"{line} (another version)", file=sys.stderr)
    asked = ", ".join(observed["packages"]) or "no package"
    print(f"{sum(observed['cases'].values())} cases of {asked} compared with {KEPT.name}")
    return int(any(wrong for wrong, _ in changes))


def keep() -> int:
    """Write the failures of the packages."""
    observed = observe()
    packages = json.loads(KEPT.read_text())["packages"] if KEPT.exists() else {}
    observed["packages"] = packages | observed["packages"]
    KEPT.write_text(json.dumps(observed, indent=1) + "\n")
    return 0


def main() -> int:
    """Run the cases of a folder, or write or compare the kept failures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("package", nargs="*", help=" or ".join(LOADS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.write:
        return keep()
    if options.check:
        return check()
    if options.folder is None:
        parser.error("a folder, --write or --check is needed")
    return run(options.folder, options.package)


if __name__ == "__main__":
    raise SystemExit(main())
