"""The parts of docstrings that the gathers, and the scatters, share.

The first function of each module has the text of the shared parts: entries of parameters, the
errors and the first notes. The other functions of the module get copies of them, except functions
without notes, whose docstrings refer to another function.
"""

import re
import textwrap
from pathlib import Path

from model import FUNCTIONS, WIDTH, read_docstrings, read_functions

# The entries that are copied. Entries of other parameters differ.
PARAMETERS = ("axis", "reduction", "include_self", "mode", "negative", "fill_value", "out")
# The first words of notes about one function, which are at the end.
OWN_NOTES = ("Each component", "Neither ONNX", "The counterparts")
SECTION = re.compile(r"^    (Parameters|Returns|Raises|See Also|Notes|Examples)\n    -+\n", re.M)
ENTRY = re.compile(r"^    (\w+) : .*\n(?:        .*\n)+", re.M)


def files() -> dict[Path, str]:
    """Return the text of the modules."""
    return {path: _shared(path) for path in (FUNCTIONS / "gathers.py", FUNCTIONS / "scatters.py")}


def _shared(path: Path) -> str:
    """Return the source of a module whose functions have the shared parts of the first one."""
    source, docstrings = path.read_text(), read_docstrings(path)
    first, *others = (each for each in read_functions(path) if each.name in docstrings)
    for each in others:
        old = docstrings[each.name]
        new = _with_shared(old, docstrings[first.name], first.position, each.position)
        source = source.replace(old, new)
    return source


def _with_shared(docstring: str, first: str, old: str, new: str) -> str:
    """Return a docstring with the shared parts of the first function's.

    `old` and `new` are the names of the parameter that positions the indices.
    """
    sections, shared = _sections(docstring), _sections(first)
    if "Notes" not in sections:
        return docstring
    entries = {match[1]: match[0] for match in ENTRY.finditer(shared["Parameters"])}
    sections["Parameters"] = ENTRY.sub(
        lambda match: entries.get(match[1], match[0]) if match[1] in PARAMETERS else match[0],
        sections["Parameters"],
    )
    sections["Raises"] = _renamed(shared["Raises"], old, new)
    notes = [
        note for note in _paragraphs(shared["Notes"]) if not note.strip().startswith(OWN_NOTES)
    ]
    own = _paragraphs(sections["Notes"])
    while own and not own[0].strip().startswith(OWN_NOTES):
        del own[0]
    sections["Notes"] = "\n\n".join([*notes, *own]) + "\n\n"
    return "".join(
        f"    {name}\n    {'-' * len(name)}\n{text}" if name else text
        for name, text in sections.items()
    )


def _sections(docstring: str) -> dict[str, str]:
    """Return the text of each section; the text in front of the sections has the name ""."""
    start, *parts = SECTION.split(docstring)
    return {"": start, **dict(zip(parts[::2], parts[1::2], strict=True))}


def _paragraphs(section: str) -> list[str]:
    return section.rstrip().split("\n\n")


def _renamed(section: str, old: str, new: str) -> str:
    """Return a section with another name of a parameter, broken into lines of the same width."""
    lines: list[str] = []
    for paragraph in re.split(r"(?<=\n)(?=    \w)", section.replace(f"`{old}`", f"`{new}`")):
        head, body = paragraph.split("\n", 1)
        indent = " " * 8
        text = textwrap.fill(
            " ".join(body.split()), WIDTH, initial_indent=indent, subsequent_indent=indent,
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip
        lines += [head, text]
    return "\n".join(lines) + "\n\n"
