"""Variants of every kernel: each value of each macro, with the commonest values of other macros.

The variants that `run` requests are among the products of these; `test_variants` in test_kernels.py
compares them with the macros that calls use.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

from gatherum._core import Reduction, Value, has_meaning, is_exact
from gatherum._functions.quantized import formats
from gatherum._model import reductions
from gatherum._model.reductions import ROWS
from gatherum.cuda import folds, kernel_tables, movement, small_scatters, sorted_updates
from gatherum.cuda.device import Kernel
from gatherum.cuda.kernels import value_macro
from gatherum.cuda.launch_sizes import CHUNKS_PER_THREAD
from gatherum.cuda.radix_sort import MOST_DIGIT_BITS, PAIRS_PER_THREAD, RADIX_THREADS

__all__ = ["AXES", "EXACT", "FOLDS", "variants"]

Axes: TypeAlias = dict[str, tuple[object, ...]]

OFFSETS: Axes = {"OFFSET_BITS": (32, 64)}
LOOPS: Axes = {**OFFSETS, "LOOPS": (kernel_tables.FEW_LOOPS, kernel_tables.MOST_LOOPS)}
INDICES: Axes = {
    **LOOPS,
    "COMPONENTS": (kernel_tables.FEW_COMPONENTS, kernel_tables.MOST_COMPONENTS),
    "INDEX": ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    "INDEX_ALIGN": (8, 4, 2, 1),
    "INDEX_SWAPPED": (0, 1),
}
WRITING: Axes = {**INDICES, "MODE": ("mode_drop", "mode_clip", "mode_wrap")}
CHECKING: Axes = {**INDICES, "MODE": ("mode_raise",)}
SMALL: Axes = {
    **INDICES,
    "MODE": (*CHECKING["MODE"], *WRITING["MODE"]),
    "SOURCE": (small_scatters.SAME_LAYOUT, small_scatters.IN_PLACE, small_scatters.ONE_ITEM),
    "MOST_TUPLES": (small_scatters.MOST_TUPLES,),
    "SMALL_THREADS": (small_scatters.SMALL_THREADS,),
}
WIDTHS: Axes = {"CHUNK_BYTES": (16, 8, 4, 2, 1), "PER_THREAD": (CHUNKS_PER_THREAD,)}
SORTED: Axes = {**LOOPS, "KEY_BYTES": (4, 8), "PAYLOAD_BYTES": (4, 8)}
VALUES = tuple(value.name for value in Value if value is not Value.none)
BYTES = {"bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
BYTES |= {"complex64": 8, "complex128": 16}
BYTES |= {f"{kind}{bits}": bits // 8 for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
ATOMIC = [row.name for row in ROWS.values() if row.cuda_atomic]

_ALL_FOLDS = [
    (value, reduction)
    for value in VALUES
    for reduction in reductions.FOLDS
    if has_meaning(Value[value], Reduction[reduction])
]
FOLDS = [pair for pair in _ALL_FOLDS if not is_exact(Reduction[pair[1]])]
# Complex numbers are added by their parts.
EXACT = [pair for pair in _ALL_FOLDS if pair not in FOLDS and not pair[0].startswith("complex")]


_FOLD: Axes = {**SORTED, "VALUE_ALIGN": (16, 8, 4, 2, 1)}
_FOLD |= {"CHUNK_ITEMS": (1,), "CARRIED_BYTES": (0,), "ROW_NUMBER_BYTES": (0, 4, 8)}
_EXACT: Axes = {**SORTED, "VALUE_ALIGN": (8, 4, 2, 1), "CARRIED_BYTES": (0, 8)}
_WIDENED: Axes = {**LOOPS, "VALUE": ("value_float16", "value_bfloat16", "value_int8")}
_RADIX: Axes = {"KEY_BYTES": (4,), "PAYLOAD_BYTES": (8, 4)}
_RADIX |= {"THREADS": (RADIX_THREADS,), "PER_THREAD": (PAIRS_PER_THREAD,)}
_RADIX |= {"DIGIT_VALUES": (1 << MOST_DIGIT_BITS,)}
AXES: dict[str, Axes] = {
    "accumulated": {
        **OFFSETS,
        "LOOPS": (kernel_tables.FEW_LOOPS,),
        "VALUE": tuple(map(value_macro, VALUES)),
        "REDUCTION": ("add", "mean"),
    },
    "widen": {**_WIDENED, "REDUCTION": ("mean",), "VALUE_ALIGN": (1, 2)},
    "check": {**CHECKING, "ONE_BLOCK": (0, 1)},
    "dequantize": {
        **CHECKING,
        "CHUNK_ITEMS": (4, 2, 1),
        "MODE": (*CHECKING["MODE"], *WRITING["MODE"]),
        "CODE": tuple(dict.fromkeys(f"code_{code}" for code, _ in formats.CODES.values())),
        "CODE_BITS": formats.BITS[::-1],
        "PACKED": (0, 1),
        "SCALE": tuple(f"scale_{scale}" for scale in formats.SCALES),
        "VALUE": tuple(map(value_macro, formats.RESULTS)),
    },
    "elementary": {
        "VALUE": ("value_float64", "value_float32", "value_float16", "value_bfloat16"),
        "FUNCTION": ("Exp", "Log"),
        **OFFSETS,
        "LOOPS": (kernel_tables.FEW_LOOPS,),
    },
    "first": CHECKING,
    "gather": {**CHECKING, **WIDTHS, "MODE": (*CHECKING["MODE"], *WRITING["MODE"])},
    "pattern": {"PATTERN_BYTES": (movement.PATTERN_BYTES,)},
    "winners": {**WRITING, "WINNER_BYTES": (4, 8)},
    "scatter": {**WRITING, **WIDTHS, "WINNER_BYTES": (4, 8, 0)},
    "keys": {
        **WRITING,
        "KEY_BYTES": (4, 8),
        "PAYLOAD_BYTES": (8, 4),
        "CARRIED_BYTES": (0, 1, 2, 4, 8),
        "VALUE_ALIGN": (8, 4, 2, 1),
    },
    "sorted_keys": {
        **WRITING,
        "KEY_BYTES": (4,),
        "PAYLOAD_BYTES": (8, 4),
        "CARRIED_BYTES": (0, 1, 2, 4, 8),
        "VALUE_ALIGN": (8, 4, 2, 1),
        "MOST_TUPLES": (sorted_updates.MOST_IN_BLOCK,),
        "SORT_THREADS": (sorted_updates.SORT_THREADS,),
    },
    "fold_small": {**SMALL, "VALUE_ALIGN": (16, 8, 4, 2, 1), "CHUNK_ITEMS": (1,)},
    "scatter_small": {**SMALL, "CHUNK_BYTES": WIDTHS["CHUNK_BYTES"]},
    "sort_count": _RADIX,
    "sort_offsets": _RADIX,
    "sort_move": _RADIX,
    "scatter_lines": {
        **WRITING,
        "CHUNK_BYTES": WIDTHS["CHUNK_BYTES"],
        "TABLE_BYTES": (movement.LINE_TABLE_BYTES,),
    },
    "scatter_sorted": {**SORTED, "CHUNK_BYTES": (16, 8, 4, 2, 1)},
    "fold": _FOLD,
    "fold_long": {
        **_FOLD,
        "THREADS": (128, 256),
        "GROUP_THREADS": (128, 32, 256),
        "FOLDING_THREADS": (32,),
    },
    "fold_exact": _EXACT,
    "fold_exact_long": {
        **_EXACT,
        "THREADS": (128,),
        "GROUP_THREADS": (128, 32),
        "FOLDING_THREADS": (8,),
    },
    "fold_atomic": {**WRITING, "VALUE": ("value_int32",), "REDUCTION": ("add",)},
    "fold_table": {
        **WRITING,
        "VALUE": ("value_int32",),
        "REDUCTION": ("add",),
        "TABLE_BYTES": (folds.TABLE_BYTES,),
        "PER_THREAD": (CHUNKS_PER_THREAD,),
    },
}


# The value and the reduction with which the other macros of a kernel take each of their values.
_WIDE_SUM = {"VALUE": "value_complex128", "REDUCTION": "add"}
_EXACT_SUM = {"VALUE": "value_float64", "REDUCTION": "fsum", "PAYLOAD_BYTES": 8}
_COMMON_FOLD: dict[str, dict[str, object]] = {
    "fold": {**_WIDE_SUM},
    "fold_long": {**_WIDE_SUM},
    "fold_small": {**_WIDE_SUM},
    "fold_exact": {**_EXACT_SUM},
    "fold_exact_long": {**_EXACT_SUM},
}


def variants(name: str) -> Iterator[Kernel]:
    """Yield the variants of a kernel."""
    axes = AXES[name]
    common = {macro: values[0] for macro, values in axes.items()}
    for macros in _of_every_value(name, axes):
        yield _kernel(name, common, **macros)
    common |= _COMMON_FOLD.get(name, {})
    yield _kernel(name, common)
    for macro, values in axes.items():
        for value in values[1:] if macro != "THREADS" else ():
            yield _kernel(name, common, **{macro: value})


def _of_every_value(name: str, axes: Axes) -> Iterator[dict[str, object]]:
    """Yield the macros of each value type and each reduction or function of a kernel."""
    if name in ("fold_atomic", "fold_table"):
        for value, reduction in product(folds.ATOMIC_VALUES, ATOMIC):
            yield {"VALUE": value_macro(value), "REDUCTION": reduction}
    elif name.startswith("fold_exact"):
        for (value, reduction), group in product(EXACT, axes.get("GROUP_THREADS", (0,))):
            macros = {"VALUE": value_macro(value), "REDUCTION": reduction}
            yield {**macros, **({"GROUP_THREADS": group} if group else {}),
                   "VALUE_ALIGN": BYTES[value]}  # fmt: skip
    elif name == "fold_small":
        for value, reduction in FOLDS:
            macros = {"VALUE": value_macro(value), "REDUCTION": reduction}
            yield {**macros, "CHUNK_ITEMS": 16 // BYTES[value]}
    elif name.startswith("fold"):
        yield from _of_every_fold(axes)
    elif name == "elementary":
        for value, function in product(axes["VALUE"], axes["FUNCTION"]):
            yield {"VALUE": value, "FUNCTION": function}


def _of_every_fold(axes: Axes) -> Iterator[dict[str, object]]:
    """Yield the macros of each fold of rows, and of single items, by each group of threads."""
    for (value, reduction), group in product(FOLDS, axes.get("GROUP_THREADS", (0,))):
        macros: dict[str, object] = {"VALUE": value_macro(value), "REDUCTION": reduction}
        macros |= {"GROUP_THREADS": group} if group else {}
        size = BYTES[value]
        if group != 128 or size > 8:  # rows
            yield {**macros, "VALUE_ALIGN": 16, "CHUNK_ITEMS": 16 // size}
        if size <= 8 and group != 256:  # single items
            carried = {"PAYLOAD_BYTES": max(size, 4), "CARRIED_BYTES": size}
            yield {**macros, **carried, "VALUE_ALIGN": size}


def _kernel(name: str, common: dict[str, object], **own: object) -> Kernel:
    macros = common | own
    index = str(macros.get("INDEX", "int64"))
    if "INDEX_ALIGN" in macros and "INDEX_ALIGN" not in own:
        macros["INDEX_ALIGN"] = int(index.lstrip("uint")) // 8
    if "GROUP_THREADS" in macros:
        macros["THREADS"] = 256 if macros["GROUP_THREADS"] == 256 else 128
    return Kernel.of(name, **macros)
