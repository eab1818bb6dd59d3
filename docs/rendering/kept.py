"""Parts of pages that are rendered from code and also kept in the pages, for readers of the files.

A kept part begins with the marker of its renderer and ends with ``<!-- rendered -->``.
``python docs/rendering/kept.py`` rewrites the kept parts of all pages; tests/project/test_docs.py
checks that they are current.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parents[1]
KEPT = re.compile(
    r"^<!-- render: (\S+)(.*?) -->\n(?:(?:(?!<!-- render: ).*\n)*?)<!-- rendered -->$", re.MULTILINE
)


def current(text: str, render: Callable[[str, str], str]) -> str:
    """Return a page with its kept parts rendered."""

    def part(match: re.Match[str]) -> str:
        name, argument = match[1], match[2].strip()
        marker = f"<!-- render: {' '.join(filter(None, (name, argument)))} -->"
        return f"{marker}\n\n{render(name, argument).strip()}\n\n<!-- rendered -->"

    return KEPT.sub(part, text)


def pages() -> list[Path]:
    """Return the pages with kept parts."""
    every = sorted(FOLDER.rglob("*.md"))
    return [p for p in every if "_build" not in p.parts and KEPT.search(p.read_text("utf-8"))]


if __name__ == "__main__":
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "benchmarks")]
    import rendering

    for page in pages():
        old = page.read_text("utf-8")
        new = current(old, rendering.render)
        if new != old:
            page.write_text(new, "utf-8")
            print(f"wrote {page.relative_to(FOLDER.parent)}")
