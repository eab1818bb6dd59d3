"""Tables at URLs: failing servers, changed files and secrets in messages."""

import json
import logging
import os
import re
import signal
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import put
from files.web import ALWAYS, FAULTS, Web, in_memory
from gatherum import files
from gatherum.files.remote import store, transport

fsspec = pytest.importorskip("fsspec", reason="install gatherum[remote] to test URLs")
pytest.importorskip("aiohttp", reason="install gatherum[remote] to test URLs")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]

RNG = np.random.default_rng(0)
TABLE = RNG.integers(-(1 << 60), 1 << 60, (900, 40))


def at(*rows: int) -> Any:
    return np.array(rows)


RECOVERED = {"500", "503", "429", "cut off", "dropped", "short", "long", "shifted", "no HTTP",
             "redirected"}  # fmt: skip
SENTENCES = {
    "500": r"the server answered 500 \(Internal Server Error\) \(6 tries\)",
    "503": r"the server answered 503 \(Service Unavailable\) \(6 tries\)",
    "429": r"the server answered 429 \(Too Many Requests\) \(6 tries\)",
    "403": r"the server answered 403 \(Forbidden\)",
    "404": r"the server answered 404 \(Not Found\)",
    "400": r"the server answered 400 \(Bad Request\)",
    "416": r"the server answered 416 \(.*\)",
    "cut off": r"the answer was cut off \(6 tries\)",
    "dropped": r"the connection was lost \(6 tries\)",
    "hanging": r"(nothing came for 0.4|there was no answer within 1.5) s \(\d tries\)",
    "trickling": r"there was no answer within 1.5 s",
    "endless": r"the server gave more than the \d+ bytes that it announced \(6 tries\)",
    "short": r"the answer ended after \d+ of \d+ bytes \(6 tries\)",
    "long": r"the server gave more than the \d+ bytes that it announced \(6 tries\)",
    "shifted": r"the server gave bytes \d+ to \d+ of \d+ for \d+ to \d+ \(6 tries\)",
    "whole": r"the server does not give parts of files \(status 200 in place of 206\)",
    "unsized": r"the server does not say how large the file is \(Content-Range\)",
    "unranged": r"the server does not say how large the file is \(Content-Range\)",
    "compressed": r"the server compresses what it was asked for as it is",
    "no HTTP": r"the (answer is not HTTP|connection was lost) \(6 tries\)",
    "redirected": r"the server redirects more than 10 times",
    "redirected away": r"the server redirects to what is not HTTP",
    "redirected nowhere": r"the URL, or one that it redirects to, is not understood",
}  # fmt: skip


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_one_message(web: Web, fault: str, after: int) -> None:
    url, out = web.url(put(web.folder, "t", TABLE)), web.folder / "o.npy"
    np.save(out, np.arange(3))
    web.fail(fault, times=ALWAYS, after=after)
    error_type = FileNotFoundError if fault == "404" else OSError
    with pytest.raises(error_type) as caught:
        files.gather_file(url, RNG.integers(0, 900, 5000), out, memory="4MiB")
    message = str(caught.value).removeprefix(f"{url}: ")
    assert re.fullmatch(SENTENCES[fault], message), message
    assert np.array_equal(np.load(out), np.arange(3))


@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
@pytest.mark.parametrize("fault", sorted(RECOVERED))
def test_a_fault_that_passes_is_not_seen(web: Web, fault: str, file_format: str) -> None:
    url = web.url(put(web.folder, "t", TABLE, file_format))
    if file_format == "zarr3" and fault in ("short", "long", "shifted"):
        pytest.skip("whole objects have no range")
    for after in (0, 1, 2):
        web.fail(fault, times=2, after=after)
        assert np.array_equal(
            files.gather_file(url, at(899, 1, 450))[:, 0], TABLE[[899, 1, 450], 0]
        )
        assert web.times == 0


def test_a_redirect_to_plain_http_is_refused() -> None:
    class Plain:
        status, headers, url = 206, {}, types.SimpleNamespace(scheme="http")

        async def __aenter__(self) -> "Plain":
            return self

        async def __aexit__(self, *error: object) -> None:
            pass

    async def client(**options: Any) -> Any:
        return types.SimpleNamespace(get=lambda url, **options: Plain(), close=None)

    with pytest.raises(OSError, match=r"t.npy: the server redirects from https to http$"):
        files.gather_file("https://host/t.npy", at(0), storage_options={"get_client": client})


def test_a_server_that_is_not_there(web: Web) -> None:
    with pytest.raises(OSError, match=r"^http://127.0.0.1:9/t.npy: the server cannot be reached "):
        files.gather_file("http://127.0.0.1:9/t.npy", at(0))


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("after", [1, 2])
def test_content_that_changes_is_an_error(web: Web, marks: bool, after: int) -> None:
    path = put(web.folder, "t", TABLE)
    web.marks = marks  # without any, only the size differs
    changed = TABLE + 1 if marks else TABLE[:-1]

    def change(answer: Any) -> None:
        np.save(path, changed)
        answer.content = Path(path).read_bytes()
        answer.plain()

    web.fail(change, after=after)
    with pytest.raises(OSError, match=r"t.npy: (it )?changed while it was being read$"):
        files.gather_file(web.url(path), at(1))


def test_one_answer_of_another_version_is_an_error(web: Web) -> None:
    path = put(web.folder, "t", TABLE)
    other = Path(put(web.folder, "other", TABLE + 1)).read_bytes()

    def swap(answer: Any) -> None:
        answer.content = other
        answer.plain()

    web.fail(swap, after=1)
    with pytest.raises(OSError, match=r"t.npy: it changed while it was being read$"):
        files.gather_file(web.url(path), at(1, 400, 800))


def test_a_changed_object_of_another_filesystem_raises(web: Web) -> None:
    url = in_memory(put(web.folder, "t", TABLE), web.folder)
    result = files.rows(url, iter([[1], [2], [3]]))
    assert np.array_equal(next(result), TABLE[[1]])
    fsspec.filesystem("memory").pipe(url, b"other")
    with pytest.raises(OSError, match=r"^memory://\S+/t.npy: "):
        list(result)


def test_a_chunk_that_is_missing_is_filled_and_one_that_fails_is_not(web: Web) -> None:
    path = put(web.folder, "t", TABLE, "zarr3")
    (Path(path) / "c" / "0" / "0").unlink()
    result = files.gather_file(web.url(path), at(0, 899))
    assert np.array_equal(result[1], TABLE[899])
    assert not result[0, :6].any()
    for fault, words in (("403", r"403 \(Forbidden\)"), ("500", "500")):
        web.fail(fault, times=ALWAYS, only="/c/")
        with pytest.raises(OSError, match=rf"t.zarr/c/\d/\d: the server answered {words}"):
            files.gather_file(web.url(path), at(0, 899))


def test_a_zarr_array_whose_metadata_change(web: Web) -> None:
    path = put(web.folder, "t", TABLE, "zarr3")

    def change(answer: Any) -> None:
        metadata = json.loads((Path(path) / "zarr.json").read_text())
        (Path(path) / "zarr.json").write_text(json.dumps({**metadata, "attributes": {"a": 1}}))
        answer.plain()

    web.fail(change, after=1)
    with pytest.raises(OSError, match=r"t.zarr: changed while it was being read"):
        files.gather_file(web.url(path), at(0, 899))


def test_no_more_is_read_than_a_chunk_can_have(web: Web) -> None:
    path = put(web.folder, "t", TABLE, "zarr3")
    web.fail("endless", times=ALWAYS, only="/c/")
    with pytest.raises(OSError, match=r"c/0/\d: it has more than the \d+ bytes that are read$"):
        files.gather_file(web.url(path), at(0))
    web.fail("endless", times=ALWAYS, only="zarr.json")
    with pytest.raises(OSError, match=r"zarr.json: it has more than the 16777216 bytes"):
        files.gather_file(web.url(path), at(0))
    (Path(path) / "c" / "0" / "0").write_bytes(bytes(200_000))
    web.fail("500", times=0)
    with pytest.raises(OSError, match=r"c/0/0: it has 200000 bytes, at most \d+ are read$"):
        files.gather_file(web.url(path), at(0))
    url = in_memory(path, web.folder)
    with pytest.raises(OSError, match=r"c/0/0: it has more than the \d+ bytes that are read$"):
        files.gather_file(url, at(0))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "not a .npy file"),
        (b"\x93NUMPY\1\0\xff\xff", "reaches past the end"),
        (b"\x93NUMPY\2\0\xff\xff\xff\x7f", "is not believable"),
    ],
)
def test_damaged_files_are_refused_as_local_ones(web: Web, header: bytes, words: str) -> None:
    (web.folder / "t.npy").write_bytes(header + bytes(20) if header else b"")
    with pytest.raises(ValueError, match=rf"t.npy: .*{words}"):
        files.gather_file(web.url(web.folder / "t.npy"), at(0))


@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
@pytest.mark.parametrize("streamed", [False, True])
def test_ctrl_c_does_not_wait_for_the_server(
    web: Web, monkeypatch: pytest.MonkeyPatch, file_format: str, streamed: bool
) -> None:
    monkeypatch.setattr(store, "LONGEST", 60.0)
    monkeypatch.setattr(transport, "IDLE", 60.0)
    url = web.url(put(web.folder, "t", TABLE, file_format))
    web.fail("hanging", times=ALWAYS, after=1)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            call: dict[str, Any] = {"memory": "256KiB"}
            if streamed:
                list(files.rows(url, [at(0, 899)], **call))
            files.gather_file(url, at(0, 899), **call)
    finally:
        timer.cancel()
    assert time.monotonic() - began < 10


SECRETS = ("hunter2", "sIgNaTuRe", "tOkEn")


def test_the_secrets_are_sent(web: Web) -> None:
    files.gather_file(_secret(web.url(put(web.folder, "t", TABLE))), at(0), **_options())
    assert web.headers[0]["X-Key"] == "tOkEn"
    assert web.headers[0]["Authorization"].startswith("Basic ")
    assert web.headers[0]["Accept-Encoding"] == "identity"


def _secret(url: str) -> str:
    protocol, _, address = url.partition("://")
    return f"{protocol}://user:hunter2@{address}?X-Amz-Signature=sIgNaTuRe"


def _options() -> dict[str, Any]:
    return {"storage_options": {"headers": {"X-Key": "tOkEn"}}}


@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
@pytest.mark.parametrize("fault", [*FAULTS, "nowhere", "shape"])
def test_no_error_and_no_log_shows_a_secret(
    web: Web, fault: str, file_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = web.url(put(web.folder, "t", TABLE, file_format))
    if fault == "nowhere":
        url = url.replace(web.address, "127.0.0.1:9")
    elif fault == "shape":
        url = url.replace("t.", "other.")
    else:
        web.fail(fault, times=ALWAYS, after=1)
    operands, attributes = (
        {"table": _secret(url), "indices": np.arange(9)},
        {"axis": 0, "mode": "raise"},
    )
    settings = files.file_call.RunSettings(**_options())
    call = files.file_call.FileCall(
        "gather", operands, None, {**attributes, "negative": True}, settings
    )
    try:
        call.run()
        shown = ""
    except (OSError, ValueError) as error:
        shown = "".join(traceback.format_exception(error)) + repr(error)
        chain: list[BaseException | None] = [error]
        while chain[-1]:
            chain += [chain[-1].__context__]
        assert chain == [error, None] or isinstance(error, ValueError)
    shown += caplog.text + repr(call)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hun/ter2@host/t.npy",
        "https://user:hun?ter2@host/t.npy",
        "https://user:hun#ter2@host/t.npy",
        "https://user:hunter2@host/t.npy?a=b@c",
        "simplecache::https://user:hunter2@host/t.npy",
        "https:/user:hunter2@host/t.npy",
        "https://user:hunter2@host/t.npy ",
        "https://user:hunter2@host/t.txt?sig=sIgNaTuRe",
        "https://user:hunter2@host/t.h5:a?sig=sIgNaTuRe",
        "https://user:hunter2@[host/t.npy?sig=sIgNaTuRe",
        "nothing://user:hunter2@host/t.npy?sig=sIgNaTuRe",
        "file:///hunter2/t.npy",
        "local:///hunter2/t.npy",
    ],
)
def test_urls_that_are_refused_show_no_secret(url: str) -> None:
    with pytest.raises((ValueError, OSError)) as caught:
        files.gather_file(url, at(0))
    message = "".join(traceback.format_exception(caught.value)).rpartition("Error: ")[2]
    assert not re.search("hun|ter2|sIg|user", message), message
