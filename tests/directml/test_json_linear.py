"""JSON of any content is read in linear time, with the same results as before."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gatherum
from gatherum.directml import check_text
from gatherum.directml.jsontext import parse_json
from samples import every

pytestmark = pytest.mark.slow

# Half a million characters each. A reader that searches for an end from every beginning takes
# minutes for one of them.
PIECES = [
    *("/* ", '"\\', '"', "/*", "/**", "*/", "//", "/", "\\", '"\\"', '/*"', '"/*', "*", "/*/"),
    *("[", "{", ",", "[,", ",]", ", ", '","', "1,", "1 ", "-", "e", " ", "\n", "//\n", "/**/"),
    *('"a":1,', '{"a":', "/* */,", "9", "\u2028", "\x00"),
]
HEADS = ["", "[", '{"type": ', '[1, "']
READ = """
import json, sys
from gatherum.directml import check_text
for head, piece in json.load(sys.stdin):
    try:
        check_text(head + piece * (500_000 // len(piece)))
    except ValueError as error:
        assert len(str(error)) < 1000
    print(json.dumps([head, piece]), flush=True)
"""


@pytest.mark.parametrize("turn", every(4, range(4)))
def test_any_text_is_read_in_linear_time(turn):
    """Each piece follows another head in each turn."""
    texts = [[HEADS[(number + turn) % 4], piece] for number, piece in enumerate(PIECES)]
    environment = os.environ | {"PYTHONPATH": str(Path(gatherum.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=json.dumps(texts), capture_output=True, text=True, check=False, timeout=300,
        env=environment,
    )  # fmt: skip
    assert done.stderr == ""
    assert [json.loads(line) for line in done.stdout.splitlines()] == texts


SLOW = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\])*")|(?P<blank>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)|(?P<other>.)""",
    re.DOTALL,
)


def slowly_without_extras(text):
    """Parse as the earlier reader did with one regular expression: the language must not change."""
    pieces, last, comma = [], "", -1
    for token in SLOW.finditer(text):
        piece = token.group()
        if token.lastgroup == "blank":
            pieces.append(re.sub(r"[^\r\n]", " ", piece))
            continue
        if comma >= 0 and piece in ("}", "]"):
            pieces[comma] = " "
        comma = len(pieces) if piece == "," and last not in ("", ",", "[", "{") else -1
        last = piece
        pieces.append(piece)
    return "".join(pieces)


def outcome(read):
    try:
        return repr(read())
    except ValueError:
        return "no JSON"


TOKENS = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    '"',
    "\\",
    "/*",
    "*/",
    "//",
    "/",
    "*",
    "\n",
    " ",
    "1",
    '"a"',
]


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_the_language_is_the_same(text):
    def slowly():
        return json.loads(slowly_without_extras(text), object_pairs_hook=parse_pairs)

    assert outcome(lambda: parse_json(text)) == outcome(slowly)


def parse_pairs(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def desc_of(sizes):
    tensor = {"DataType": "FLOAT32", "Sizes": sizes}
    return json.dumps(
        {
            "type": "GATHER_ELEMENTS",
            **dict.fromkeys(("InputTensor", "IndicesTensor", "OutputTensor"), tensor),
            "Axis": 0,
        }
    )


@pytest.mark.parametrize("size", every(2, [2**32 - 1, 1]))
def test_a_tensor_of_many_dimensions_is_rejected_in_linear_time(size):
    report = check_text(desc_of([size] * 200_000))
    assert not report.accepted
    assert max(map(len, report.lines)) < 500
