"""A full disk, a changed or missing input, and Ctrl-C leave the old output unchanged."""

import errno
import os
import re
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, choose_pass, get, keeps_notes, leftovers, put
from gatherum import files
from gatherum.files.durable import build
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.resources.disk import DiskFile

MEMORY = "64KiB"
STARTS_OVER = r"an earlier run came to \d+ %; this one starts over, without resume=True"


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[str, str, str, str]:
    """Make a table, indices, updates and an old output."""
    rng = np.random.default_rng(0)
    table = rng.random((3000, 16)).astype(np.float32)
    return (
        put(tmp_path, "table", table),
        put(tmp_path, "indices", rng.integers(0, 3000, (4000, 1))),
        put(tmp_path, "updates", rng.random((4000, 16)).astype(np.float32)),
        put(tmp_path, "out", np.arange(3)),
    )


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Limit the size of files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # a full disk allows a file to be extended, and rejects only the writes
    monkeypatch.setattr(DiskFile, "grow", lambda file, size: None)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def after_writes(monkeypatch: pytest.MonkeyPatch, count: int, act: Callable[[], object]) -> None:
    """Call a function when the run makes its `count`-th write."""
    write, calls = DiskFile.write_from, 0

    def counted(self: DiskFile, offset: int, buffer: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            act()
        write(self, offset, buffer)

    monkeypatch.setattr(DiskFile, "write_from", counted)


@pytest.mark.parametrize("size", [10, 5000, 100_000, 255_000])
def test_a_full_disk_leaves_the_old_output_and_can_be_resumed(
    inputs: tuple[str, ...], small_disk: Callable[[int], None], size: int
) -> None:
    table, indices, _, out = inputs
    before = Path(out).read_bytes()
    small_disk(size)
    with pytest.raises(OSError) as caught:
        files.gather_nd_file(table, indices, out, memory=MEMORY)
    assert caught.value.errno == errno.EFBIG
    assert Path(out).read_bytes() == before
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    files.gather_nd_file(table, indices, out, memory=MEMORY, resume=True)
    assert np.array_equal(np.load(out), np.load(table)[np.load(indices)[:, 0]])
    assert leftovers(Path(out).parent) == []


@pytest.mark.parametrize("size", [200, 90_000, 250_000])
@pytest.mark.parametrize("out", ["out.npy", "new.zarr", "new.safetensors:rows"])
def test_a_full_disk_in_a_pass_over_the_table(
    inputs: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    small_disk: Callable[[int], None],
    out: str,
    size: int,
) -> None:
    if "zarr" in out:
        pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    choose_pass(monkeypatch, True)
    table, indices, _, old = inputs
    before = Path(old).read_bytes()
    target = str(Path(old).parent / out)
    small_disk(size)
    with pytest.raises(OSError) as caught:
        files.gather_nd_file(table, indices, target, memory=MEMORY)
    assert caught.value.errno == errno.EFBIG
    assert Path(old).read_bytes() == before
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    files.gather_nd_file(table, indices, target, memory=MEMORY, resume=True)
    assert np.array_equal(get(target), np.load(table)[np.load(indices)[:, 0]])
    assert leftovers(Path(old).parent) == []


@pytest.mark.parametrize("size", [100, 150_000, 200_000])
def test_a_full_disk_leaves_a_table_that_is_changed_in_place(
    inputs: tuple[str, ...], small_disk: Callable[[int], None], size: int
) -> None:
    table, indices, updates, _ = inputs
    before = np.load(table)
    expected = before.copy()
    np.add.at(expected, np.load(indices)[:, 0], np.load(updates))
    small_disk(size)
    call: dict[str, Any] = {"memory": MEMORY, "in_place": True}
    with pytest.raises(OSError):
        files.scatter_nd_file(table, indices, updates, table, reduction="add", **call)
    assert np.array_equal(np.load(table), before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    files.scatter_nd_file(table, indices, updates, table, reduction="add", resume=True, **call)
    assert np.array_equal(np.load(table), expected)


@pytest.mark.parametrize("role", ["table", "indices", "updates"])
@pytest.mark.parametrize("fault", ["truncated", "touched", "vanished", "replaced"])
@pytest.mark.parametrize("in_place", [False, True])
def test_an_input_that_changes_during_the_run(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, role: str, fault: str, in_place: bool
) -> None:
    table, indices, updates, out = inputs
    if in_place:
        out = table
    victim = dict(zip(("table", "indices", "updates"), inputs, strict=False))[role]
    before = Path(out).read_bytes()

    def act() -> None:
        if fault == "truncated":
            os.truncate(victim, 1000)
        elif fault == "touched":
            os.utime(victim, ns=(1, 1))
        elif fault == "vanished":
            os.unlink(victim)
        else:
            shutil.copy2(victim, victim + ".new")
            os.replace(victim + ".new", victim)

    after_writes(monkeypatch, 4, act)
    with pytest.raises(OSError) as caught:
        files.scatter_nd_file(
            table, indices, updates, out, reduction="add", memory=MEMORY, in_place=in_place
        )
    assert f"{role}.npy: " in str(caught.value)
    assert "while it was being read" in str(caught.value)
    if victim != out:
        assert Path(out).read_bytes() == before


@pytest.mark.parametrize("role", ["table", "indices"])
@pytest.mark.parametrize("passes", [True, False])
def test_a_gather_whose_input_is_truncated_during_the_run(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, role: str, passes: bool
) -> None:
    choose_pass(monkeypatch, passes)
    table, indices, _, out = inputs
    victim = table if role == "table" else indices
    before = Path(out).read_bytes()
    after_writes(monkeypatch, 3, lambda: os.truncate(victim, 1000))
    with pytest.raises(OSError) as caught:
        files.gather_nd_file(table, indices, out, memory=MEMORY)
    assert f"{role}.npy: " in str(caught.value)
    assert "while it was being read" in str(caught.value)
    assert Path(out).read_bytes() == before


@pytest.mark.parametrize("moment", [1, 3, 9, 20])
def test_ctrl_c_leaves_the_old_output_and_can_be_resumed(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    table, indices, updates, out = inputs
    before = Path(out).read_bytes()
    with monkeypatch.context() as patch:
        after_writes(patch, moment, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            files.scatter_nd_file(table, indices, updates, out, reduction="add", memory=MEMORY)
    assert Path(out).read_bytes() == before
    files.scatter_nd_file(table, indices, updates, out, reduction="add", memory=MEMORY, resume=True)
    expected = np.load(table)
    np.add.at(expected, np.load(indices)[:, 0], np.load(updates))
    assert np.array_equal(np.load(out), expected)


def test_ctrl_c_while_the_table_is_written_waits_until_it_is_whole(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, indices, updates, _ = inputs
    expected = np.load(table)
    np.add.at(expected, np.load(indices)[:, 0], np.load(updates))
    write, hits = os.pwrite, []

    def interrupted(descriptor: int, data: Any, offset: int) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}") == table and not hits:
            hits.append(offset)
            signal.raise_signal(signal.SIGINT)
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.scatter_nd_file(
            table, indices, updates, table, reduction="add", memory=MEMORY, in_place=True
        )
    assert len(hits) == 1
    assert np.array_equal(np.load(table), expected)
    assert leftovers(Path(table).parent) == []


def test_a_half_written_table_is_refused_until_it_is_completed(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, indices, updates, out = inputs
    expected = np.load(table)
    np.add.at(expected, np.load(indices)[:, 0], np.load(updates))

    class Stopped(BaseException):
        pass

    def stop(*args: Any) -> None:
        raise Stopped

    call: dict[str, Any] = {"memory": MEMORY, "in_place": True}
    with monkeypatch.context() as patch:
        patch.setattr("gatherum.files.durable.sinks.FlatPatchSink.apply", stop)
        with pytest.raises(Stopped):
            files.scatter_nd_file(table, indices, updates, table, reduction="add", **call)
    with pytest.raises(OSError, match="an in-place run was stopped while it wrote this table"):
        files.gather_nd_file(table, indices, out)
    with pytest.raises(ValueError, match="complete it with resume=True first"):
        files.scatter_nd_file(table, indices, updates, table, reduction="add", **call)
    with pytest.raises(ValueError, match="cannot resume, attributes changed"):
        files.scatter_nd_file(table, indices, updates, table, reduction="mul", resume=True, **call)
    files.scatter_nd_file(table, indices, updates, table, reduction="add", resume=True, **call)
    assert np.array_equal(np.load(table), expected)


def test_resuming_a_completed_in_place_run_changes_nothing(inputs: tuple[str, ...]) -> None:
    table, indices, updates, _ = inputs
    call: dict[str, Any] = {"memory": MEMORY, "in_place": True}
    files.scatter_nd_file(table, indices, updates, table, reduction="add", **call)
    once = Path(table).read_bytes()
    if not keeps_notes(Path(table).parent):
        pytest.skip("this file system keeps no extended attributes (use one that does)")
    files.scatter_nd_file(table, indices, updates, table, reduction="add", resume=True, **call)
    assert Path(table).read_bytes() == once
    files.scatter_nd_file(table, indices, updates, table, reduction="add", **call)
    assert Path(table).read_bytes() != once


@pytest.mark.parametrize("change", ["mode", "indices"])
def test_resume_refuses_another_call(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    table, indices, _, out = inputs
    before = Path(out).read_bytes()
    monkeypatch.setattr(build, "SYNC_BYTES", 1000)
    with monkeypatch.context() as patch:
        after_writes(patch, 6, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            files.gather_nd_file(table, indices, out, memory=MEMORY)
    call: dict[str, Any] = {"memory": MEMORY, "mode": "raise"}
    if change == "indices":
        np.save(indices, np.load(indices)[::-1].copy())
    else:
        call[change] = "wrap"
    named = {"mode": "attributes"}.get(change, change)
    with pytest.raises(ValueError, match=f"cannot resume, {named} changed since it was started"):
        files.gather_nd_file(table, indices, out, resume=True, **call)
    assert Path(out).read_bytes() == before
    with pytest.warns(UserWarning, match=STARTS_OVER):
        files.gather_nd_file(table, indices, out, **call)
    assert np.array_equal(np.load(out), np.load(table)[np.load(indices)[:, 0]])


@pytest.mark.parametrize("memory", ["64KiB", "100KiB", "1MiB", "1GiB"])
def test_resume_with_another_memory_keeps_the_windows(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    table, indices, _, out = inputs
    monkeypatch.setattr(build, "SYNC_BYTES", 1000)
    choose_pass(monkeypatch, False)
    with monkeypatch.context() as patch:
        after_writes(patch, 6, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            files.gather_nd_file(table, indices, out, memory="128KiB")
    alone = files.gather_nd_file(table, indices, f"{out}.other.npy", memory=memory)
    stats = files.gather_nd_file(table, indices, out, memory=memory, resume=True)
    assert np.array_equal(np.load(out), np.load(table)[np.load(indices)[:, 0]])
    if memory in ("64KiB", "100KiB"):
        assert stats.bytes_written < alone.bytes_written


def test_parts_of_another_memory_that_cannot_be_kept(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, indices, updates, out = inputs
    monkeypatch.setattr(build, "SYNC_BYTES", 1000)
    scatter = table, indices, updates
    with monkeypatch.context() as patch:
        after_writes(patch, 30, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            files.scatter_nd_file(*scatter, out, reduction="add", memory="64KiB")
    with pytest.warns(UserWarning, match="this one starts over, as no part of it fits this memory"):
        files.scatter_nd_file(*scatter, out, reduction="add", memory="1MiB", resume=True)
    expected = np.load(table)
    np.add.at(expected, np.load(indices)[:, 0], np.load(updates))
    assert np.array_equal(np.load(out), expected)
    assert leftovers(Path(out).parent) == []


def test_the_command_reports_the_lost_progress(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cli = pytest.importorskip(
        "gatherum._command.cli", reason="install click: pip install click rich"
    )
    table, indices, _, out = inputs
    monkeypatch.setattr(build, "SYNC_BYTES", 1000)
    gather = ["gather-nd", table, indices, "-o", out, "--memory", MEMORY]
    with monkeypatch.context() as patch:
        after_writes(patch, 6, lambda: signal.raise_signal(signal.SIGINT))
        assert cli.run(gather) == 130
    capfd.readouterr()
    assert cli.run(gather) == 0
    text = capfd.readouterr().err
    assert re.fullmatch(
        rf"gatherum: warning: {out}.partial: an earlier run came to [1-9]\d* %; this one starts "
        r"over, without --resume\n",
        text,
    )


def test_two_runs_on_one_output_do_not_mix(
    inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, indices, _, out = inputs
    refused = []

    def second() -> None:
        with pytest.raises(BlockingIOError, match="another run is writing this output") as caught:
            files.gather_nd_file(table, indices, out)
        refused.append(str(caught.value))

    after_writes(monkeypatch, 3, second)
    files.gather_nd_file(table, indices, out, memory=MEMORY)
    assert refused == [f"{out}.partial.journal: another run is writing this output"]
    assert np.array_equal(get(out), np.load(table)[np.load(indices)[:, 0]])


def test_a_file_that_is_not_ours_is_not_removed(inputs: tuple[str, ...]) -> None:
    table, indices, _, out = inputs
    Path(out + ".partial").write_text("precious")
    with pytest.raises(FileExistsError, match="exists already and was not made by gatherum"):
        files.gather_nd_file(table, indices, out)
    assert Path(out + ".partial").read_text() == "precious"
    assert not Path(out + ".partial.journal").exists()


def faulty_renames(
    monkeypatch: pytest.MonkeyPatch, folder: Path, at: int, act: Callable[[], object]
) -> None:
    """Call a function before the `at`-th rename within a folder."""
    rename, calls = os.rename, 0

    def counted(source: str, target: str) -> None:
        nonlocal calls
        calls += os.fspath(source).startswith(str(folder))
        if calls == at:
            act()
        rename(source, target)

    monkeypatch.setattr(os, "rename", counted)


def fail() -> None:
    raise OSError(errno.EIO, "the rename fails")


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("act", [fail, lambda: signal.raise_signal(signal.SIGINT)])
def test_a_directory_is_replaced_or_stays(
    inputs: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    act: Callable[[], object],
) -> None:
    pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    table, indices, _, _ = inputs
    old = np.arange(7)
    out = put(tmp_path, "old", old, "zarr3")
    with monkeypatch.context() as patch:
        faulty_renames(patch, tmp_path, at, act)
        with pytest.raises(OSError if act is fail else KeyboardInterrupt):
            files.gather_nd_file(table, indices, out)
    new = np.load(table)[np.load(indices)[:, 0]]
    assert np.array_equal(get(out), old if act is fail else new)
    if act is not fail:  # an interrupt is deferred until the new directory is in place
        assert leftovers(tmp_path) == []
    files.gather_nd_file(table, indices, out, resume=True)
    assert np.array_equal(get(out), new)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_the_handler_of_the_program_takes_a_ctrl_c_that_was_held(handler: Any) -> None:
    calls: list[int] = []
    own = handler if handler is signal.SIG_IGN else lambda number, _: calls.append(number)
    before = signal.signal(signal.SIGINT, own)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert calls == []
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == ([] if own is signal.SIG_IGN else [signal.SIGINT])
