"""Pictures, test vectors and model files appear whole or not at all, as all outputs do."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gatherum
from files.storage import fail_at
from gatherum._command import cli
from gatherum.conformance import write
from gatherum.files.durable.file_sets import write_files, written_folder

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="special files of POSIX systems")
PICTURE = gatherum.explain("gather", [1, 2, 3], [2, 0])
EXPLAIN = ["explain", "gather", "--data", "3", "--values", "2,0", "--svg"]

# Runs the command with files of at most 300 bytes, which simulates a full disk.
ON_FULL_DISK = """
import resource, sys
from gatherum._command import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
sys.exit(cli.run(sys.argv[1:]))
"""


def tree(folder: Path) -> dict[str, bytes | str]:
    """Return the whole content of a folder, keyed by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


def on_full_disk(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command on a full disk. Return its status and its standard error."""
    command = [sys.executable, "-c", ON_FULL_DISK, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def make_special(folder: Path, file_type: str) -> Path:
    """Create something other than a regular file in a folder, and return its path."""
    path = folder / "picture.svg"
    target = folder / "target" if file_type.startswith("link") else path
    if file_type == "link to a device":
        target = Path(os.devnull)
    elif file_type == "directory":
        target.mkdir()
    else:
        os.mkfifo(target)
    if target != path:
        path.symlink_to(target)
    return path


@POSIX
@pytest.mark.parametrize("file_type", ["FIFO", "link to a FIFO", "link to a device", "directory"])
def test_a_picture_replaces_regular_files_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], file_type: str
) -> None:
    path = make_special(tmp_path, file_type)
    before = sorted(os.listdir(tmp_path))
    name = {"link to a device": "character device", "link to a FIFO": "FIFO"}.get(
        file_type, file_type
    )
    line = f"{path}: is a {name}, not a regular file"
    with pytest.raises(OSError) as caught:
        PICTURE.save(path)
    assert str(caught.value) == line
    assert cli.run([*EXPLAIN, str(path)]) == 1
    assert capfd.readouterr().err == f"gatherum: {line}\n"
    assert sorted(os.listdir(tmp_path)) == before
    assert not stat.S_ISREG(os.stat(path).st_mode)


@POSIX
def test_a_full_disk_leaves_the_old_picture(tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    path.write_text("old")
    line = "gatherum: picture.svg: File too large\n"
    assert on_full_disk(tmp_path, *EXPLAIN, "picture.svg") == (1, line)
    assert tree(tmp_path) == {"picture.svg": b"old"}
    PICTURE.save(path)
    assert tree(tmp_path) == {"picture.svg": PICTURE.svg().encode()}


@POSIX
def test_a_picture_replaces_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    path, link, other = (tmp_path / name for name in ("picture.svg", "link.svg", "other.svg"))
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    os.link(path, other)
    PICTURE.save(link)
    assert link.is_symlink()
    assert path.read_text() == PICTURE.svg()
    assert other.read_text() == "old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_picture_names_its_file_in_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(OSError) as caught:
        PICTURE.save(tmp_path / "file" / "picture.svg")
    assert caught.value.filename == str(tmp_path / "file" / "picture.svg")
    assert tree(tmp_path) == {"file": b"old"}


@POSIX
@pytest.mark.parametrize("file_format", ["npz", "dxdispatch"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_no_half_of_a_folder(
    tmp_path: Path, file_format: str, exists: bool
) -> None:
    folder = tmp_path / "cases"
    if exists:
        folder.mkdir()
    arguments = ["vectors", "cases", "--format", file_format, "--op", "gather", "--rule", "plain"]
    status, line = on_full_disk(tmp_path, *arguments)
    assert status == 1
    assert line.startswith("gatherum: cases")
    assert line.endswith(": File too large\n")
    assert tree(tmp_path) == ({"cases": "folder"} if exists else {})
    assert write(folder, file_format, op="gather", rule="plain") == 3  # type: ignore[arg-type]
    assert len(tree(folder)) == 4


def test_an_error_at_any_step_of_a_folder_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(folder: Path) -> object:
        return write(folder, op="gather", rule="plain")

    every_step(tmp_path / "new", monkeypatch, lambda base: attempt(base / "deep" / "cases"))
    every_step(tmp_path / "old", monkeypatch, attempt)


def test_a_folder_that_a_killed_run_left_does_not_matter(tmp_path: Path) -> None:
    left = tmp_path / ".gatherum-0123456789abcdef.partial"
    left.mkdir()
    with written_folder(str(tmp_path)) as folder:
        Path(folder, "a").write_text("a")
    assert tree(tmp_path) == {"a": b"a", left.name: "folder"}


def test_an_error_at_any_step_leaves_all_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(folder: Path) -> object:
        names = ("new", "old", "deep/er/new", "more")
        return write_files({str(folder / name): b"content" for name in names})

    def begin(folder: Path) -> None:
        (folder / "old").write_text("old")
        (folder / "more").write_text("more")

    every_step(tmp_path, monkeypatch, attempt, begin)


def test_without_hard_links_files_are_put_back_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(1, "no hard links here")

    monkeypatch.setattr(os, "link", link)
    test_an_error_at_any_step_leaves_all_files_as_they_were(tmp_path, monkeypatch)


def every_step(
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    attempt: Callable[[Path], object],
    begin: Callable[[Path], object] = lambda folder: None,
) -> None:
    """Let every call that changes the disk fail, one in each run."""
    at, calls = 0, [""]
    while at <= len(calls):
        at += 1
        folder = base / str(at)
        folder.mkdir(parents=True)
        begin(folder)
        before = tree(folder)
        with monkeypatch.context() as patch:
            calls = fail_at(patch, at)
            try:
                attempt(folder)
            except OSError as error:
                assert error.filename is not None and str(folder) in error.filename
                placed = {"rename", "replace"} & set(calls[:at])
                assert tree(folder) == before or (placed and calls[at - 1] == "fsync")
                continue
        left = [name for name in tree(folder) if "gatherum" in name]
        assert not left or calls[at - 1 : at] == ["unlink"]  # its old content cannot be removed
    assert at > 3


def test_a_temporary_file_is_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / ".gatherum-00.partial"
    foreign.write_text("dear")
    monkeypatch.setattr("secrets.token_hex", lambda count: "00")
    with pytest.raises(FileExistsError):
        write_files({str(tmp_path / "a"): b"a"})
    assert tree(tmp_path) == {foreign.name: b"dear"}
