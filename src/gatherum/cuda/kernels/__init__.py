"""The source of the kernels, each compiled at its first launch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gatherum import _core
from gatherum._core import Mode, Neutral, Reduction, Value
from gatherum._model import reductions

FOLDER = Path(__file__).parent
_MODES = """// Made from the modes of src/core/model/types.hpp by __init__.py of this folder.
#pragma once

namespace gatherum {{

enum Mode {{ {names} }};

}}  // namespace gatherum
"""
_REDUCTIONS = """// Made from the rows of src/core/model/types.hpp by __init__.py of this folder.
#pragma once

namespace gatherum {{

enum class Reduction {{ {names} }};
enum class Neutral {{ {neutral_names} }};

// Those that fold halves in float32, and integers in 64 bits.
template <Reduction R>
inline constexpr bool kWidensHalves = {widens_halves};
template <Reduction R>
inline constexpr bool kWidensIntegers = {widens_integers};
// Those whose result is the sum over the count.
template <Reduction R>
inline constexpr bool kDivides = {divides};
// The neutral element of the sums; its value depends on the type.
template <Reduction R>
inline constexpr Neutral kNeutral = {neutral_elements}Neutral::none;

}}  // namespace gatherum
"""


def sources() -> dict[str, str]:
    """Return the text of every file by name: kernels and headers."""
    files = sorted((*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")))
    texts = {path.name: path.read_text(encoding="ascii") for path in files}
    return texts | {"modes.cuh": _modes(), "reductions.cuh": _reductions()}


def mode_macro(mode: Mode) -> str:
    """Return the name of a mode in kernels."""
    return f"mode_{mode.name}"


def value_macro(value_name: str) -> str:
    """Return the name of a value type in kernels."""
    return f"value_{value_name}"


def _modes() -> str:
    """Return the header with the core's modes."""
    return _MODES.format(names=", ".join(map(mode_macro, Mode)))


def _reductions() -> str:
    """Return the header with the core's properties of each reduction."""

    def among(has: Callable[[Reduction], bool]) -> str:
        tests = [f"R == Reduction::{name}" for name in reductions.FOLDS if has(Reduction[name])]
        return " || ".join(tests) or "false"

    return _REDUCTIONS.format(
        names=", ".join(reductions.FOLDS),
        widens_halves=among(lambda r: _core.sum_type(Value.float16, r) != Value.float16),
        widens_integers=among(lambda r: _core.sum_type(Value.int8, r) != Value.int8),
        divides=among(_core.divides),
        neutral_names=", ".join(neutral.name for neutral in Neutral),
        neutral_elements="".join(
            f"R == Reduction::{fold.name} ? Neutral::{_core.accumulator_neutral(fold).name} : "
            for fold in map(Reduction.__getitem__, reductions.FOLDS)
        ),
    )


def names() -> tuple[str, ...]:
    """Return the names of all kernels."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.cu")))
