"""A value type with arithmetic does not compile if one of its parts in the core is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recipes import copied

COMPILER = os.environ.get("CXX", "g++")
pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the command lines are those of Unix"),
    pytest.mark.skipif(
        not COMPILER or not shutil.which(COMPILER),
        reason="compiles folds: install a C++ compiler, or name it in CXX",
    ),
]
# The parts of a third type of half precision: the file, a text, and the text that replaces it.
PARTS = {
    "enumerator": ("model/types.hpp", "  complex128,\n};", "  complex128,\n  half3,\n};"),
    "last enumerator": (
        "model/types.hpp", "&ValueRow::value, Value::complex128", "&ValueRow::value, Value::half3",
    ),
    "row": (
        "model/types.hpp", "16, kComplexes},\n",
        '16, kComplexes},\n    {Value::half3, "half3", 2, kHalves},\n',
    ),
    "type": (
        "fold/halves.hpp", "struct Bfloat16 {",
        "struct Half3 {\n  using Stored = uint16_t;\n};\nstruct Bfloat16 {",
    ),
    "half type": (
        "fold/halves.hpp", "std::is_same_v<V, Half> ||",
        "std::is_same_v<V, Half> || std::is_same_v<V, Half3> ||",
    ),
    "conversion of words": (
        "fold/halves.hpp", "static_assert(std::is_same_v<V, Half>,",
        "static_assert(std::is_same_v<V, Half> || std::is_same_v<V, Half3>,",
    ),
    "format": (
        "fold/formats.hpp", "struct BinaryFormatOf;\n",
        "struct BinaryFormatOf;\ntemplate <>\n"
        "struct BinaryFormatOf<Half3> : BinaryFormat<9, 7> {};\n",
    ),
    "C++ type": ("fold/combine.hpp", "Complex<double>>;", "Complex<double>, Half3>;"),
    "conversion to float": (
        "fold/combine.hpp", "      return static_cast<Sum>(v);\n",
        "      return static_cast<Sum>(v);\n"
        "    else if constexpr (std::is_same_v<V, Half3>)\n      return float(v);\n",
    ),
    "conversion from float": (
        "fold/combine.hpp", "      return static_cast<Stored>(v);\n",
        "      return static_cast<Stored>(v);\n"
        "    else if constexpr (std::is_same_v<V, Half3>)\n      return uint16_t(v);\n",
    ),
}  # fmt: skip
DIFFERS = "a type of ValueTypes differs from its row of kValues"
MESSAGES = {
    "last enumerator": "static assertion failed",
    "row": DIFFERS,
    "half type": DIFFERS,
    "conversion of words": "widen_halves: no conversion of this half type",
    "format": "BinaryFormatOf",
    "C++ type": DIFFERS,
    "conversion to float": "Arithmetic::widen: no conversion of a half type",
    "conversion from float": "Arithmetic::narrow: no conversion of a half type",
}
PROGRAM = """
#define GATHERUM_LEVEL level_portable
#include "fold/combine.hpp"
using namespace gatherum;
using namespace gatherum::level_portable;
using Add = Fold<Half3, Reduction::add>;
using Max = Fold<Half3, Reduction::max>;
int main(int count, char**) {
  const auto a = static_cast<uint16_t>(widen_halves<Half3, float>(static_cast<uint32_t>(count)));
  const uint16_t sum = Add::finish<Branched>(Add::fold(Add::widen<Branched>(a), 1.0f), 1, true);
  return sum + Max::fold(sum, a);
}
"""


def compiled(folder: Path, without: str | None) -> subprocess.CompletedProcess[str]:
    """Compile a program that folds values of the third type, without one of its parts."""
    copied(folder, "src/core")
    core = folder / "src" / "core"
    for name, (path, old, new) in PARTS.items():
        text = (core / path).read_text("utf-8")
        assert text.count(old) == 1, old
        if name != without:
            (core / path).write_text(text.replace(old, new), "utf-8")
    (folder / "folds.cpp").write_text(PROGRAM)
    command = [COMPILER, "-std=c++20", f"-I{core}", "-fsyntax-only", "folds.cpp"]
    english = os.environ | {"LC_ALL": "C"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=english
    )


def test_a_type_with_all_parts_compiles(tmp_path: Path) -> None:
    done = compiled(tmp_path, None)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("part", MESSAGES)
def test_a_missing_part_does_not_compile(part: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, part)
    assert done.returncode != 0
    assert MESSAGES[part] in done.stderr
