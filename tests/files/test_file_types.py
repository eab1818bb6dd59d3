"""Only regular files are opened, and none is read beyond a limit."""

import os
import socket
import stat

import pytest

from gatherum._system import regular_files

needs_posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")


def open_descriptors():
    return len(os.listdir("/dev/fd"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    os.mkfifo("fifo")
    os.symlink("fifo", "link")
    os.symlink("/dev/zero", "endless")
    os.symlink("plain", "alias")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        yield tmp_path


@needs_posix
@pytest.mark.parametrize(
    ("name", "file_type"),
    [
        ("folder", "a directory"),
        ("fifo", "a FIFO"),
        ("link", "a FIFO"),
        ("endless", "a character device"),
        ("socket", "a socket"),
    ],
)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR | os.O_CREAT])
def test_special_files_are_not_opened(files, monkeypatch, name, file_type, flags):
    opened = []
    monkeypatch.setattr(regular_files.os, "open", lambda *arguments: opened.append(arguments))
    with pytest.raises(OSError) as raised:
        regular_files.open_regular(name, flags)
    assert str(raised.value) == f"{name}: is {file_type}, not a regular file"
    assert opened == []


@needs_posix
@pytest.mark.parametrize("name", ["folder", "fifo", "endless"])
def test_an_opened_file_is_checked_again(files, monkeypatch, name):
    plain, before = os.stat("plain"), open_descriptors()
    monkeypatch.setattr(
        regular_files.os, "stat", lambda path: plain
    )  # the path changes after the check
    with pytest.raises(OSError, match="not a regular file"):
        regular_files.open_regular(name)
    assert open_descriptors() == before


@needs_posix
def test_regular_files_are_opened_by_any_name(files):
    for name in ("plain", "alias", files / "plain"):
        with open(name, "rb", opener=regular_files.open_regular) as file:
            assert file.read() == b"12345"
    with pytest.raises(FileNotFoundError):
        regular_files.open_regular("missing")
    descriptor = regular_files.open_regular("new", os.O_WRONLY | os.O_CREAT, 0o600)
    assert stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077 == 0
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


@needs_posix
def test_reading_ends_at_the_limit(files, monkeypatch):
    assert regular_files.read_regular("plain", 5) == b"12345"
    sentence = "plain: has more than 4 bytes, which is too much to read whole"
    with pytest.raises(OSError) as raised:
        regular_files.read_regular("plain", 4)
    assert str(raised.value) == sentence
    # A file that reports 0 bytes and has more, as in /proc, or one that grows.
    honest = os.fstat
    monkeypatch.setattr(
        regular_files.os, "fstat", lambda fd: os.stat_result((*honest(fd)[:6], 0, *honest(fd)[7:]))
    )
    with pytest.raises(OSError) as raised:
        regular_files.read_regular("plain", 4)
    assert str(raised.value) == sentence
    assert regular_files.read_regular("plain", 5) == b"12345"
