"""An I/O error at every step of a run names a file, damages nothing, and allows a resume."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, choose_pass, fail_at, get, leftovers, put
from gatherum import files
from gatherum.files.durable import build, sinks
from gatherum.files.durable.journal import HEAD

DATA = np.arange(3600, dtype=np.float32).reshape(300, 12)
ROWS = np.random.default_rng(0).integers(0, 300, 400)
UPDATES = np.ones((400, 12), np.float32)
UPDATED = DATA.copy()
np.add.at(UPDATED, ROWS, UPDATES)
Run = Callable[..., object]


def scenario(name: str, folder: Path, file_format: str) -> tuple[str, Run, Any]:
    """Return an output, the run that makes it, and its expected content."""
    table = put(folder, "table", DATA, file_format)
    rows, updates = put(folder, "rows", ROWS), put(folder, "updates", UPDATES)
    if name == "gather":
        out = put(folder, "out", np.arange(3), file_format)
        return out, lambda **more: files.gather_file(table, rows, out, **more), DATA[ROWS]
    out = table if name == "place" else put(folder, "out", np.arange(3), file_format)
    place = {"in_place": name == "place", "reduction": "add"}
    run = files.scatter_slices_file
    return out, lambda **more: run(table, rows, updates, out, **place, **more), UPDATED  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("file_format", "stride"), [("npy", 1), ("zarr3", 29)])
@pytest.mark.parametrize("name", ["gather", "passing", "scatter", "place"])
def test_an_error_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file_format: str, stride: int
) -> None:
    """Let every `stride`-th call fail, each in a separate run."""
    if file_format == "zarr3":
        pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    monkeypatch.setattr(build, "SYNC_BYTES", 4000)
    monkeypatch.setattr(sinks, "BUFFERED", 3000)
    choose_pass(monkeypatch, name == "passing")
    at, calls = 1 - stride, [""]
    while at <= len(calls):  # until a run finishes before the call that would fail
        at += stride
        folder = tmp_path / str(at)
        folder.mkdir()
        out, run, expected = scenario(name.replace("passing", "gather"), folder, file_format)
        old = get(out)
        with monkeypatch.context() as patch:
            calls = fail_at(patch, at)
            try:
                run(memory="64KiB")
            except OSError as error:
                where = f"{calls[-1]}, call {at}"
                assert error.errno == errno.EIO, where
                assert str(folder) in str(error), f"{where} names no file: {error!r}"
        if not os.path.lexists(out + ".partial.journal"):
            assert leftovers(folder) == [], calls
        else:
            assert Path(out + ".partial.journal").read_bytes().startswith(HEAD), calls
        if name != "place":
            assert get(out).tobytes() in (old.tobytes(), expected.tobytes()), calls
        if get(out).tobytes() != expected.tobytes() or leftovers(folder):
            run(memory="64KiB", resume=True)
        assert get(out).tobytes() == expected.tobytes(), calls
        assert leftovers(folder) == [], calls
    assert at > 40


DEEP = 100_000


@pytest.mark.parametrize(
    "journal",
    [
        HEAD + b"[" * DEEP + b"]" * DEEP + b"}\n",
        HEAD + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}\n",
        HEAD + b"4}\n[]\n",
        HEAD + b"4}\n" + b"[" * DEEP + b"\n",
    ],
)
def test_a_journal_that_is_none(tmp_path: Path, journal: bytes) -> None:
    out, run, _ = scenario("gather", tmp_path, "npy")
    old = get(out)
    path = Path(out + ".partial.journal")
    path.write_bytes(journal)
    for resume in (False, True):
        with pytest.raises(ValueError) as caught:
            run(resume=resume)
        assert str(caught.value) == f"{path}: not a journal of gatherum; move it away"
    assert path.read_bytes() == journal
    assert np.array_equal(get(out), old)
