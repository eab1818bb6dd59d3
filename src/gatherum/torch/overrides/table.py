"""List the torch operators that gatherum overrides, with the functions that override them.

A row contains the names of an operator's overloads: `new` returns a new tensor, `in_place` changes
its first operand, and `out` writes to ``out``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import elements, embeddings, indexed, segments

DENSE, SPARSE = ("CPU", "CUDA"), ("SparseCPU", "SparseCUDA")


class Row(NamedTuple):
    """A function, and the names of the operators that it overrides.

    `run_in_core` runs frequent calls on the host. It returns None for other calls.
    """

    describe: Callable[..., Any]
    new: str = ""
    in_place: str = ""
    out: str = ""
    keys: tuple[str, str] = DENSE
    run_in_core: Callable[..., Any] | None = None


def _forms(describe: Callable[..., Any], name: str, overload: str = "", out: str = "out") -> Row:
    """Return the row of an operator with three forms: new result, in place, and ``out``."""
    dotted = f".{overload}" if overload else ""
    return Row(describe, f"{name}{dotted}", f"{name}_{dotted}", f"{name}.{out}")


ROWS = (
    _forms(indexed.index_add, "index_add"),
    _forms(indexed.index_copy, "index_copy"),
    _forms(indexed.index_reduce, "index_reduce"),
    _forms(elements.scatter, "scatter", "src", "src_out"),
    _forms(elements.scatter, "scatter", "reduce", "reduce_out"),
    _forms(elements.scatter_value, "scatter", "value_reduce", "value_reduce_out"),
    _forms(elements.scatter_add, "scatter_add"),
    _forms(elements.scatter_reduce, "scatter_reduce", "two", "two_out"),
    Row(indexed.index_put, in_place="_index_put_impl_"),
    Row(indexed.put, in_place="put_"),
    Row(segments.bincount, "bincount"),
    Row(segments.segment_reduce, "segment_reduce"),
    Row(embeddings.embedding_dense_backward, "embedding_dense_backward"),
    Row(embeddings.embedding_bag, "_embedding_bag"),
    Row(embeddings.embedding_bag, "_embedding_bag_forward_only"),
    Row(embeddings.embedding_bag_dense_backward, "_embedding_bag_dense_backward"),
    Row(segments.coalesce, "_coalesce", keys=SPARSE, run_in_core=segments.coalesce_few),
)
