"""Evaluate the expressions of the comparison and of the operator pages in their libraries.

    python docs/observed.py            print the answers of the installed libraries
    python docs/observed.py --write    keep it in docs/observed.json, which the pages show; the
                                       answers of libraries that are not installed stay there
    python docs/observed.py --check    compare it with docs/observed.json

The expressions are in docs/comparison/*.toml (`ask`) and docs/operators/*.toml (pairs that must
have the same bits). An answer may differ if the version of the library differs from the kept one.
"""

import argparse
import json
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from libraries import NEEDED, Names, names, versions

FOLDER = Path(__file__).parent
KEPT = FOLDER / "observed.json"
# The arrays that the expressions of the comparison use.
ARRAYS: Names = {
    "a": np.array([10, 20, 30], np.float32),
    "m": np.arange(12, dtype=np.float32).reshape(4, 3),
    "half": np.zeros(1, np.float16),
    "ones": np.ones(4096, np.float16),
    "zeros": np.zeros(4096, np.int64),
}
SAME, DIFFERENT = "the same", "different"


def asked() -> Iterator[tuple[str, str, Names]]:
    """Yield each library, expression and the arrays that it uses."""
    for file in sorted((FOLDER / "comparison").glob("*.toml")):
        for question in tomllib.loads(file.read_text()).get("question", []):
            for library in NEEDED:
                for expression in question.get(library, {}).get("ask", []):
                    yield library, expression, ARRAYS
    for file in sorted((FOLDER / "operators").glob("*.toml")):
        page = tomllib.loads(file.read_text())
        arrays: Names = {"np": np}
        exec(page["arrays"], arrays)
        arrays = {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}
        for row in page["counterpart"]:
            if row["library"] == "webnn" and "run" not in row:
                continue  # JavaScript
            if row["library"] in NEEDED and "ours" in row:
                yield row["library"], pair(row), arrays


def pair(row: dict[str, str]) -> str:
    """Return the expression that compares a counterpart with gatherum's function."""
    return f"{row.get('run', row['theirs'])} == {row['ours']}"


def answer(library: str, expression: str, arrays: Names) -> str:
    """Evaluate an expression with the names of a library, and return the answer as text."""
    theirs, _, ours = expression.partition(" == ")
    try:
        result = np.asarray(eval(theirs, names(library, arrays)))
    except Exception as error:  # an error is an answer
        return type(error).__name__
    if not ours:
        return str(result.tolist())
    expected = np.asarray(eval(ours, names("gatherum", arrays)))
    alike = (result.dtype, result.shape) == (expected.dtype, expected.shape)
    return SAME if alike and result.tobytes() == expected.tobytes() else DIFFERENT


def observe() -> dict[str, Any]:
    """Evaluate all expressions in the installed libraries."""
    observed: dict[str, Any] = {}
    for library, expression, arrays in asked():
        if (have := versions(library)) is None:
            continue
        record = observed.setdefault(library, {"versions": have, "answers": {}})
        record["answers"][expression] = answer(library, expression, arrays)
    return observed


def differences(kept: dict[str, Any], observed: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield each difference, and whether it is an error."""
    for library, expression, _ in asked():
        before = kept.get(library, {"answers": {}})
        if expression not in before["answers"]:
            yield True, f"{library}: {expression}: no answer is kept; run with --write"
        elif library in observed:
            now, was = observed[library]["answers"][expression], before["answers"][expression]
            if now != was:
                same = observed[library]["versions"] == before["versions"]
                yield (
                    same or library == "gatherum",
                    f"{library}: {expression}: gives {now}, not {was}",
                )


def main() -> int:
    """Print, store or compare the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    observed = observe()
    if options.write:
        kept = json.loads(KEPT.read_text()) | observed
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        return 0
    if options.check:
        changes = list(differences(json.loads(KEPT.read_text()), observed))
        for wrong, line in changes:
            print(line if wrong else f"{line} (another version)", file=sys.stderr)
        answers = sum(len(library["answers"]) for library in observed.values())
        print(f"{answers} answers of {', '.join(observed)} compared with {KEPT.name}")
        return int(any(wrong for wrong, _ in changes))
    for library, record in observed.items():
        print(library, *(f"{name} {version}" for name, version in record["versions"].items()))
        for expression, text in record["answers"].items():
            print(f"    {expression}  ->  {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
