"""The core: names in comments exist, folders are in order, and arguments of kernels have names."""

import re
from collections import defaultdict

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


def defined_constants(code: str) -> list[tuple[str, bool]]:
    """Return the constants that code defines, and whether each is in a namespace (not indented)."""
    found = []
    for line in re.finditer(
        r"^( *)(?:template <[^\n]*> )?(?:(?:static|inline) )*constexpr ", code, re.M
    ):
        depth = 0
        declarator = ""
        for letter in code[line.end() :]:
            depth += (letter in "([{") - (letter in ")]}")
            if depth < 0 or (depth == 0 and letter in ",;"):
                # A specialization of a template has arguments.
                if name := re.match(r"[^=({]*?\b(k[A-Z]\w*)(?!<)\b[^=(]*?(?:=|\{)", declarator):
                    found.append((name[1], line[1] == ""))
                declarator = ""
                if letter != ",":
                    break
            else:
                declarator += letter
    return found


def test_no_constant_hides_one_of_a_header():
    places = defaultdict(set)
    shared = set()
    for path, text in CODE.items():
        for name, is_shared in defined_constants(text) if path.startswith("src/core/") else ():
            places[name].add(path)
            shared |= {name} if is_shared and path.endswith(".hpp") else set()
    assert len(shared) > 50
    assert {name: places[name] for name in sorted(shared) if len(places[name]) > 1} == {}


def included_folders() -> dict[str, set[str]]:
    """Return the other folders of the core that each folder includes."""
    folders = {path.name for path in (ROOT / "src" / "core").iterdir() if path.is_dir()} - {"cmake"}
    included: dict[str, set[str]] = {folder: set() for folder in folders}
    for path, text in CODE.items():
        folder = path.removeprefix("src/core/").partition("/")[0]
        if folder in folders:
            included[folder] |= set(re.findall(r'#include "(\w+)/', text)) & folders - {folder}
    return included


def listed_folders() -> dict[str, set[str]]:
    """Return the folders in the map of the core, in order, and the includes of each."""
    listed = {}
    for line in (ROOT / "src" / "core" / "README.md").read_text().splitlines():
        if line.startswith("| `") and line.count("|") == 5:
            _, name, _, includes, *_ = line.split("|")
            listed[name.strip(" `")] = set(re.findall(r"`(\w+)", includes))
    return listed


def test_the_map_lists_the_folders_that_each_folder_includes():
    included = included_folders()
    assert {name: names & set(included) for name, names in listed_folders().items()} == included


def test_a_folder_includes_only_folders_above_it_in_the_map():
    order = list(listed_folders())
    included = included_folders()
    upward = [
        (folder, other)
        for i, folder in enumerate(order)
        for other in included[folder]
        if other not in order[:i]
    ]
    assert upward == []


def test_arguments_of_kernels_are_filled_by_name():
    """In a list without names, two exchanged fields of the same type would compile."""
    arguments = re.findall(r"^struct (\w+) \{", CODE["src/core/kernels/calls.hpp"], re.M)
    names = "|".join([*arguments, "Execution", "Layout", "SlabShare"])
    unnamed = r"\{\s*[^\s.}]"
    filled = re.compile(
        rf"(?<!struct )\b(?:{names})(?: \w+)?{unnamed}"
        rf"|kernels\(?\)?\.\w+\([^;]*?[(,]\s*{unnamed}"
        rf"|^(?:inline )?(?:{names}) \w+\([^;{{}}]*\) \{{\n(?:  .*\n)*?  return {unnamed}",
        re.M,
    )
    assert len(arguments) > 20
    found = [(path, match[0]) for path, text in CODE.items() for match in filled.finditer(text)]
    assert [place for place in found if place[0].startswith("src/core/")] == []
