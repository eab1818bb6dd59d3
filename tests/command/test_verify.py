"""`verify`: the same digests everywhere, which match the oracle's answers."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import gatherum
from gatherum import reference
from gatherum._command import verify, verify_cases
from gatherum._system import native
from sizes import family
from source import SOURCE

pytestmark = pytest.mark.slow

ROWS = [row for row in verify_cases.case_rows() if verify_cases.dtype_named(row[1]) is not None]
SAMPLE = ROWS[::11]
EXPECTED = json.loads(verify.EXPECTED.read_text())


def digest_of(row):
    op, name, reduction = row
    return verify.row_digest(op, verify_cases.dtype_named(name), reduction)


def test_every_row_has_a_published_digest():
    assert list(EXPECTED) == ["/".join(row) for row in verify_cases.case_rows()]
    assert EXPECTED["gather/float32/none"] != EXPECTED["gather/int32/none"]


def test_this_machine_gives_the_published_answers(monkeypatch):
    some = ROWS[5::7]  # all: `gatherum verify`
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter(some))
    result = verify.verify()
    assert result.agrees and result.checked == len(ROWS[5::7])
    threads = native.get_num_threads()
    assert str(result).splitlines()[0] == (
        f"{result.checked} of {result.checked} digests as published "
        f"(level {native.level()}, {threads} thread{'s' if threads > 1 else ''})"
    )


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.usefixtures("settings_restored")
def test_any_number_of_threads_gives_the_published_answers(threads):
    gatherum.set_num_threads(threads)
    for row in SAMPLE:
        assert digest_of(row) == EXPECTED["/".join(row)], row


SCRIPT = """
from gatherum._command import verify, verify_cases
for op, name, reduction in list(verify_cases.case_rows())[::19]:
    dtype = verify_cases.dtype_named(name)
    if dtype is not None:
        print(f"{op}/{name}/{reduction}", verify.row_digest(op, dtype, reduction))
"""


@pytest.mark.parametrize("level", native.available_levels())
def test_every_instruction_set_level_gives_the_published_answers(level):
    environment = os.environ | {"PYTHONPATH": SOURCE, "GATHERUM_ISA": level}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    result = dict(line.split() for line in run.stdout.splitlines())
    assert len(result) > 10
    assert result == {name: EXPECTED[name] for name in result}


@pytest.mark.parametrize("row", ROWS[::3], ids="/".join)
def test_the_oracle_gives_the_same_answers_to_the_small_calls(row):
    op, name, reduction = row
    digests = []
    for functions in (gatherum, reference):
        digest = hashlib.blake2b(digest_size=16)
        calls = verify_cases.small_calls(op, verify_cases.dtype_named(name), reduction)
        verify.add_answers(digest, calls, functions)
        digests.append(digest.hexdigest())
    assert digests[0] == digests[1]


def test_the_large_calls_take_every_algorithm():
    rows = [("gather", "none"), ("gather_elements", "none")]
    rows += [("scatter_elements", "add"), ("scatter_nd", "add"), ("scatter_nd", "mean")]
    rows += [("scatter_slices", "none"), ("scatter_slices", "mean")]
    taken = {
        family(gatherum.plan(call.op, *call.operands, **call.attributes).algorithm)
        for op, reduction in rows
        for call in verify_cases.large_calls(op, np.dtype("f4"), reduction)
    }
    assert taken == {
        "direct", "streamed", "prefetched", "packed", "accumulators", "partitioned",
        "by_destination",
    }  # fmt: skip


def test_different_digests_are_named(monkeypatch, tmp_path):
    changed = tmp_path / "digests.json"
    changed.write_text(json.dumps(EXPECTED | {"gather/int8/none": "0" * 32}))
    monkeypatch.setattr(verify, "EXPECTED", changed)
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([("gather", "int8", "none")]))
    result = verify.verify()
    assert result.different == ("gather/int8/none",)
    assert str(result).splitlines()[:2] == [
        "gather/int8/none: differs from the published digest",
        f"0 of 1 digests as published (level {result.level}, {result.threads} threads)".replace(
            "1 threads", "1 thread"
        ),
    ]


def test_without_ml_dtypes_bfloat16_is_reported_as_skipped(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(verify, "row_digest", lambda *_: "")
    result = verify.verify()
    assert {name.split("/")[1] for name in result.skipped} == {"bfloat16"}
    assert str(result).splitlines()[-1] == (
        f"{len(result.skipped)} of bfloat16 not checked: needs ml_dtypes"
    )
