"""The core's reads of file rows: the right bytes in the right places for any arguments."""

import errno
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from canaries import guarded, strays
from files.storage import choose_pass
from gatherum._system import native
from gatherum.files import gather_file
from gatherum.files.resources.disk import DiskFile, Reading, StoredRows
from gatherum.files.resources.stats import Meter

PAGE = 4096
EXTENT = 3000
UNTOUCHED = 0xA5
Ints = NDArray[np.int64]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DiskFile]:
    """Make a file of random bytes: 3000 rows of 512 bytes after 128 other bytes."""
    raw = np.random.default_rng(0).integers(0, 256, 128 + EXTENT * 512, np.uint8)
    (tmp_path / "rows").write_bytes(raw.tobytes())
    opened = DiskFile(str(tmp_path / "rows"), Meter())
    yield opened
    opened.close()


def rows_of(file: DiskFile, stored: StoredRows) -> NDArray[np.uint8]:
    """Read a file's rows without the core."""
    raw = np.fromfile(file.path, np.uint8)
    needed = stored.base + (stored.extent - 1) * stored.stride + stored.item
    assert needed <= raw.size
    shape, strides = (stored.extent, stored.item), (stored.stride, 1)
    return np.ndarray(shape, np.uint8, raw.data, stored.base, strides)


def ask(
    file: DiskFile,
    stored: StoredRows,
    numbers: Any,
    places: Any = None,
    *,
    space: int | None = None,
    waste: float = 1.0,
    once: bool = False,
    scratch: int = 1 << 20,
) -> tuple[NDArray[np.uint8], int]:
    """Read rows into memory with canaries around it. Return it and the number of reads."""
    numbers = np.asarray(numbers, np.int64)
    places = places if places is None else np.asarray(places, np.int64)
    into = guarded((numbers.size if space is None else space, stored.item), np.uint8)
    into[...] = UNTOUCHED
    try:
        reading = Reading(waste, once, scratch)
        runs = file.read_rows(stored, numbers, places, into.reshape(-1), reading)
    finally:
        assert strays(into) == []
    return into, runs


@pytest.mark.parametrize("seed", range(40))
def test_any_rows_come_to_any_places(file: DiskFile, seed: int) -> None:
    rng = np.random.default_rng(seed)
    item = int(rng.choice([1, 2, 3, 4, 8, 16, 17, 512, 5000]))
    stride = item + int(rng.choice([0, 0, 1, 700]))
    base = int(rng.integers(0, 5000))
    extent = (file.size - base - item) // stride + 1
    stored = StoredRows(base, stride, item, extent)
    rows = rows_of(file, stored)
    count = int(rng.integers(1, 4000))
    numbers = rng.integers(0, extent, count)
    distribution = rng.choice(["random", "sorted", "few", "straight", "pieces"])
    if distribution == "few":
        numbers = rng.choice(numbers[:3], count)
    if distribution in ("sorted", "few"):
        numbers.sort()
    if distribution == "straight":
        numbers = np.arange(min(count, extent))
    if distribution == "pieces":
        numbers = (numbers[0] + np.arange(count) + np.arange(count) // 50 * 7) % extent
    places = None if rng.random() < 0.4 else rng.permutation(numbers.size + 9)[: numbers.size]
    space = None if places is None else numbers.size + 9
    waste, scratch = rng.choice([1.0, 1.15, 9.0]), rng.choice([0, 4096, 40_000, 1 << 22])
    into, _ = ask(
        file, stored, numbers, places,
        space=space, waste=float(waste), once=rng.random() < 0.3, scratch=int(scratch),
    )  # fmt: skip
    where = np.arange(numbers.size) if places is None else places
    assert np.array_equal(into[where], rows[numbers])
    untouched = np.setdiff1d(np.arange(len(into)), where)
    assert np.all(into[untouched] == UNTOUCHED)


def test_the_last_of_two_requests_for_one_place_wins_among_equals(file: DiskFile) -> None:
    stored = StoredRows(128, 512, 512, EXTENT)
    into, _ = ask(file, stored, [7, 7, 7], [0, 0, 2], space=3)
    assert np.array_equal(into[[0, 2]], rows_of(file, stored)[[7, 7]])


@pytest.mark.parametrize("waste", [1.0, 1.05, 1.15, 2.0])
@pytest.mark.parametrize("count", [20, 100, 250])
def test_no_more_is_read_than_the_pages_of_the_rows_allow(
    file: DiskFile, waste: float, count: int
) -> None:
    numbers = np.unique(np.random.default_rng(count).integers(0, EXTENT, count))
    stored = StoredRows(128, 512, 512, EXTENT)
    first, last = (128 + numbers * 512) // PAGE, (128 + numbers * 512 + 511) // PAGE
    pages = np.unique(np.concatenate([first, last])).size
    before = file.meter.bytes_read
    _, runs = ask(file, stored, numbers, waste=waste)
    # a read touches at most two pages that it does not fill
    assert file.meter.bytes_read - before <= waste * pages * PAGE
    apart = 1 + int(np.count_nonzero(first[1:] > last[:-1] + 1))
    assert runs <= apart
    if waste == 1.0:
        assert runs == apart


def test_pages_between_rows_and_pages_that_rows_share_are_counted(file: DiskFile) -> None:
    stored = StoredRows(0, 512, 512, EXTENT)
    assert ask(file, stored, [7, 8])[1] == 1
    assert ask(file, stored, [7, 16])[1] == 2  # row 7 ends with its page, one in between
    # two pages hold nine rows, and four pages are in between
    assert ask(file, stored, [*range(8), 40], waste=2.0)[1] == 2
    assert ask(file, stored, [*range(8), 40], waste=3.0)[1] == 1


@pytest.mark.skipif(
    not hasattr(os, "SEEK_DATA"), reason="needs files with holes: run on a system with SEEK_DATA"
)
def test_rows_beyond_2_to_the_32_bytes(file: DiskFile) -> None:
    row = np.arange(512, dtype=np.int64).astype(np.uint8)
    number = 5 << 21
    with open(file.path, "r+b") as stream:
        stream.seek(128 + number * 512)
        stream.write(row.tobytes())
    far = DiskFile(file.path, Meter())
    into, _ = ask(far, StoredRows(128, 512, 512, number + 1), [number, 3, number])
    far.close()
    assert np.array_equal(into[[0, 2]], [row, row])
    assert not np.array_equal(into[1], row)


def test_rows_that_follow_one_another_are_read_at_once(file: DiskFile) -> None:
    stored = StoredRows(128, 512, 512, EXTENT)
    assert ask(file, stored, np.arange(EXTENT), scratch=0)[1] == 1
    assert ask(file, stored, np.arange(EXTENT)[::-1])[1] == EXTENT
    assert (
        ask(file, stored, np.arange(EXTENT), np.arange(EXTENT)[::-1])[1]
        == EXTENT * 512 // (1 << 18) + 1
    )


@pytest.mark.parametrize("waste", [1.0, 1.15])
@pytest.mark.parametrize("scratch", [0, 1 << 20])
@pytest.mark.parametrize("at", [0, 1, 77, 499])
@pytest.mark.parametrize("lie", [-1, -(2**63), EXTENT, 2**63 - 1, 2**62, 2**55])
@pytest.mark.parametrize("who", ["number", "place"])
def test_numbers_and_places_that_lie(
    file: DiskFile, who: str, lie: int, at: int, scratch: int, waste: float
) -> None:
    numbers, places = np.arange(500) * 3, np.arange(500)
    (numbers if who == "number" else places)[at] = lie
    message = f"request {at} is for a row that does not exist"
    with pytest.raises(OSError, match=message):
        ask(file, StoredRows(128, 512, 512, EXTENT), numbers, places, space=500, scratch=scratch,
            waste=waste)  # fmt: skip


def test_memory_with_fewer_rows_than_requests(file: DiskFile) -> None:
    stored = StoredRows(128, 512, 512, EXTENT)
    for numbers in (np.arange(100), np.arange(100)[::-1].copy(), np.zeros(100, np.int64)):
        with pytest.raises(OSError, match="request 60 is for a row that does not exist"):
            ask(file, stored, numbers, space=60)
    flat = guarded((60 * 512 + 511,), np.uint8)
    with pytest.raises(OSError, match="request 60 is"):
        file.read_rows(stored, np.arange(61), None, flat, Reading(scratch=0))
    assert strays(flat) == []


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        (StoredRows(128, 512, 512, EXTENT + 1), "ends at byte 1536128 of 1536640"),
        (StoredRows(128, 512, 512, 2**40), "ends at byte 1536128 of 1536640"),
        (StoredRows(0, 4096, 512, 2**50), "ends at byte 12288000 of 12288512"),
    ],
)
def test_a_file_that_is_shorter_than_expected(
    file: DiskFile, stored: StoredRows, line: str
) -> None:
    for numbers in ([EXTENT], [5, EXTENT], [EXTENT, 5]):
        with pytest.raises(OSError) as caught:
            ask(file, stored, numbers)
        assert str(caught.value) == f"{file.path}: {line}: truncated while it was being read"


def test_a_file_that_shrinks(file: DiskFile) -> None:
    stored = StoredRows(128, 512, 512, EXTENT)
    os.truncate(file.path, 128 + 1000 * 512 + 100)
    with pytest.raises(OSError, match=f"ends at byte {128 + 1000 * 512 + 100} of .*: truncated"):
        ask(file, stored, np.arange(EXTENT))
    with pytest.raises(OSError, match=f"ends at byte {128 + 2000 * 512} of .*: truncated"):
        ask(file, stored, [3, 2000])
    assert np.array_equal(
        ask(file, stored, [999])[0], rows_of(file, stored._replace(extent=1000))[999:]
    )


def test_reasons_of_the_system_are_passed_on(file: DiskFile, tmp_path: Path) -> None:
    stored = StoredRows(0, 8, 8, 9)
    folder = DiskFile(file.path, Meter())
    os.close(folder.fd)
    folder.fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError, match=re.escape(file.path)):
        ask(folder, stored, [1])
    folder.close()
    with pytest.raises(OSError) as caught:
        ask(folder, stored, [1])
    assert caught.value.errno == errno.EBADF


def takes_part_in(folder: Path) -> bool:
    """Return True if files there can be read past the system's cache."""
    (folder / "one").write_bytes(b"1")
    with (folder / "one").open("rb") as one:
        try:
            return os.preadv(one.fileno(), [bytearray(1)], 0, 0x80) == 1  # RWF_DONTCACHE
        except (AttributeError, NotImplementedError, OSError):
            return False


def test_rows_wanted_once_leave_the_cache_as_it_was(tmp_path: Path) -> None:
    if not takes_part_in(tmp_path):
        pytest.skip("no reads past the cache here: use Linux 6.14 with ext4, XFS or Btrfs")
    (tmp_path / "rows").write_bytes(np.random.default_rng(0).bytes(8 << 20))
    file = DiskFile(str(tmp_path / "rows"), Meter())
    file.sync()
    stored, numbers = StoredRows(0, 512, 512, 16384), np.arange(0, 16384, 2)
    expected = rows_of(file, stored)[numbers]
    samples = (np.arange(1, 8) * 3 % 7 << 20) + 40_960

    def cached_after(*, once: bool, dropped: bool) -> float:
        if dropped:
            os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        into, _ = ask(file, stored, numbers, waste=1.1, once=once, scratch=8 << 20)
        assert np.array_equal(into, expected)
        # the query must not bring pages into the cache
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_RANDOM)
        return file.cached_share(samples)

    def left_as_it_was() -> bool:
        return (
            cached_after(once=True, dropped=True) < 0.6
            and cached_after(once=False, dropped=True) == 1.0
            and cached_after(once=True, dropped=False) == 1.0
        )

    # A busy system may keep pages for a moment, or need their memory.
    assert any(left_as_it_was() for _ in range(5))
    file.close()


def test_rows_wanted_once_where_they_cannot_be_read_past_the_cache() -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("/dev/shm is no place to write to: use Linux with a tmpfs there")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        if takes_part_in(Path(folder)):
            pytest.skip("reads past the cache work here: use a tmpfs without them")
        raw = np.random.default_rng(0).integers(0, 256, EXTENT * 512, np.uint8)
        (Path(folder) / "rows").write_bytes(raw.tobytes())
        file = DiskFile(str(Path(folder) / "rows"), Meter())
        for numbers in (np.arange(0, EXTENT, 2), np.arange(EXTENT)[::-1].copy()):
            into, _ = ask(file, StoredRows(0, 512, 512, EXTENT), numbers, once=True)
            assert np.array_equal(into, raw.reshape(EXTENT, 512)[numbers])
        with pytest.raises(OSError, match="truncated while it was being read"):
            ask(file, StoredRows(0, 512, 512, EXTENT + 1), [EXTENT], once=True)
        file.close()


def test_a_pass_over_a_table_wants_its_rows_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_pass(monkeypatch, True)
    read, asked = native.read_file_rows, set()

    def noted(descriptor: int, *arguments: Any) -> Any:
        of_table = os.path.samestat(os.fstat(descriptor), os.stat(names[0]))
        asked.add(("table" if of_table else "output", arguments[5]))
        return read(descriptor, *arguments)

    monkeypatch.setattr(native, "read_file_rows", noted)
    np.save(tmp_path / "table.npy", np.arange(20_000.0).reshape(-1, 8))
    np.save(tmp_path / "indices.npy", np.arange(5000) % 2500)
    names = [str(tmp_path / f"{name}.npy") for name in ("table", "indices", "out")]
    gather_file(names[0], names[1], names[2], memory="64KiB")
    assert asked == {("table", True), ("output", False)}


@pytest.mark.parametrize(
    "where",
    [
        (-1, 8, 8, 9),
        (0, 7, 8, 9),
        (0, 8, 0, 9),
        (0, 0, 0, 9),
        (0, 8, 8, -1),
        (0, 8, 8, 2**60),
        (0, 8, 8, 2**60 - 1),
        (2**63 - 10, 8, 8, 9),
        (0, 2**62, 8, 3),
    ],
)
def test_places_in_a_file_that_cannot_be(file: DiskFile, where: tuple[int, int, int, int]) -> None:
    into = guarded((9, 8), np.uint8)
    with pytest.raises(ValueError, match="describes no rows of a file"):
        native.read_file_rows(file.fd, where, np.arange(9), None, into, 1.0, False, 0, 0, False)
    assert strays(into) == []


def test_reads_are_planned_with_the_bridge(file: DiskFile) -> None:
    stored, lies = StoredRows(0, 512, 512, EXTENT), [-1, -(2**63), EXTENT, 2**63 - 1]

    def bridge(numbers: list[int], waste: float) -> int:
        return native.file_rows_bridge(stored, np.array(numbers, np.int64), waste)

    # two pages hold nine rows, and four pages are in between
    assert bridge([*range(8), 40], 1.1) == 2
    assert bridge([*range(8), 40], 3.0) == 256
    assert bridge([0, 8 * 258], 100.0) == 256  # none is read: more pages are in between
    assert bridge([*range(8), 40], 1.0) == bridge([], 2.0) == 0
    assert bridge([*lies, *range(8), *lies, 40], 2.5) == bridge([*range(8), 40], 2.5) == 2
    with pytest.raises(TypeError, match="`numbers` must be a flat array of int64"):
        native.file_rows_bridge(stored, [1, 2], 2.0)
    with pytest.raises(ValueError, match="file_rows_bridge: `layout` describes no rows"):
        native.file_rows_bridge((0, 7, 8, 9), np.arange(3), 2.0)


def test_arrays_of_the_wrong_form_raise(file: DiskFile) -> None:
    def call(numbers: Any, places: Any, into: Any, scratch: int = 0) -> None:
        native.read_file_rows(
            file.fd, (0, 8, 8, 9), numbers, places, into, 1.0, False, scratch, 0, False
        )

    good, into = np.arange(4), np.zeros((4, 8), np.uint8)
    locked = into.copy()
    locked.flags.writeable = False
    for bad in (good.astype(np.int32), good.reshape(2, 2), good[::2], [0, 1], good.astype(">i8"),
                good.astype(np.uint64)):  # fmt: skip
        with pytest.raises(TypeError, match="`numbers` must be a flat array of int64"):
            call(bad, None, into)
        with pytest.raises(TypeError, match="`positions` must be a flat array of int64"):
            call(good, bad, into)
    for bad in (locked, into[:, ::2], into.view(np.int8), np.zeros(4, object), bytearray(32)):
        with pytest.raises(TypeError, match="`out` must be a contiguous, writable array of bytes"):
            call(good, None, bad)
    for other in (np.arange(3), np.arange(5)):
        with pytest.raises(ValueError, match="differ in length"):
            call(good, other, into)
    with pytest.raises(ValueError, match="describes no rows"):
        call(good, None, into, -1)


def test_an_empty_request_reads_nothing(file: DiskFile) -> None:
    assert ask(file, StoredRows(0, 8, 8, 0), [])[1] == 0


def test_ctrl_c_ends_a_long_read(file: DiskFile) -> None:
    class Stopped(Exception):
        pass

    def stop(number: int, frame: object) -> None:
        raise Stopped

    numbers = np.random.default_rng(0).integers(0, EXTENT, 1 << 21)
    into = np.empty((numbers.size, 16), np.uint8)
    stored = StoredRows(0, 512, 16, EXTENT)
    before = signal.signal(signal.SIGALRM, stop)
    started = time.process_time()
    file.read_rows(stored, numbers[: 1 << 17], None, into.reshape(-1), Reading(scratch=0))
    whole = 16 * (time.process_time() - started)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        started = time.process_time()
        with pytest.raises(Stopped):
            file.read_rows(stored, numbers, None, into.reshape(-1), Reading(scratch=0))
        assert time.process_time() - started < 0.8 * whole
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_numbers_that_change_while_they_are_read_reach_no_foreign_memory(file: DiskFile) -> None:
    """Another thread writes wrong values into the arrays while the core works with them."""
    import threading

    stored = StoredRows(128, 512, 512, EXTENT)
    numbers, places = np.sort(np.arange(1 << 15) % EXTENT), np.arange(1 << 15)
    into = guarded((numbers.size, 512), np.uint8)
    done = threading.Event()

    def lie() -> None:
        rng = np.random.default_rng(1)
        while not done.is_set():
            for array, most in ((numbers, EXTENT), (places, numbers.size)):
                at = rng.integers(0, array.size, 64)
                kept = array[at]
                array[at] = rng.choice([-1, most, 2**62, -(2**63), 5], at.size)
                array[at] = kept

    liar = threading.Thread(target=lie)
    liar.start()
    try:
        for _ in range(40):
            try:
                file.read_rows(stored, numbers, places, into.reshape(-1), Reading(waste=1.15))
            except OSError as error:
                assert "is for a row that does not exist" in str(error)
    finally:
        done.set()
        liar.join()
    assert strays(into) == []


def test_the_share_of_rows_that_wait_in_memory(file: DiskFile) -> None:
    there = np.arange(0, file.size, PAGE)
    Path(file.path).read_bytes()
    share = file.cached_share(there)
    assert share in (0.0, 1.0)  # 0: this file system does not support it
    assert file.cached_share(np.concatenate([there, there + 2**40])) == share / 2
    assert file.cached_share(there[:0]) == 0.0


@pytest.mark.parametrize("item", [8, 512, 5000])
def test_few_rows(file: DiskFile, item: int) -> None:
    stored = StoredRows(128, item, item, EXTENT * 512 // item)
    rows, rng = rows_of(file, stored), np.random.default_rng(1)
    for _ in range(50):
        numbers = rng.integers(0, rng.choice([4, stored.extent]), rng.integers(1, 6))
        places = rng.permutation(5)[: numbers.size].astype(np.int64)
        memory, _ = ask(file, stored, numbers, places, space=5)
        assert np.array_equal(memory[places], rows[numbers])
        ordered = np.sort(numbers)
        assert np.array_equal(ask(file, stored, ordered)[0], rows[ordered])


def test_few_rows_of_a_file_that_ends_early(file: DiskFile) -> None:
    os.truncate(file.path, 128 + 10 * 512)
    with pytest.raises(OSError, match="truncated while it was being read"):
        ask(file, StoredRows(128, 512, 512, EXTENT), np.array([3, 10]))


def test_more_threads_than_processors(file: DiskFile) -> None:
    stored = StoredRows(128, 512, 512, EXTENT)
    rows, wrong = rows_of(file, stored), []

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            numbers = np.sort(rng.integers(0, EXTENT, 64))
            if not np.array_equal(ask(file, stored, numbers)[0], rows[numbers]):
                wrong.append(numbers)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
