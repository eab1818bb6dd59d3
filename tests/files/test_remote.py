"""Tables at URLs: the results of local files, in few requests."""

import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits, get, leftovers, put, put_zarr
from files.web import Web, in_memory
from gatherum import files
from gatherum.files.remote import private, store

fsspec = pytest.importorskip("fsspec", reason="install gatherum[remote] to test URLs")
pytest.importorskip("aiohttp", reason="install gatherum[remote] to test URLs")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]

RNG = np.random.default_rng(0)
TABLE = RNG.integers(-(1 << 60), 1 << 60, (900, 40))
FLAT = ("npy", "fortran", "big-endian", "safetensors")
FORMS = (*FLAT, "zarr2", "zarr3", "shards")


def at(*rows: int) -> Any:
    return np.array(rows)


def place(web: Web, path: str, where: str) -> str:
    return web.url(path) if where == "http" else in_memory(path, web.folder)


@pytest.mark.parametrize(("where", "memory"), [("http", "16MiB"), ("memory", "512KiB")])
@pytest.mark.parametrize("file_format", FORMS)
def test_every_gather_has_the_bits_of_the_local_one(
    web: Web, file_format: str, where: str, memory: str
) -> None:
    url = place(web, put(web.folder, "t", TABLE, file_format), where)
    table = TABLE.astype(TABLE.dtype.newbyteorder(">")) if file_format == "big-endian" else TABLE
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
    ("file_format", "where", "out"),
    [("npy", "http", "o.npy"), ("fortran", "memory", "o.zarr"), ("safetensors", "http", "o.zarr"),
     ("zarr2", "memory", "o.npy"), ("shards", "http", "o.zarr")],
)  # fmt: skip
def test_scatters_with_every_operand_at_a_url(
    web: Web, file_format: str, where: str, out: str
) -> None:
    indices, updates = RNG.integers(0, 900, (500, 1)), RNG.integers(0, 99, (500, 40))
    operands = [
        place(web, put(web.folder, name, array, file_format), where)
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
