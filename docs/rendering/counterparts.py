"""Render the equivalents of an operator in other libraries."""

import tomllib

from .comparison import FOLDER, LIBRARIES, observed
from .tables import table


def render(operator: str) -> str:
    """Return a table of equivalents, from docs/operators/*.toml and docs/observed.json."""
    answers = observed()
    page = tomllib.loads((FOLDER / "operators" / f"{operator}.toml").read_text())
    rows = []
    for row in page["counterpart"]:
        library = row["library"]
        pair = f"{row.get('run', row['theirs'])} == {row['ours']}"
        same = answers.get(library, {"answers": {}})["answers"].get(pair)
        if same not in (None, "the same"):
            raise ValueError(f"{operator}: {pair}: {same}")
        rows.append(
            [
                f"{LIBRARIES[library]}<br>`{row['theirs']}`",
                f"`{row['ours']}`" + ("" if same is None else " ✓"),
                row["differs"],
            ]
        )
    head = ("other library", "gatherum", "differences")
    return f":::{{container}} counterparts\n\n{table(head, rows)}\n:::\n"
