"""Outputs that raise: devices and other special files, and files of other users."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from files.storage import put
from gatherum import files
from gatherum._command import cli

pytestmark = pytest.mark.usefixtures("quick_sync")

FORMS: dict[str, tuple[str, ...]] = {
    "gather": ("t", "i"),
    "gather_elements": ("t", "e"),
    "gather_nd": ("t", "n"),
    "scatter_elements": ("t", "e", "t"),
    "scatter_nd": ("t", "n", "t"),
}


@pytest.fixture
def terminal() -> Iterator[Path]:
    """Yield the path of a character device that exists for this test."""
    ends = os.openpty()
    try:
        yield Path(os.ttyname(ends[1]))
    finally:
        for end in ends:
            os.close(end)


@pytest.mark.parametrize("op", FORMS)
@pytest.mark.parametrize("out", ["o.npy", "o.safetensors:t"])
@pytest.mark.parametrize("file_type", ["fifo", "link to a fifo", "link to a device"])
def test_an_output_must_be_a_regular_file(
    tmp_path: Path, terminal: Path, op: str, out: str, file_type: str
) -> None:
    operands = {
        "t": put(tmp_path, "t", np.zeros((4, 2), np.float32)),
        "i": put(tmp_path, "i", np.array([0])),
        "e": put(tmp_path, "e", np.zeros((4, 2), int)),
        "n": put(tmp_path, "n", np.zeros((4, 1), int)),
    }
    paths = [operands[name] for name in FORMS[op]]
    place = tmp_path / out.partition(":")[0]
    target = place if file_type == "fifo" else tmp_path / "fifo"
    if file_type == "link to a device":
        # a pseudo-terminal in a folder where nobody can create a file, so no real device is at risk
        target = terminal
    else:
        os.mkfifo(target)
    if target != place:
        place.symlink_to(target)
    before = sorted(os.listdir(tmp_path))
    actual_type = "character device" if "device" in file_type else "FIFO"
    line = f"{target}: is a {actual_type}, not a regular file"
    with pytest.raises(OSError) as caught:
        getattr(files, f"{op}_file")(*paths, str(tmp_path / out))
    assert str(caught.value) == line
    status = cli.run([op.replace("_", "-"), *paths, "-o", str(tmp_path / out), "--no-progress"])
    assert status == 1
    assert sorted(os.listdir(tmp_path)) == before
    assert not stat.S_ISREG(os.stat(place).st_mode)
    assert place.is_symlink() == (target != place)


@pytest.mark.parametrize("content", [b"", b"dear", b'{"gath'])
@pytest.mark.parametrize("part", ["", ".flat", ".old"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_journal_that_says_nothing_lets_nothing_be_deleted(
    tmp_path: Path, content: bytes, part: str, resume: bool
) -> None:
    paths = put(tmp_path, "t", np.arange(4)), put(tmp_path, "i", np.array([2]))
    out, foreign = tmp_path / "o.npy", tmp_path / f"o.npy.partial{part}"
    journal = tmp_path / "o.npy.partial.journal"
    foreign.write_bytes(b"dear")
    journal.write_bytes(content)
    with pytest.raises((FileExistsError, ValueError)) as caught:
        files.gather_file(*paths, out, resume=resume)
    if content != b"dear":
        line = f"{foreign}: exists already and was not made by gatherum"
        assert str(caught.value) == line
    assert foreign.read_bytes() == b"dear"
    assert journal.read_bytes() == content
    assert not out.exists()
    foreign.unlink()
    if content != b"dear":
        files.gather_file(*paths, out, resume=resume)
        assert np.load(out).tolist() == [2]
        assert not journal.exists()


def test_a_huge_file_in_the_place_of_a_journal(tmp_path: Path) -> None:
    paths = put(tmp_path, "t", np.arange(4)), put(tmp_path, "i", np.array([2]))
    for name in ("t.npy", "o.npy"):
        with (tmp_path / f"{name}.partial.journal").open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(ValueError) as caught:
        files.gather_file(*paths, tmp_path / "o.npy")
    journal = tmp_path / "o.npy.partial.journal"
    assert str(caught.value) == f"{journal}: not a journal of gatherum; move it away"
