"""Comments of the core name constants and files that exist."""

import re

from source import ROOT

SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "src").rglob("*"))
    if path.suffix in (".hpp", ".cpp", ".h", ".cuh", ".cu")
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
CODE = {path: COMMENT.sub("", text) for path, text in SOURCES.items()}
COMMENTS = {path: " ".join(COMMENT.findall(text)) for path, text in SOURCES.items()}
DECISIONS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))
}
CONSTANT = re.compile(r"\bk[A-Z]\w*")
FILE = re.compile(r"\b\w+\.(?:hpp|cpp|cuh|cu)\b")


def test_texts_name_constants_that_exist():
    used = {name for text in CODE.values() for name in CONSTANT.findall(text)}
    absent = [
        (path, name)
        for path, text in [*COMMENTS.items(), *DECISIONS.items()]
        for name in CONSTANT.findall(text)
        if name not in used
    ]
    assert absent == []


def test_comments_name_files_that_exist():
    files = {path.rpartition("/")[2] for path in SOURCES}
    absent = [
        (path, name)
        for path, text in COMMENTS.items()
        for name in FILE.findall(text)
        if path.startswith("src/core/") and name not in files
    ]
    assert absent == []
