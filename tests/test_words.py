"""The old words of this project stay out of its names, comments, strings and pages.

Write adapter for room, entry point for door, message for sentence, spec for look, describe for
tell, strategy or method for way.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = ("src", "docs", "README.md", "CONTRIBUTING.md")
SUFFIXES = (".py", ".pyi", ".cpp", ".hpp", ".h", ".cu", ".cuh", ".md", ".toml")
OLD = "rooms? doors? sentences? tells? told looks? looked looking seen ways?"
WORD = re.compile(
    rf"(?<![A-Za-z])(?i:{OLD.replace(' ', '|')})(?![a-z])"  # a word, or in snake_case
    rf"|(?<=[a-z])(?:{OLD.title().replace(' ', '|')})(?![a-z])"  # in CamelCase
)
# Public names, which stay: an attribute of explanations and an option of Dask; an attribute of
# XLA's custom call; a method of files; what inductor wrote.
PUBLIC = re.compile(
    r"""gatherum\.way|[\w)]\.way\b|^    way( : str|: str = ""$)|\bway="""
    r"""|\.tell\(\)|"sentences"|\.door\b|`sentences`|program and sentences""",
    re.MULTILINE,
)

# What a build makes of the others.
COPIES = ("docs/_build/", "src/gatherum/include/")


def find(text):
    """Yield the old words of a text and their lines."""
    text = PUBLIC.sub("-", text)
    for word in WORD.finditer(text):
        yield text.count("\n", 0, word.start()) + 1, word[0]


def test_old_words_stay_out():
    files = [file for place in PLACES for file in [ROOT / place, *(ROOT / place).rglob("*")]]
    names = [file.relative_to(ROOT).as_posix() for file in files if file.suffix in SUFFIXES]
    read = [name for name in sorted(names) if not name.startswith(COPIES)]
    lines = [f"{name}:{n}: {word}" for name in read for n, word in find((ROOT / name).read_text())]
    assert not lines, "\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "text", ["a room", "has_room_for", "TorchRoom", "kDoor", "roomOf", "LOOKS"]
)
def test_an_old_word_is_found(text):
    assert [line for line, _ in find("\n" + text)] == [2]


@pytest.mark.parametrize("text", ["always", "anyway", "lookup", "foreseen", "doorway", "tellers"])
def test_other_words_are_not(text):
    assert not list(find(text))
