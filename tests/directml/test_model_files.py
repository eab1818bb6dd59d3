"""`gatherum run` writes regular files below one folder: all of them or none."""

import json
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="install the command line: pip install click rich")
from gatherum._command import cli
from gatherum.directml.members import shortened

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and special files of POSIX")
IDS = {"initialValuesDataType": "UINT32", "initialValues": [3, 1]}
BYTES = np.array([3, 1], np.uint32).tobytes()


def write(path: str) -> dict[str, object]:
    """Return a command that writes a file."""
    return {"type": "writeFile", "resource": "ids", "targetPath": path}


def model(*paths: str, **resources: object) -> str:
    """Return a model that writes files, as JSON."""
    commands = [write(path) for path in paths]
    content = {"resources": {"ids": IDS, **resources}, "dispatchables": {}, "commands": commands}
    return json.dumps(content)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def run(folder, capfd):
    """Run a model in a folder. Return the exit status and the error."""

    def call(source, *options):
        (folder / "model.json").write_text(source)
        status = cli.run(["run", "model.json", *options])
        return status, capfd.readouterr().err

    return call


def wrong(path):
    return (
        1,
        "gatherum: model.json: `commands[0].targetPath` must be a relative path to a file in the "
        f"output folder, got {shortened(path)}\n",
    )


def test_files_appear_below_the_present_folder(run, folder):
    (folder / "a.bin").write_text("old")
    assert run(model("a.bin", "new/deep/b.bin", "new/../c.bin")) == (0, "")
    assert [(folder / name).read_bytes() for name in ("a.bin", "new/deep/b.bin", "c.bin")] == [
        BYTES
    ] * 3
    assert sorted(os.listdir(folder)) == ["a.bin", "c.bin", "model.json", "new"]


def test_files_appear_below_another_folder(run, folder):
    assert run(model("a.bin"), "--output", "out/put") == (0, "")
    assert (folder / "out" / "put" / "a.bin").read_bytes() == BYTES
    assert sorted(os.listdir(folder)) == ["model.json", "out"]
    status, err = run(model("a.bin", "../b.bin"), "--output", "out/put")
    assert (status, err) == (1, wrong("../b.bin")[1].replace("[0]", "[1]"))
    assert run(model("a.bin"), "--output", "-") == (
        2, "gatherum: DIR is a folder of files, which standard output (-) is not. "
        "See gatherum run --help.\n",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "", ".", "new/", "..", "a\0b"])
def test_a_path_that_leads_out_of_the_folder(run, folder, path):
    source = model(str(folder.parent / "x") if path == "/x" else path)
    assert run(source) == wrong(str(folder.parent / "x") if path == "/x" else path)
    assert os.listdir(folder) == ["model.json"]
    assert os.listdir(folder.parent) == ["here"]


def test_an_absolute_path_into_the_folder(run, folder):
    path = str(folder / "a.bin")
    assert run(model(path)) == wrong(path)


@POSIX
def test_links_that_lead_out_of_the_folder(run, folder):
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("dear")
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "file")
    (folder / "nothing").symlink_to(outside / "nothing")
    for path in ("out/new", "file", "nothing"):
        assert run(model(path)) == wrong(path)
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "dear"


@POSIX
def test_a_link_inside_of_the_folder_is_followed(run, folder):
    (folder / "a.bin").write_text("old")
    (folder / "link").symlink_to("a.bin")
    assert run(model("link")) == (0, "")
    assert (folder / "link").is_symlink()
    assert (folder / "a.bin").read_bytes() == BYTES


@POSIX
@pytest.mark.parametrize("file_type", ["FIFO", "socket", "directory"])
def test_special_files_are_not_replaced(run, folder, file_type):
    if file_type == "directory":
        (folder / "a").mkdir()
    else:
        os.mknod(
            folder / "a", stat.S_IFIFO | 0o600 if file_type == "FIFO" else stat.S_IFSOCK | 0o600
        )
    before = os.lstat(folder / "a")
    assert run(model("first.bin", "a")) == (
        1, f"gatherum: a: is a {file_type}, not a regular file\n"
    )  # fmt: skip
    assert os.lstat(folder / "a") == before
    assert sorted(os.listdir(folder)) == ["a", "model.json"]


@pytest.mark.parametrize("path", ["model.json", "./model.json", "values.npy", "link.json"])
def test_a_file_that_is_read_is_not_replaced(run, folder, path):
    np.save("values.npy", np.zeros(2, np.float32))
    os.link("values.npy", "hard.npy")
    (folder / "link.json").symlink_to("model.json")
    values = {"initialValues": {"sourcePath": "hard.npy"}}
    source = model(path, values=values)
    assert run(source) == (
        1,
        "gatherum: model.json: `commands[0].targetPath` must be no file that the run reads, the "
        f'model or initial values, got "{path}"\n',
    )
    assert (folder / "model.json").read_text() == source
    assert np.load("values.npy").tolist() == [0, 0]


def test_all_files_of_a_run_appear_or_none(run, folder):
    (folder / "a.bin").write_text("old")
    (folder / "file").write_text("old")
    status, err = run(model("a.bin", "new/b.bin", "file/c.bin"))
    assert (status, err) == (1, "gatherum: file/c.bin: Not a directory\n")
    status, err = run(model("a.bin", "new", "new/b.bin"))
    assert (status, err) == (1, "gatherum: new: Is a directory\n")
    assert sorted(os.listdir(folder)) == ["a.bin", "file", "model.json"]
    assert (folder / "a.bin").read_text() == (folder / "file").read_text() == "old"


def test_files_of_others_stay(run, folder):
    foreign = folder / f"a.bin.{os.getpid()}.partial"
    foreign.write_text("dear")
    assert run(model("a.bin")) == (0, "")
    assert foreign.read_text() == "dear"
    assert sorted(Path(name).name for name in os.listdir(folder)) == [
        "a.bin", foreign.name, "model.json",
    ]  # fmt: skip
