"""The note of a completed in-place run: if it cannot be kept, no update is applied twice."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from files.storage import MISSING, fail_notes, get, keeps_notes, leftovers, put
from gatherum import files

DATA = np.arange(12.0).reshape(4, 3)
UPDATED = DATA + [[0], [1], [0], [0]]
Run = Callable[..., object]


@pytest.fixture(params=["npy", "zarr3"])
def call(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, Run]:
    """Make a table, and a call that adds 1 to its row 1 in place."""
    if request.param == "zarr3":
        pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    path = put(tmp_path, "table", DATA, request.param)
    operands = put(tmp_path, "rows", np.array([1])), put(tmp_path, "updates", np.ones((1, 3)))
    return path, lambda **more: files.scatter_slices_file(
        path, *operands, path, reduction="add", in_place=True, **more
    )


def test_a_note_that_cannot_be_kept_is_an_error_before_anything_is_written(
    call: tuple[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, run = call
    before = sorted(os.listdir(tmp_path))
    for resume in (False, True):
        with monkeypatch.context() as patch:
            fail_notes(patch, 1, errno.ENOSPC)
            with pytest.raises(OSError, match="cannot keep a note of the run in an ext") as caught:
                run(resume=resume)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, path)
        assert np.array_equal(get(path), DATA)
        assert sorted(os.listdir(tmp_path)) == before
    run(resume=keeps_notes(tmp_path))
    assert np.array_equal(get(path), UPDATED)


def test_a_note_that_is_refused_at_the_end_is_made_by_a_resume(
    call: tuple[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, run = call
    if not keeps_notes(tmp_path):
        pytest.skip("this file system keeps no extended attributes (use one that does)")
    for resume in (False, True, True):
        with monkeypatch.context() as patch:
            fail_notes(patch, 1 + (not resume), errno.ENOSPC)
            with pytest.raises(OSError, match="cannot keep a note of the run in an ext"):
                run(resume=resume)
    for _ in range(2):
        run(resume=True)
        assert np.array_equal(get(path), UPDATED)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("missing", [False, True])
def test_without_notes_a_resume_that_would_need_one_is_refused(
    call: tuple[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    path, run = call
    if missing:  # Windows, macOS
        monkeypatch.delattr(os, "setxattr", raising=False)
        monkeypatch.delattr(os, "getxattr", raising=False)
    else:
        fail_notes(monkeypatch, 1, errno.ENOTSUP)
    run()
    assert np.array_equal(get(path), UPDATED)
    with pytest.raises(ValueError) as caught:
        run(resume=True)
    assert str(caught.value) == (
        f"scatter_slices: cannot resume in place, {path} has no journal and its file system keeps "
        "no note of completed runs; unless the run has completed, start it without resume=True"
    )
    assert np.array_equal(get(path), UPDATED)
    assert leftovers(tmp_path) == []
    run()
    assert np.array_equal(get(path), UPDATED * 2 - DATA)


def test_a_trial_of_the_note_keeps_that_of_an_earlier_run(
    call: tuple[str, Run], tmp_path: Path
) -> None:
    path, run = call
    if not keeps_notes(tmp_path):
        pytest.skip("this file system keeps no extended attributes (use one that does)")
    run()
    outside = put(tmp_path, "outside", np.array([4]))
    with pytest.raises(IndexError):
        files.scatter_slices_file(path, outside, f"{tmp_path}/updates.npy", path, in_place=True)
    run(resume=True)
    assert np.array_equal(get(path), UPDATED)
    assert os.listxattr(path) == ["user.gatherum.completed"]


def test_a_completed_run_is_known_by_any_budget_and_any_name(tmp_path: Path) -> None:
    if not keeps_notes(tmp_path):
        pytest.skip("this file system keeps no extended attributes (use one that does)")
    path = put(tmp_path, "table", DATA, "npy")
    operands = put(tmp_path, "rows", np.array([1])), put(tmp_path, "updates", np.ones((1, 3)))

    def run(table: str, **more: object) -> None:
        files.scatter_slices_file(
            table, *operands, table, reduction="add", in_place=True, **more  # type: ignore[arg-type]
        )  # fmt: skip

    run(path)
    link, other = str(tmp_path / "link.npy"), str(tmp_path / "other.npy")
    os.symlink(path, link)
    os.link(path, other)
    for table in (path, link, other):
        for memory in ("64KiB", "1GiB"):
            run(table, memory=memory, resume=True)
            assert np.array_equal(get(path), UPDATED)
