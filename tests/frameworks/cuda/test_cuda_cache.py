"""Compiled kernels on disk: reused, damaged, unwritable, shared by processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatherum.cuda import code_cache
from source import SOURCE

CODE = bytes(range(256)) * 40


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", str(tmp_path / "a" / "b"))
    return tmp_path / "a" / "b"


def compiled(*parts, code=CODE):
    """Return the code and the number of compilations."""
    times = []

    def compile_():
        times.append(1)
        return code

    return code_cache.cached_code(parts or ("source", "-O3"), compile_), len(times)


def test_the_second_time_it_is_read(cache):
    assert compiled() == (CODE, 1)
    assert compiled() == (CODE, 0)
    assert [path.suffix for path in cache.iterdir()] == [".cubin"]
    if os.name == "posix":
        assert cache.stat().st_mode & 0o777 == 0o700


def test_whatever_it_was_compiled_from_makes_another_entry(cache):
    compiled()
    for parts in (("source",), ("source", "-O3", ""), ("sourc", "e-O3"), ("source-O3",)):
        assert compiled(*parts)[1] == 1
    assert len(list(cache.iterdir())) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "longer", "other"])
def test_a_damaged_entry_is_compiled_anew_and_replaced(cache, damage):
    compiled()
    (entry,) = cache.iterdir()
    sound = entry.read_bytes()
    entry.write_bytes({
        "empty": b"", "cut": sound[:-1], "longer": sound + b"\0", "other": CODE,
        "flipped": sound[:100] + bytes([sound[100] ^ 1]) + sound[101:],
    }[damage])  # fmt: skip
    assert compiled() == (CODE, 1)
    assert entry.read_bytes() == sound
    assert compiled() == (CODE, 0)


def test_an_entry_that_is_not_a_file_is_ignored(cache):
    compiled()
    (entry,) = cache.iterdir()
    entry.unlink()
    entry.mkdir()
    assert compiled() == (CODE, 1)
    assert list(cache.iterdir()) == [entry]  # and no unfinished file next to it


@pytest.mark.skipif(os.name != "posix", reason="needs a FIFO, which POSIX systems have")
def test_an_entry_that_never_ends(cache):
    compiled()
    (entry,) = cache.iterdir()
    entry.unlink()
    os.mkfifo(entry)
    assert compiled() == (CODE, 1)


def test_a_folder_that_cannot_be_made_or_written(cache):
    cache.parent.mkdir()
    cache.write_text("a file")
    assert compiled() == compiled() == (CODE, 1)
    assert cache.read_text() == "a file"


def test_a_folder_without_the_right_to_write(cache, monkeypatch):
    def no_file(**_):
        raise PermissionError("read-only")

    monkeypatch.setattr(code_cache.tempfile, "mkstemp", no_file)
    assert compiled() == compiled() == (CODE, 1)
    monkeypatch.undo()


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(code_cache.os, "replace", full)
        assert compiled() == (CODE, 1)
    assert list(cache.iterdir()) == []


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.delenv("GATHERUM_CUDA_CACHE", raising=False)
    monkeypatch.setattr(code_cache.sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_cache.folder() == tmp_path / "xdg" / "gatherum" / "cuda"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # counts as unset by the standard
    if os.name == "posix":
        assert code_cache.folder() == tmp_path / ".cache" / "gatherum" / "cuda"
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", "  ")
    assert code_cache.folder().name == "cuda"
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", str(tmp_path / "here"))
    assert code_cache.folder() == tmp_path / "here"


def test_a_user_without_a_home(monkeypatch):
    def nowhere(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GATHERUM_CUDA_CACHE", raising=False)
    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert code_cache.folder() is None
    assert compiled() == compiled() == (CODE, 1)


def test_two_processes_at_once(cache):
    code = (
        "import sys; from gatherum.cuda import code_cache\n"
        "for turn in range(300):\n"
        "    code = bytes([turn % 7]) * 100_000\n"
        "    assert code_cache.cached_code((str(turn % 7),), lambda: code) == code\n"
        "    for path in code_cache.folder().glob('*.cubin'):\n"
        "        if turn % 5 == int(sys.argv[1]): path.unlink(missing_ok=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": SOURCE}
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(n)], env=environment) for n in range(2)
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert [path for path in cache.iterdir() if path.suffix != ".cubin"] == []
