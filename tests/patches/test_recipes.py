"""The patches of CONTRIBUTING.md's recipes match the sources; `test_add_*.py` apply them."""

import re

import pytest

from source import ROOT


@pytest.mark.parametrize("name", ["absmax", "first", "rows", "rows_on_files", "float4"])
def test_each_hunk_of_a_patch_is_in_its_file(name):
    patch = (ROOT / "tests" / "patches" / f"{name}.patch").read_text()
    for part in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        text = (ROOT / part.split("\n", 1)[0]).read_text()
        for hunk in re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:]:
            old = [line[1:] for line in hunk.splitlines() if line[:1] in (" ", "-", "")]
            assert "\n".join(old) in text, hunk
