"""Pictures of calls as text."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
from pictures import explanation_of
from strategies import calls

F4, I8 = "f4", "i8"
TEXTS = [
    (
        ("scatter_nd", np.zeros(3, int), [[1], [1], [9]], [5, 9, 7]),
        {"mode": "drop"},
        """\
data (3,)   indices (3, 1)   updates (3,)   result (3,)
[0] 0       [0]  1           [0] 5/         [0] 0
[1] 0       [1] 1=           [1]  9         [1] 9
[2] 0       [2] 9!           [2] 7x         [2] 0

=  a duplicate: an index before it names the same place
!  out of bounds
x  dropped: its index is out of bounds
/  overwritten by a later update""",
    ),
    (
        ("gather_elements", [[1, 2], [3, 4]], [[7], [0]]),
        {"axis": 1},
        """\
data (2, 2)   indices (2, 1)   result (2, 1)
    [0] [1]   [0] 7!           IndexError
[0]   1   2   [1]  0
[1]   3   4

!  out of bounds""",
    ),
    (
        ("gather", ((0, 3), F4), ((0,), I8)),
        {},
        """\
data (0, 3)   indices (0,)   result (0, 3)
empty         empty          empty""",
    ),
]


@pytest.mark.parametrize(("operands", "attributes", "text"), TEXTS)
def test_a_picture_of_text(operands, attributes, text):
    assert gatherum.explain(*operands, **attributes).text() == text


def test_a_wide_picture_of_text_is_stacked_and_coloured():
    explanation = gatherum.explain("gather", [10, 20], [1, 1])
    assert (
        explanation.text(20)
        == """\
data (2,)
[0] 10
[1] 20

indices (2,)
[0]  1
[1] 1=

result (2,)
[0] 20
[1] 20

=  a duplicate: an
index before it
names the same place"""
    )
    lines = explanation.text(colours=True).splitlines()
    assert lines[2].count("\x1b[38;5;33m") == 3
    assert re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(lines)) == explanation.text()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(call=calls())
def test_every_call_has_a_picture_of_text(call):
    text = explanation_of(call).text(100)
    assert text.startswith("data (")
    assert text.isascii() or call.args[0].dtype.kind == "U"
