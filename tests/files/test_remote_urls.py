"""URLs and their options: how they are read, and the errors for unsupported ones."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import put
from files.web import Web
from gatherum import files
from gatherum.files.remote.urls import UrlAddress, address_of

fsspec = pytest.importorskip("fsspec", reason="install gatherum[remote] to test URLs")
pytest.importorskip("aiohttp", reason="install gatherum[remote] to test URLs")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]

RNG = np.random.default_rng(0)
TABLE = RNG.integers(-(1 << 60), 1 << 60, (900, 40))


def at(*rows: int) -> Any:
    return np.array(rows)


def test_how_urls_are_read() -> None:
    address = address_of("HTTPS://u:p@host:80/a/b.npy?x=y:z#c")
    assert address is not None
    assert (str(address), address.member) == ("https://host:80/a/b.npy", "c")
    assert address.reveal() == "https://u:p@host:80/a/b.npy?x=y:z"
    assert address.below("k").reveal() == "https://u:p@host:80/a/b.npy/k?x=y:z"
    assert address.named("https://host:80/a").reveal() == "https://u:p@host:80/a?x=y:z"
    assert "u:p" not in repr(address) and "x=y" not in repr(address)
    assert address_of("s3://bucket/a#b@c.npy") is not None
    for text in ("t.npy", "a:b.npy", "/x://y.npy", "model.safetensors:a"):
        assert address_of(text) is None


def test_members_are_named_after_a_colon_or_a_hash(web: Web) -> None:
    url = web.url(put(web.folder, "m", TABLE, "safetensors"))
    file = url.removesuffix(":wanted")
    for name in (url, f"{url}?a=b", f"{file}#wanted", f"{file}?a=b#wanted"):
        assert np.array_equal(files.gather_file(name, at(5)), TABLE[[5]])
    with pytest.raises(ValueError, match=r"m.safetensors: name one of its 3 tensors"):
        files.gather_file(file, at(5))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t.npy#a", "t.npy: expected 'x.npy' alone, got '#a' behind it"),
        ("t.npy?x=y#a", "t.npy: expected 'x.npy' alone, got '#a' behind it"),
        (
            "t.zarr/b#a",
            "t.zarr/b: expected a Zarr directory such as 'x.zarr' alone, got '#a' behind it",
        ),
        ("m.safetensors:a#b", "m.safetensors: the array is named twice, 'a' and 'b'"),
    ],
)
def test_a_name_that_would_be_ignored_is_refused(web: Web, name: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"http://{web.address}/{name}", at(5))
    assert str(caught.value) == f"http://{web.address}/{words}"
    assert web.asked == []


@pytest.mark.parametrize("in_place", [False, True])
def test_outputs_are_local(web: Web, in_place: bool) -> None:
    url = web.url(put(web.folder, "t", TABLE))
    words = rf"^scatter_nd: the output {url} is a URL; outputs are local files$"
    with pytest.raises(ValueError, match=words):
        files.scatter_nd_file(url, at(0)[None], TABLE[:1], url, in_place=in_place)
    assert web.asked == []


@pytest.mark.parametrize("name", ["t.h5:a", "t.parquet:a", "t.npz:a"])
def test_formats_that_are_not_read_from_urls(name: str) -> None:
    words = rf"^https://host/{name}: \w+ files are not read from URLs; download it$"
    with pytest.raises(ValueError, match=words):
        files.gather_file(f"https://host/{name}", at(0))


def test_commands_that_take_no_urls(capsys: pytest.CaptureFixture[str]) -> None:
    cli = pytest.importorskip("gatherum._command.cli", reason="install click to test the command")
    for line in (["check", "https://u:hunter2@host/m.onnx"],
                 ["gather", "t.npy", "https://u:hunter2@host/i.csv", "-o", "o.npy"]):  # fmt: skip
        assert cli.run(line) == 1
        assert re.search(
            r"^gatherum: https://host/\S+: .*; download it\n$", capsys.readouterr().err
        )


def test_a_protocol_whose_package_is_missing() -> None:
    if any(map(_is_there, ("s3fs",))):
        pytest.skip("s3fs is installed")
    with pytest.raises(ImportError, match=r"^s3://bucket/t.npy: .*s3fs"):
        files.gather_file("s3://bucket/t.npy", at(0))


def _is_there(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_options_that_do_not_fit_are_refused(web: Web) -> None:
    with pytest.raises(ValueError, match=r"ftp://host/t.npy: fsspec's filesystem for ftp:// does"):
        files.gather_file("ftp://host/t.npy", at(0), storage_options={"port": "tOkEn"})


@pytest.mark.parametrize("call", [files.gather_file, files.rows])
@pytest.mark.parametrize(
    ("options", "description"),
    [
        ([("headers", {"X-Key": "tOkEn"})], "list"),
        ("tOkEn", "str"),
        (0, "int"),
        ({b"tOkEn": 1}, "a key of type bytes"),
    ],
)
def test_options_of_a_wrong_form_are_refused(call: Any, options: Any, description: str) -> None:
    with pytest.raises(TypeError) as caught:
        call("http://host/t.npy", at(0), storage_options=options)
    words = f"`storage_options` must be a dict whose keys are of type str, got {description}"
    assert str(caught.value) == f"{call.__name__.removesuffix('_file')}: {words}"


@pytest.mark.parametrize(
    "options",
    [
        {"headers": ["tOkEn"]},
        {"headers": {"X-Key": 5}},
        {"headers": {"X-Key": "a\ntOkEn"}},
        {"tOkEn": 1},
        {"ssl": "tOkEn"},
        {"client_kwargs": {"tOkEn": 1}},
        {"client_kwargs": "tOkEn"},
        {"get_client": "tOkEn"},
        {"loop": "tOkEn"},
        {"asynchronous": True},
    ],
)
def test_options_that_http_does_not_take_are_refused(web: Web, options: dict[str, Any]) -> None:
    url = web.url(put(web.folder, "t", TABLE))
    words = r" fsspec's filesystem for http:// does not take these storage_options \(\w+Error\)"
    with pytest.raises(ValueError, match=rf"^{url}:{words}$") as caught:
        files.gather_file(url, at(0), storage_options=options)
    assert caught.value.__context__ is None
    assert web.asked == []


@pytest.mark.parametrize(
    "url", ["ftp://user:hunter2@127.0.0.1:9/t.npy", "ftp://user:hunter2@127.0.0.1:9/t.zarr"]
)
def test_a_filesystem_that_connects_at_once_may_not_reach_its_server(url: str) -> None:
    words = rf"^{url.replace('user:hunter2@', '')}: the server cannot be reached \(\w+Error\)$"
    with pytest.raises(OSError, match=words) as caught:
        files.gather_file(url, at(0))
    assert caught.value.__context__ is None


def test_a_file_that_options_name_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_key(address: Any) -> type:
        return type("Keyed", (fsspec.AbstractFileSystem,), {"__init__": missing})

    def missing(self: Any, key: str) -> None:
        raise FileNotFoundError(key)

    monkeypatch.setattr(UrlAddress, "require", without_key)
    words = r"^keyed://t.npy: .*take these storage_options \(FileNotFoundError\)$"
    with pytest.raises(ValueError, match=words):
        files.gather_file("keyed://t.npy", at(0), storage_options={"key": "tOkEn"})


def test_local_files_import_nothing_of_it(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    code = (
        "import sys; from gatherum import files; files.gather_file(*sys.argv[1:]); "
        "print([m for m in ('fsspec', 'aiohttp', 'yarl', 'zarr') if m in sys.modules])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code, path, put(tmp_path, "i", at(0))],
        check=True,
        capture_output=True,
        text=True,
    )
    assert completed.stdout == "[]\n"
