"""Render the operators of PyTorch that `gatherum.torch.reproducible` overrides.

The rows are read from the source of ``torch/overrides/table.py``, without importing torch.
"""

import ast
from pathlib import Path
from typing import Any

from .tables import table

SOURCE = Path(__file__).parents[2] / "src/gatherum/torch/overrides/table.py"
ALL = "all forms"

# How PyTorch's documentation calls the operators, and the calls that run in order. The key is the
# name of the operator in the table, without underscores at its ends.
CALLS = {
    "index_add": ("`index_add`", ALL),
    "index_copy": ("`index_copy`", ALL),
    "index_reduce": ("`index_reduce`", ALL),
    "scatter": ("`scatter`", "with a tensor, or with `reduce`"),
    "scatter_add": ("`scatter_add`", ALL),
    "scatter_reduce": ("`scatter_reduce`", ALL),
    "index_put_impl": (
        "`x[i] = y`, `index_put`, with and without `accumulate`",
        "any mix of `None`, masks and integers",
    ),
    "put": ("`put`", "with and without `accumulate`"),
    "bincount": ("`bincount`", "with weights"),
    "segment_reduce": (
        "`segment_reduce`", "one vector of lengths or offsets, along dimension 0",
    ),
    "embedding_dense_backward": ("gradient of `embedding`", "without `sparse`"),
    "embedding_bag": ("`embedding_bag`", "sum and mean"),
    "embedding_bag_forward_only": ("`embedding_bag` without gradients", "sum and mean"),
    "embedding_bag_dense_backward": ("gradient of `embedding_bag`", "sum, mean and max"),
    "coalesce": ("`coalesce` of sparse COO tensors", "sums of elements with the same place"),
}  # fmt: skip


class _Functions:
    """Return names of functions, in place of a module that has them."""

    def __getattr__(self, name: str) -> str:
        return name


def rows() -> list[Any]:
    """Return the rows of the table."""
    tree = ast.parse(SOURCE.read_text("utf-8"))
    own = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    tree.body = [node for node in tree.body if node not in own]
    scope: dict[str, Any] = {"__name__": "table"}
    scope |= {alias.name: _Functions() for node in own for alias in node.names}
    exec(compile(tree, SOURCE, "exec"), scope)
    return list(scope["ROWS"])


def render() -> str:
    """Return a table of the operators, their overloads, and the calls that run in order."""
    overloads: dict[str, list[str]] = {}
    for row in rows():
        names = [name for name in (row.new, row.in_place, row.out) if name]
        overloads.setdefault(names[0].partition(".")[0].strip("_"), []).extend(names)
    if differing := overloads.keys() ^ CALLS.keys():
        raise ValueError(f"docs/rendering/overrides.py: CALLS differs from the table: {differing}")
    return table(
        ("operator", "overloads in `report()`", "in order"),
        [
            (CALLS[key][0], ", ".join(f"`{name}`" for name in names), CALLS[key][1])
            for key, names in overloads.items()
        ],
    )
