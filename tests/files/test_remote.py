"""Tables at URLs: the results of local files, in few requests, from failing servers."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits, get, leftovers, put, put_zarr
from files.web import ALWAYS, FAULTS, Web, serving
from gatherum import files
from gatherum.files.remote import private, store, transport
from gatherum.files.remote.urls import UrlAddress, address_of

fsspec = pytest.importorskip("fsspec", reason="install gatherum[remote] to test URLs")
pytest.importorskip("aiohttp", reason="install gatherum[remote] to test URLs")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]

RNG = np.random.default_rng(0)
TABLE = RNG.integers(-(1 << 60), 1 << 60, (900, 40))
FLAT = ("npy", "fortran", "big-endian", "safetensors")
FORMS = (*FLAT, "zarr2", "zarr3", "shards")


# Only these faults have a short timeout; other responses may be slow on a busy machine.
SILENT = ("hanging", "trickling")


@pytest.fixture
def web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Web]:
    """Serve the folder of a test, with a short timeout for silent servers."""
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("fault") in SILENT:
        monkeypatch.setattr(store, "LONGEST", 1.5)
        monkeypatch.setattr(transport, "IDLE", 0.4)
    with serving(tmp_path) as web:
        yield web


def in_memory(path: str, folder: Path) -> str:
    """Copy a file or a folder to fsspec's memory, and return its URL."""
    system = fsspec.filesystem("memory")
    file = path.partition(":")[0]
    system.put(file, f"/{folder.name}/{os.path.basename(file)}", recursive=os.path.isdir(file))
    return f"memory://{folder.name}/{os.path.basename(path)}"


def at(*rows: int) -> Any:
    return np.array(rows)


def place(web: Web, path: str, where: str) -> str:
    return web.url(path) if where == "http" else in_memory(path, web.folder)


# ------------------------------------------------------------------ the same answers


@pytest.mark.parametrize(("where", "memory"), [("http", "16MiB"), ("memory", "512KiB")])
@pytest.mark.parametrize("form", FORMS)
def test_every_gather_has_the_bits_of_the_local_one(
    web: Web, form: str, where: str, memory: str
) -> None:
    url = place(web, put(web.folder, "t", TABLE, form), where)
    table = TABLE.astype(TABLE.dtype.newbyteorder(">")) if form == "big-endian" else TABLE
    rows = np.r_[RNG.integers(-900, 900, 300), [3, 3, -1, 0, 899]]
    order = RNG.integers(0, 900, (50, 40))
    points = np.stack([RNG.integers(0, 900, 60), RNG.integers(0, 40, 60)], 1)
    out = web.folder / "out.npy"
    for name, indices, call in (
        ("gather", rows, {}),
        ("gather", rows[:7].reshape(7, 1), {"mode": "fill", "fill_value": 3}),
        ("gather", np.array([7, 0, -1]), {"axis": 1}),
        ("gather_elements", order, {}),
        ("gather_nd", points, {}),
    ):
        expected = bits(getattr(gatherum, name)(table, indices, **call))
        run = getattr(files, f"{name}_file")
        assert bits(run(url, indices, memory=memory, **call)) == expected
        stats = run(url, indices, out, memory=memory, **call)
        assert bits(np.load(out))[::2] == expected[::2]
        assert stats.requests > 0 < stats.bytes_requested
    assert leftovers(web.folder) == []


@pytest.mark.parametrize(
    ("form", "where", "out"),
    [("npy", "http", "o.npy"), ("fortran", "memory", "o.zarr"), ("safetensors", "http", "o.zarr"),
     ("zarr2", "memory", "o.npy"), ("shards", "http", "o.zarr")],
)  # fmt: skip
def test_scatters_with_every_operand_at_a_url(web: Web, form: str, where: str, out: str) -> None:
    indices, updates = RNG.integers(0, 900, (500, 1)), RNG.integers(0, 99, (500, 40))
    operands = [
        place(web, put(web.folder, name, array, form), where)
        for name, array in (("t", TABLE), ("i", indices), ("u", updates))
    ]
    expected = gatherum.scatter_nd(TABLE, indices, updates, reduction="add")
    call: dict[str, Any] = {"reduction": "add", "memory": "256KiB"}
    assert bits(files.scatter_nd_file(*operands, **call)) == bits(expected)
    target = str(web.folder / out)
    files.scatter_nd_file(*operands, target, **call)
    assert bits(get(target)) == bits(expected)


def test_rows_in_batches(web: Web) -> None:
    url = web.url(put(web.folder, "t", TABLE))
    batches = [RNG.integers(0, 900, shape) for shape in ((5,), (), (2, 3), (0,))]
    result = list(files.rows(url, batches))
    assert [bits(rows) for rows in result] == [bits(gatherum.gather(TABLE, b)) for b in batches]


def test_a_run_is_resumed_with_any_signature(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    from gatherum.files.durable.build import Build

    indices = put(web.folder, "i", RNG.integers(0, 900, (900,)))
    url, out = web.url(put(web.folder, "t", TABLE)), str(web.folder / "o.npy")
    finish = Build.finish

    def stopped(build: Build, record: Any, nbytes: int) -> None:
        finish(build, record, nbytes)
        build.checkpoint()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Build, "finish", stopped)
        files.gather_file(url + "?signature=one", indices, out, memory="256KiB")
    journal = (web.folder / "o.npy.partial.journal").read_text()
    assert "window" in journal and "signature" not in journal
    stats = files.gather_file(url + "?signature=two", indices, out, memory="256KiB", resume=True)
    assert np.array_equal(np.load(out), TABLE[np.load(indices)])
    assert stats.rows == 900


def test_the_command_takes_urls(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    cli = pytest.importorskip(
        "gatherum._command.cli.command_group", reason="install click to test the command"
    )
    url, out = web.url(put(web.folder, "t", TABLE)), str(web.folder / "o.npy")
    import gatherum._command.cli  # noqa: F401

    assert cli.run(["gather", url, "--values", "3,1", "-o", out]) == 0
    assert np.array_equal(np.load(out), TABLE[[3, 1]])
    assert re.search(r" [34] requests for 64\.\d KiB\n", capsys.readouterr().out)


# --------------------------------------------------------------------- few requests


def test_a_row_of_a_model_takes_the_header_and_the_row(web: Web) -> None:
    table = RNG.random((30000, 64)).astype(np.float32)
    url = web.url(put(web.folder, "model", table, "safetensors"))
    web.asked.clear()
    stats = files.gather_file(url, np.array([29000]), web.folder / "o.npy")
    assert [stop - start for start, stop in web.ranges] == [64 << 10, 256, 1]
    assert (stats.requests, stats.bytes_requested) == (3, (64 << 10) + 256 + 1)
    assert stats.bytes_read < 70000 < table.nbytes


@pytest.mark.parametrize(
    ("count", "step", "requests"), [(20, 1, 1), (20, 6, 1), (20, 20, 3), (20, 40, 20)]
)
def test_rows_that_lie_near_share_a_request(web: Web, count: int, step: int, requests: int) -> None:
    table = np.arange(1000 * 512, dtype=np.int64).reshape(1000, 512)  # a page is a row
    url = web.url(put(web.folder, "t", table))
    numbers = np.arange(100, 100 + count * step, step)
    web.asked.clear()
    result = files.gather_file(url, RNG.permutation(numbers), memory="1GiB")
    assert np.array_equal(np.sort(result[:, 0]), numbers * 512)
    # the first request is for the header, the last one checks that the file is the same
    assert len(web.ranges) - 2 == requests


@pytest.mark.parametrize("chunks", [None, (100, 128), (4000, 4)])
def test_requests_at_once_are_bounded(web: Web, chunks: tuple[int, int] | None) -> None:
    table = RNG.random((4000, 128))
    path = put(web.folder, "t", table)
    if chunks is not None:
        path = put_zarr(str(web.folder / "t.zarr"), table, chunks=chunks)
    web.pause = 0.1
    result = files.gather_file(web.url(path), np.arange(0, 4000, 50))
    assert np.array_equal(result, table[::50])
    assert 4 < web.most <= store.AT_ONCE


def test_a_dense_gather_reads_parts_ahead(web: Web) -> None:
    table = np.arange(1 << 19, dtype=np.int64)
    web.pause = 0.05
    indices = RNG.permutation(table)
    assert np.array_equal(files.gather_file(web.url(put(web.folder, "t", table)), indices), indices)
    assert 2 < web.most <= store.AT_ONCE
    assert sum(stop - start for start, stop in web.ranges) < 1.1 * table.nbytes


def test_chunks_ahead_keep_to_the_memory(web: Web) -> None:
    table = RNG.random((4000, 128))
    path = put_zarr(str(web.folder / "t.zarr"), table, chunks=(400, 128))  # of 400 KiB
    web.pause = 0.01
    rows = np.arange(0, 4000, 50)
    assert np.array_equal(files.gather_file(web.url(path), rows, memory="3MiB"), table[rows])
    assert web.most <= 2


# ----------------------------------------------------------------------- failures

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
    kind = FileNotFoundError if fault == "404" else OSError
    with pytest.raises(kind) as caught:
        files.gather_file(url, RNG.integers(0, 900, 5000), out, memory="4MiB")
    message = str(caught.value).removeprefix(f"{url}: ")
    assert re.fullmatch(SENTENCES[fault], message), message
    assert np.array_equal(np.load(out), np.arange(3))


@pytest.mark.parametrize("form", ["npy", "zarr3"])
@pytest.mark.parametrize("fault", sorted(RECOVERED))
def test_a_fault_that_passes_is_not_seen(web: Web, fault: str, form: str) -> None:
    url = web.url(put(web.folder, "t", TABLE, form))
    if form == "zarr3" and fault in ("short", "long", "shifted"):
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


@pytest.mark.parametrize("form", ["npy", "zarr3"])
@pytest.mark.parametrize("streamed", [False, True])
def test_ctrl_c_does_not_wait_for_the_server(
    web: Web, monkeypatch: pytest.MonkeyPatch, form: str, streamed: bool
) -> None:
    monkeypatch.setattr(store, "LONGEST", 60.0)
    monkeypatch.setattr(transport, "IDLE", 60.0)
    url = web.url(put(web.folder, "t", TABLE, form))
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


# ------------------------------------------------------------------------- secrets

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


@pytest.mark.parametrize("form", ["npy", "zarr3"])
@pytest.mark.parametrize("fault", [*FAULTS, "nowhere", "shape"])
def test_no_error_and_no_log_shows_a_secret(
    web: Web, fault: str, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = web.url(put(web.folder, "t", TABLE, form))
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


# -------------------------------------------------------------------- refusals


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
    assert str(caught.value) == words


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


# ------------------------------------------------------------------------ obstore


def test_s3_by_obstore(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore.fsspec", reason="install obstore to test S3")
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "s3", None)
    obstore.register("s3")
    (web.folder / "bucket").mkdir()
    path = put(web.folder / "bucket", "t", TABLE)
    options = {
        "config": {
            "endpoint": f"http://{web.address}", "skip_signature": True, "region": "x",
            "virtual_hosted_style_request": False,
        },
        "client_options": {"allow_http": True},
    }  # fmt: skip
    result = files.gather_file(
        f"s3://bucket/{Path(path).name}", at(3, 800), storage_options=options
    )
    assert np.array_equal(result, TABLE[[3, 800]])


def test_fsspec_without_private_names(tmp_path: Path) -> None:
    """Its documented functions replace them."""
    import asyncio

    from gatherum._system import private_names

    class Bare:
        async_impl = True

        def info(self, path: str) -> str:
            return f"{path} {threading.current_thread() is threading.main_thread()}"

    assert private_names.missing(private.NAMES) == []
    url = in_memory(put(tmp_path, "t", TABLE, "npy"), tmp_path)
    system = fsspec.filesystem("memory")
    assert private.options_in(Bare, url) == {}
    assert private.path_in(Bare(), url) == private.path_in(system, url)
    assert system.cat_file(private.path_in(Bare(), url)) == (tmp_path / "t.npy").read_bytes()
    assert asyncio.run(private.call(Bare(), "info", "p")) == "p False"
