"""Render files of the examples, and the declarations of the C header."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from gatherum._model.dtype_rows import ROWS, DTypeRow

from .tables import table

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "src" / "core" / "include" / "gatherum.h"
LANGUAGES = {".c": "c", ".cpp": "cpp", ".rs": "rust", ".txt": "cmake"}
# The sections of the reference, each with its first declaration.
SECTIONS = {
    "Version": "GATHERUM_ABI_VERSION",
    "Status and errors": "gatherum_status",
    "Descriptions of calls": "gatherum_program",
    "Make programs": "gatherum_make_gather",
    "Programs as bytes": "gatherum_program_read",
    "Run programs": "gatherum_buffer",
    "exp and log": "gatherum_map",
    "Cumulative functions": "gatherum_cumulation",
    "Quantized rows": "gatherum_quantized",
    "Folds in batches": "gatherum_fold",
    "Gradients": "gatherum_gradients",
    "Extremes and variances": "gatherum_extremes",
    "Folds along edges": "gatherum_lists",
    "Rows of files": "gatherum_rows",
    "Algorithms": "gatherum_description",
    "Memory": "gatherum_allocate",
    "Threads and instruction sets": "gatherum_set_num_threads",
    "XLA": "gatherum_xla_call",
}
NAME = re.compile(
    r"(?:struct \w+;\s+)*(?:#define (\w+)|typedef (?:struct|enum) (\w+)|[\w *]*?(\w+)\()"
)


def render_file(path: str) -> str:
    """Return a file of the repository as a block of code."""
    file = ROOT / path
    return f"```{LANGUAGES[file.suffix]}\n{file.read_text('utf-8')}```\n"


def render_dtypes() -> str:
    """Return a table of the names of dtypes in ``gatherum_spec``."""
    rows = [
        (f'`"{row.name}"`', _bytes(row), "" if row.value.name == "none" else "yes")
        for row in ROWS.values()
    ]
    return table(("`dtype`", "bytes", "reductions"), rows)


def _bytes(row: DTypeRow) -> str:
    return "those of C" if "longdouble" in row.name else str(row.nbytes)


def render_header() -> str:
    """Return the header's declarations, in sections, with their comments as text."""
    parts = []
    for title, blocks in sections():
        parts.append(f"## {title}\n")
        for comment, code in blocks:
            parts += [*([f"{comment}\n"] if comment else []), f"```c\n{code}\n```\n"]
    return "\n".join(parts)


def sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title of each section, and its pairs of a comment and declarations."""
    firsts = {first: title for title, first in SECTIONS.items()}
    title, blocks = "", list[tuple[str, str]]()
    for comment, code in declarations():
        heading = firsts.pop(declared(code), None)
        if heading is not None:
            if title:
                yield title, blocks
            title, blocks = heading, []
        blocks.append((comment, code))
    if firsts:
        raise ValueError(f"the header does not declare {', '.join(firsts)}")
    yield title, blocks


def declared(code: str) -> str:
    """Return the first name that some lines declare."""
    found = NAME.match(code)
    if found is None:
        raise ValueError(f"no name in {code}")
    return found[1] or found[2] or found[3]


def declarations() -> Iterator[tuple[str, str]]:
    """Yield the comments of the header and the declarations that each precedes."""
    text = HEADER.read_text("utf-8")
    text = text[text.index("/* Changes whenever") : text.index("\n#ifdef __cplusplus\n}")]
    text = text.replace("GATHERUM_API ", "").replace(" GATHERUM_NOEXCEPT", "")
    for block in re.split(r"\n\n+(?=\S)|\n(?=/\*)", text):
        lead = re.match(r"/\*(.*?)\*/\n", block, re.DOTALL)
        code = block[lead.end() :] if lead else block
        words = re.sub(r"\s*\n \*\s*", " ", lead[1]).strip() if lead else ""
        yield marked(words), aligned(code.strip())


def marked(comment: str) -> str:
    """Return a comment with its names of the header as code."""
    return re.sub(r"(?<![`\w])((?:gatherum|GATHERUM)_\w+)(?![\w`])", r"`\1`", comment)


def aligned(code: str) -> str:
    """Wrap functions in lines of at most 100 characters. Return other code unchanged."""
    if code.startswith(("typedef", "static inline", "#", "struct")):
        return code
    functions = [" ".join(one.split()) for one in code.split(";") if one.strip()]
    lines = (textwrap.wrap(f"{one};", 100, subsequent_indent="    ") for one in functions)
    return "\n".join(line for wrapped in lines for line in wrapped)
