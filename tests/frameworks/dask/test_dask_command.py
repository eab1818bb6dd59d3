"""The commands on files with --scheduler and --workers write the same bytes as without them."""

import errno
import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
zarr = pytest.importorskip("zarr", reason="install zarr")
cli = pytest.importorskip(
    "gatherum._command.cli", reason="install click and rich: pip install click rich"
)
import dask  # noqa: E402
import dask.array as da  # noqa: E402
from distributed import LocalCluster  # noqa: E402

from gatherum.dask import outputs  # noqa: E402
from gatherum.dask.shuffling import clusters  # noqa: E402
from source import SOURCE  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((60, 7)).astype(np.float32)
ROWS = np.array([[3, 59, 3], [0, -1, 40]])
UPDATES = RNG.standard_normal((6, 7)).astype(np.float32)


@pytest.fixture(scope="module")
def address():
    """Start a scheduler whose workers are threads of this process, which start immediately."""
    local_cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address="127.0.0.1:0",
    )  # fmt: skip
    with local_cluster as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", TABLE)
    np.save("fortran.npy", np.asfortranarray(TABLE))
    np.savez("some.npz", one=TABLE, two=TABLE[:3])
    np.save("rows.npy", ROWS)
    np.save("few.npy", ROWS.ravel())
    np.save("bad.npy", np.array([[0, 60, 1]]))
    np.save("points.npy", ROWS.reshape(-1, 1))
    np.save("columns.npy", np.argsort(TABLE, axis=1))
    np.save("updates.npy", UPDATES)
    np.save("one.npy", UPDATES[0])
    for name, version in (("t3.zarr", 3), ("t2.zarr", 2)):
        array = zarr.create_array(
            name, shape=TABLE.shape, chunks=(8, 5), dtype=TABLE.dtype, zarr_format=version
        )
        array[...] = TABLE
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    """Run a command line. Return status, standard output and standard error."""

    def call(*arguments):
        status = cli.run(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return call


def files(path):
    return {
        str(one.relative_to(path)): one.read_bytes() for one in Path(path).rglob("*")
        if one.is_file()
    }  # fmt: skip


CALLS = [
    ["gather", "table.npy", "rows.npy"],
    ["gather", "t3.zarr", "rows.npy", "--axis", "0"],
    ["gather", "t2.zarr", "--values", "3,0,6", "--axis", "1"],
    ["gather", "fortran.npy", "bad.npy", "--mode", "fill", "--fill-value", "nan"],
    ["gather", "some.npz:one", "bad.npy", "--mode", "clip", "--no-negative"],
    ["gather", "table.npy", "--values="],
    ["gather-elements", "t3.zarr", "columns.npy", "--axis", "1"],
    ["gather-nd", "table.npy", "points.npy"],
    ["scatter-slices", "t3.zarr", "few.npy", "updates.npy", "--reduction", "add"],
    ["scatter-slices", "table.npy", "few.npy", "one.npy", "--exclude-self", "--reduction", "mean"],
    ["scatter-elements", "t2.zarr", "columns.npy", "table.npy", "--axis", "1"],
    ["scatter-nd", "t2.zarr", "points.npy", "updates.npy", "--reduction", "max"],
]


@pytest.mark.parametrize("arguments", CALLS, ids=" ".join)
def test_the_bytes_of_the_command_without_a_cluster(run, address, folder, arguments):
    assert run(*arguments, "-o", "alone.zarr")[::2] == (0, "")
    status, out, err = run(*arguments, "-o", "out.zarr", "--scheduler", address)
    assert (status, err) == (0, "")
    dashboard, line = out.splitlines()
    assert dashboard.startswith("Dashboard: http://127.0.0.1:")
    assert line.startswith("out.zarr: ") and ", 2 workers, " in line
    assert files("out.zarr") == files("alone.zarr")
    assert not list(folder.glob("*.partial*"))
    # An existing output is replaced.
    assert run(*arguments, "-o", "out.zarr", "--scheduler", address)[0] == 0
    assert files("out.zarr") == files("alone.zarr")


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        ("gather t2.zarr -", npy(ROWS)),
        ("gather table.npy -", b"3 59 3 0"),
        ("scatter-slices t3.zarr - updates.npy --reduction add", npy(ROWS.ravel())),
        ("scatter-slices t3.zarr few.npy -", npy(np.asfortranarray(UPDATES))),
    ],
)
def test_standard_input(run, address, monkeypatch, arguments, content):
    for out, more in (("alone.zarr", ()), ("out.zarr", ("--scheduler", address))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run(*arguments.split(), "-o", out, *more)[::2] == (0, "")
    assert files("out.zarr") == files("alone.zarr")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(npy(ROWS)[:-1])))
    status, _, err = run("gather", "t2.zarr", "-", "-o", "none.zarr", "--scheduler", address)
    assert (status, Path("none.zarr").exists()) == (1, False)
    assert err.startswith("gatherum: standard input: shape (2, 3) of int64 needs 48")


@pytest.mark.parametrize("arguments", ["- rows.npy -o out.zarr", "table.npy rows.npy -o -"])
def test_streams_that_no_worker_can_use(run, arguments):
    message = "--workers needs files as TABLE and OUT, not -. See gatherum gather --help."
    assert run("gather", *arguments.split(), "--workers", "2") == (2, "", f"gatherum: {message}\n")


@pytest.mark.parametrize("table", ["t2.zarr", "t3.zarr"])
def test_a_table_changed_in_place(run, address, table):
    arguments = "few.npy", "updates.npy", "--reduction", "add"
    assert run("scatter-slices", table, *arguments, "-o", "alone.zarr")[0] == 0
    for _ in range(2):  # a completed run is not applied again
        more = "--in-place", "--resume", "--scheduler", address
        status, out, err = run("scatter-slices", table, *arguments, *more)
        assert (status, err) == (0, "") and f"{table}: 6 rows, 2 workers, " in out
        assert files(table) == files("alone.zarr")


def test_processes_made_for_a_run(folder):
    """Run the command as a user does, who sees its progress."""
    command = "gather", "table.npy", "rows.npy", "-o", "out.zarr"
    assert cli.run([*command[:-1], "alone.zarr"]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "gatherum", *command, "--workers", "2"],
        env=os.environ | {"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("Dashboard: http://127.0.0.1:")
    assert done.stdout.splitlines()[1].startswith("out.zarr: 6 rows, 2 workers, ")
    assert files("out.zarr") == files("alone.zarr")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_of_dask_where_anyone_looks(run, address, monkeypatch):
    for more, shown in (((), True), (("--no-progress",), False)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        command = "gather", "table.npy", "rows.npy", "-o", "out.zarr", "--scheduler", address
        assert run(*command, *more)[0] == 0
        assert ("% Completed | " in sys.stderr.getvalue()) is shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "out.npy"], "gather: the output out.npy cannot be written on a cluster, whose "
         "workers write Zarr directories such as 'x.zarr'"),
        (["-o", "none/out.zarr"], "none/out.zarr: the directory "),
        (["-o", "t2.zarr"], "gather: the output t2.zarr is the same file as the table"),
        (["-o", "t3.zarr", "--no-clobber"], "t3.zarr: exists already, and --no-clobber keeps it"),
        (["-o", "out.zarr", "--axis", "2"], "gather: `axis` must be in [-2, 2), got 2"),
        (["-o", "out.zarr", "--axis", "1"], "gather: index 59 is out of bounds for axis 1 of size "
         "7 (indices[0, 1])"),
    ],
)  # fmt: skip
def test_data_is_status_1_one_line_and_nothing_half_written(
    run, address, folder, arguments, message
):
    before = files(folder)
    command = "gather", "t2.zarr", "rows.npy", *arguments, "--scheduler", address
    status, _, err = run(*command)
    assert status == 1
    assert err.startswith(f"gatherum: {message}") and err.count("\n") == 1
    assert files(folder) == before


def test_operands_that_cannot_be_read(run, address, folder):
    np.savez_compressed("packed.npz", one=TABLE)
    for table, message in (
        ("none.npy", "none.npy: No such file or directory"),
        ("packed.npz:one", "gather: packed.npz:one is compressed, so that no part of it can "),
    ):
        command = "gather", table, "rows.npy", "-o", "out.zarr", "--scheduler", address
        status, _, err = run(*command)
        assert status == 1
        assert message in err and err.count("\n") == 1
    assert not (folder / "out.zarr").exists()


ON = ["gather", "table.npy", "rows.npy", "-o", "out.zarr"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ON, "--workers", "0"], "Invalid value for '--workers': must be at least 1, got 0."),
        ([*ON, "--workers", "-3"], "Invalid value for '--workers': must be at least 1, got -3."),
        ([*ON, "--workers", "two"], "Invalid value for '--workers': must be an integer of 64 bits"),
        ([*ON, "--workers", "2", "--scheduler", "x"], "--scheduler and --workers exclude each "),
        ([*ON, "--workers", "2", "--memory", "1GiB"], "--workers does not go with --memory: "),
        ([*ON, "--scheduler", "x", "--spill-dir", "."], "--scheduler does not go with --spill-dir"),
        ([*ON, "--scheduler", "x", "--resume"], "--scheduler resumes runs with --in-place only."),
    ],
)
def test_usage_is_status_2_and_one_line(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"gatherum: {message}") and err.count("\n") == 1
    assert err.endswith(" See gatherum gather --help.\n")


def test_a_scheduler_that_does_not_answer(run, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 1)
    with socket.socket() as silent:  # accepts connections, and sends nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for address in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1:1", "nothing://x", "no host"):
            status, out, err = run(*ON, "--scheduler", address)
            assert (status, out) == (2, "")
            assert err.startswith(
                f"gatherum: Invalid value for '--scheduler': no scheduler of Dask answers at "
                f"{address} within 1 seconds ("
            )
            assert err.count("\n") == 1


def test_a_scheduler_without_workers(run, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 1)
    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as cluster:
        status, out, err = run(*ON, "--scheduler", cluster.scheduler_address)
    assert (status, out) == (2, "")
    assert err.startswith("gatherum: Invalid value for '--scheduler': the scheduler at tcp://")
    assert err.endswith(" has no workers. See gatherum gather --help.\n")


def test_no_two_tasks_write_to_one_chunk(monkeypatch):
    boxes = []
    monkeypatch.setattr(outputs, "chunk_bytes", lambda: 900)
    monkeypatch.setattr(outputs, "delayed", lambda _: lambda _, box, __: boxes.append(box))
    outputs._writes("x", (7, 7), da.zeros((60, 7), dtype=np.float32, chunks=(13, 3)))
    assert [rows.start for rows, _ in boxes] == [0, 28, 56]


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "the rename fails"), None])
def test_an_output_is_replaced_or_stays(folder, monkeypatch, at, error):
    """A rename fails, or Ctrl-C interrupts it: of the staged array, the old output, the new."""
    rename, calls = os.rename, []

    def faulty(source, target):
        calls.append(source)
        if len(calls) == at:
            if error:
                raise error
            signal.raise_signal(signal.SIGINT)
        rename(source, target)

    call = outputs.ClusterCall("gather", "t3.zarr", ("few.npy",), "t2.zarr", {})
    before = sorted(os.listdir(folder))
    monkeypatch.setattr(os, "rename", faulty)
    with pytest.raises(OSError if error else KeyboardInterrupt):
        call.run(lambda tasks: dask.compute(*tasks, scheduler="synchronous"))
    old = error is not None or at == 1  # Ctrl-C is deferred until both renames are done
    expected = TABLE if old else TABLE[ROWS.ravel()]
    np.testing.assert_array_equal(zarr.open_array("t2.zarr")[...], expected)
    assert sorted(os.listdir(folder)) == before
