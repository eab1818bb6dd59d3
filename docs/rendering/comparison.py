"""Render the comparison of libraries from docs/comparison/*.toml and docs/observed.json."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .tables import table

FOLDER = Path(__file__).parents[1]
LIBRARIES = {
    "gatherum": "gatherum",
    "onnx": "ONNX",
    "directml": "DirectML",
    "webnn": "WebNN",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
}
PARTS = {
    "indices": "Index values",
    "shapes": "Shapes and dtypes",
    "reductions": "Duplicates and reductions",
}

Answers = dict[str, Any]


def render(what: str) -> str:
    """Return the ``overview``, the ``details`` of every question, or the tested ``versions``."""
    return {"overview": _overview, "details": _details, "versions": _versions}[what]()


def observed() -> Answers:
    """Return the answers that docs/observed.py stored."""
    kept: Answers = json.loads((FOLDER / "observed.json").read_text())
    return kept


def _questions(part: str) -> list[dict[str, Any]]:
    text = (FOLDER / "comparison" / f"{part}.toml").read_text()
    questions: list[dict[str, Any]] = tomllib.loads(text)["question"]
    return questions


def _overview() -> str:
    rows = [
        [f"[{question['title']}](#{question['id']})"]
        + [question[library]["short"] for library in LIBRARIES]
        for part in PARTS
        for question in _questions(part)
    ]
    return table(("", *LIBRARIES.values()), rows)


def _details() -> str:
    sources = tomllib.loads((FOLDER / "comparison" / "sources.toml").read_text())
    parts = []
    for part, title in PARTS.items():
        parts.append(f"## {title}\n")
        parts += [_question(question, sources) for question in _questions(part)]
    return "\n".join(parts)


def _question(question: dict[str, Any], sources: dict[str, list[str]]) -> str:
    answers = observed()
    rows = []
    for library, name in LIBRARIES.items():
        one = question[library]
        links = ", ".join(
            f"[{sources[key][0]}]({sources[key][1]})" for key in one.get("sources", [])
        )
        says = f"{one['says']} ({links})" if links else one["says"]
        rows.append([name, says, "<br>".join(_answers(answers, library, one.get("ask", [])))])
    head = ("", "documentation", "observed result")
    title = f"({question['id']})=\n### {question['title']}"
    return f"{title}\n\n:::{{container}} answers\n{table(head, rows)}:::\n"


def _answers(answers: Answers, library: str, expressions: list[str]) -> Iterator[str]:
    for expression in expressions:
        text = answers[library]["answers"][expression]
        yield f"`{expression}` → {text.replace('[', chr(92) + '[')}"


def _versions() -> str:
    have: dict[str, str] = {}
    for library in observed().values():
        have |= library["versions"]
    return ", ".join(f"{name} {version}" for name, version in have.items()) + "."
