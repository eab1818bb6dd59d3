"""Render an operator's counterparts from docs/operators/*.toml and docs/observed.json."""

import tomllib

from .comparison import FOLDER, LIBRARIES, observed
from .tables import table


def render(operator: str) -> str:
    """Return the table of an operator's counterparts."""
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
    head = ("you know", "here", "what differs")
    return f":::{{container}} counterparts\n{table(head, rows)}:::\n"
