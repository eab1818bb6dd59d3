"""The row of a reduction that breaks a rule does not compile, and the error names the rule."""

import os
import re
import shutil
import subprocess

import pytest

from source import ROOT

COMPILER = os.environ.get("CXX", "g++")
CORE = ROOT / "src" / "core"
TABLE = (CORE / "model" / "types.hpp").read_text(encoding="utf-8")
pytestmark = [
    pytest.mark.skipif(
        not COMPILER or shutil.which(COMPILER) is None,
        reason="compiles the table: install a C++ compiler, or name it in CXX",
    ),
    pytest.mark.skipif(os.name == "nt", reason="the command line is that of Unix compilers"),
]


def _errors(folder, reduction, **fields):
    """Compile the table after a change of fields in one row, and return the errors."""
    start = TABLE.index(f"case Reduction::{reduction}:")
    head, row, tail = TABLE[:start], *re.split(r"(?<=\};)", TABLE[start:], maxsplit=1)
    for name, value in fields.items():
        row, count = re.subn(rf"(\.{name} = )[^,}}]*", rf"\g<1>{value}", row)
        assert count == 1, name
    path = folder / "types.cpp"
    path.write_text(head + row + tail, encoding="utf-8")
    command = [COMPILER, "-std=c++20", "-fsyntax-only", f"-I{CORE}", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stderr


@pytest.mark.parametrize(
    ("reduction", "fields", "rule"),
    [
        ("mean", {"any_order": "kReals"}, "any_order contains only types of values"),
        ("fmean", {"widens": "kIntegers"}, "widens contains only types of values"),
        (
            "add",
            {"widens": "kFloats"},
            "only half precision and integers accumulate in a wider type",
        ),
        (
            "max",
            {"values": "kIntegers", "any_order": "kIntegers"},
            "the kernels of gradient are compiled only for types of values",
        ),
        ("mean", {"exact": "true", "skips_nan": "false"}, "exact sums are sums of floats"),
        ("fsum", {"any_order": "kFloats"}, "exact sums do not depend on the order"),
        ("fsum", {"skips_nan": "true"}, "exact sums have no kernels that skip NaN"),
        (
            "add",
            {"fold_neutral": "Neutral::none"},
            "a fold that skips NaN starts from a neutral element",
        ),
        ("mean", {"fold_neutral": "Neutral::zero"}, "a fold that divides has no neutral element"),
        (
            "add",
            {"any_order": "kNoKinds"},
            "with a neutral element, threads fold integers separately",
        ),
    ],
)
def test_the_error_names_the_rule(tmp_path, reduction, fields, rule):
    assert rule in _errors(tmp_path, reduction, **fields)


def test_the_table_compiles(tmp_path):
    assert "error" not in _errors(tmp_path, "add")
