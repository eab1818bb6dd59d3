"""List torch's operators that gatherum replaces, with their replacements.

The name of a row is the name of torch's operator. `forms` has the overloads with kernels: a form
that returns a new tensor, a form that changes its first operand, and a form that writes to `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gatherum._model.reductions import ALIASES
from gatherum._system.native import OverrideForm

from . import elements, embeddings, indexed, segments

DENSE, SPARSE = ("CPU", "CUDA"), ("SparseCPU", "SparseCUDA")


class CoreForm(NamedTuple):
    """The form in which the core runs plain calls, and its reductions.

    The keys of `reductions` are the operator's words. The key is an empty string if the operator
    has one reduction; an operator with the argument ``accumulate`` has no keys.
    """

    operands: OverrideForm
    reductions: dict[str, str]


class Row(NamedTuple):
    """A function, and the names of the operators that it replaces."""

    run: Callable[..., Any]
    new: str = ""
    in_place: str = ""
    out: str = ""
    keys: tuple[str, str] = DENSE
    core: CoreForm | None = None


def _forms(
    run: Callable[..., Any], name: str, overload: str = "", out: str = "out",
    core: CoreForm | None = None,
) -> Row:  # fmt: skip
    """Return the row of an operator with three forms: new result, in place, and ``out``."""
    dotted = f".{overload}" if overload else ""
    return Row(run, f"{name}{dotted}", f"{name}_{dotted}", f"{name}.{out}", core=core)


def _slices(reduction: str) -> CoreForm:
    return CoreForm(OverrideForm.slices, {"": reduction})


def _elements(reduction: str) -> CoreForm:
    return CoreForm(OverrideForm.elements, {"": reduction})


def _by_word(operands: OverrideForm, words: Iterable[str]) -> CoreForm:
    return CoreForm(operands, {word: ALIASES.get(word, word) for word in words})


_BAGS = CoreForm(OverrideForm.bags, {})

ROWS = (
    _forms(indexed.index_add, "index_add", core=_slices("add")),
    _forms(indexed.index_copy, "index_copy", core=_slices("none")),
    _forms(
        indexed.index_reduce, "index_reduce", core=_by_word(OverrideForm.slices, indexed.WORDS)
    ),
    _forms(elements.scatter, "scatter", "src", "src_out", _elements("none")),
    _forms(
        elements.scatter, "scatter", "reduce", "reduce_out",
        _by_word(OverrideForm.elements, elements.SCATTER_WORDS),
    ),
    _forms(elements.scatter_value, "scatter", "value_reduce", "value_reduce_out"),
    _forms(elements.scatter_add, "scatter_add", core=_elements("add")),
    _forms(
        elements.scatter_reduce, "scatter_reduce", "two", "two_out",
        _by_word(OverrideForm.elements, elements.WORDS),
    ),
    Row(indexed.index_put, "_index_put_impl_", core=CoreForm(OverrideForm.indexed, {})),
    Row(indexed.put, "put_", core=CoreForm(OverrideForm.flat, {})),
    Row(segments.bincount, "bincount", core=CoreForm(OverrideForm.counts, {})),
    Row(segments.segment_reduce, "segment_reduce"),
    Row(
        embeddings.embedding_dense_backward, "embedding_dense_backward",
        core=CoreForm(OverrideForm.embedding, {}),
    ),
    Row(embeddings.embedding_bag, "_embedding_bag", core=_BAGS),
    Row(embeddings.embedding_bag, "_embedding_bag_forward_only", core=_BAGS),
    Row(
        embeddings.embedding_bag_dense_backward, "_embedding_bag_dense_backward",
        core=CoreForm(OverrideForm.of_bags, {}),
    ),
    Row(segments.coalesce, "_coalesce", keys=SPARSE),
)  # fmt: skip
