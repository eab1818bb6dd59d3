"""Inputs that the command rejects immediately: files that never end, unbounded numbers."""

import os
import subprocess
import sys

import numpy as np
import pytest

from command_lines import ENVIRONMENT
from samples import diagonal

cli = pytest.importorskip("gatherum._command.cli", reason="install click: pip install click rich")
# Limits the memory: a read without end raises an error after 4 GiB of addresses.
BOUNDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from gatherum._command.cli import run
sys.exit(run(sys.argv[1:]))
"""


def bounded(*arguments):
    """Run a command line in a process with bounded memory and time."""
    command = [sys.executable, "-c", BOUNDED, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=ENVIRONMENT
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMANDS = {
    "json": (["check"], "x.json", []),
    "onnx": (["check"], "x.onnx", []),
    "data": (["explain", "gather", "--data"], "x.npy", ["--indices", "2"]),
    "values": (["explain", "gather", "--data", "2", "--values"], "x.npy", []),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
@pytest.mark.parametrize(
    ("command", "file_type"),
    diagonal(3, list(COMMANDS), ["a FIFO", "a character device", "a directory"]),
)
def test_commands_read_regular_files_only(folder, file_type, command):
    before, name, after = COMMANDS[command]
    if name.endswith(".onnx"):
        pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    if file_type == "a FIFO":
        os.mkfifo(name)
    elif file_type == "a directory":
        os.mkdir(name)
    else:
        os.symlink("/dev/zero", name)
    message = f"gatherum: {name}: is {file_type}, not a regular file\n"
    assert bounded(*before, name, *after) == (1, "", message)


@pytest.mark.parametrize(
    ("name", "limit"), [("x.json", 64 << 20), ("x.onnx", (2 << 30) - 1)], ids=["json", "onnx"]
)
def test_checks_read_no_more_than_their_formats_hold(folder, name, limit):
    if name.endswith(".onnx"):
        pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    with open(name, "wb") as file:
        file.truncate(limit + 1)  # a sparse file
    message = f"gatherum: {name}: has more than {limit} bytes, which is too much to read whole\n"
    assert bounded("check", name) == (1, "", message)


def test_explain_maps_the_file_that_it_has_checked(folder, monkeypatch):
    np.save("data.npy", np.arange(12.0, dtype=">f4").reshape(3, 4).T)
    np.save("values.npy", np.array(2))
    assert cli.run(["explain", "gather", "--data", "data.npy", "--values", "values.npy"]) == 0
    from gatherum._command.cli import streams

    for name in ("data.npy", "values.npy"):
        mapped, loaded = streams.map_file(name), np.load(name, mmap_mode="r")
        assert (mapped.dtype, mapped.shape, mapped.strides) == (
            loaded.dtype,
            loaded.shape,
            loaded.strides,
        )
        assert (mapped == loaded).all()
        assert mapped.filename == loaded.filename
        assert not mapped.flags.writeable


FEW, MANY, MOST = "9" * 20, "9" * 400, "9" * 5000


@pytest.fixture
def run(folder, capfd):
    """Run a command line. Return status, standard output and standard error."""
    np.save("table.npy", np.arange(12.0).reshape(4, 3))
    np.save("rows.npy", np.array([2, 0, 9]))

    def call(*arguments):
        status = cli.run(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return call


GATHER = ["gather", "table.npy", "rows.npy", "-o", "out.npy", "--mode", "fill"]
GATHER_ND = ["gather-nd", *GATHER[1:]]
SCATTER_ND = ["scatter-nd", "table.npy", "rows.npy", "rows.npy", "-o", "out.npy"]
EXPLAIN = ["explain", "gather", "--data", "3", "--mode", "fill"]
NUMBERS = [
    ([*GATHER, "--axis"], "must be an integer of 64 bits, got "),
    ([*GATHER_ND, "--batch-dims"], "must be an integer of 64 bits, got "),
    ([*SCATTER_ND, "--batch-dims"], "must be an integer of 64 bits, got "),
    ([*EXPLAIN, "--indices", "2", "--axis"], "must be an integer of 64 bits, got "),
    ([*EXPLAIN, "--indices", "2", "--batch-dims"], "must be an integer of 64 bits, got "),
    (["explain", "gather", "--indices", "2", "--data"], "must be sizes such as 2x3x4, scalar, "),
    ([*EXPLAIN, "--indices"], "must be sizes such as 2x3x4, scalar, a .npy file or -, got "),
    ([*EXPLAIN, "--values"], "must be integers such as 0,2,2,7, a .npy file or -, got "),
]


@pytest.mark.parametrize("digits", [FEW, MANY, MOST, f"-{MANY}"], ids=len)
@pytest.mark.parametrize(("before", "message"), NUMBERS, ids=lambda argument: str(argument)[-30:])
def test_integers_of_any_length_are_usage(run, before, message, digits):
    check_usage(run(*before, digits), before[-1], message)


def check_usage(outcome, option, message):
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith(f"gatherum: Invalid value for '{option}': {message}")
    assert err.count("\n") == 1
    assert len(err) < 250
    assert not os.path.exists("out.npy")


@pytest.mark.parametrize("digits", [FEW, MANY, MOST], ids=len)
def test_other_numbers_of_any_length_are_usage(run, digits):
    check_usage(run(*GATHER, "--memory", digits), "--memory", "must be less than 1 EiB, got")
    check_usage(run(*GATHER, "--memory", f"{digits}.5TiB"), "--memory", "must be less than")
    size = run("check", "x.onnx", "--size", f"batch={digits}")
    check_usage(size, "--size", "must be a name and a size such as batch=8, got 'batch=999")
    dtype = "--dtype", f"({digits},)f4"
    check_usage(run(*EXPLAIN, "--indices", "2", *dtype), "--dtype", "must be a dtype such as fl")


@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", MANY, MOST, f"-{MOST}", "1e400j", "1+1e999j", "inf+1e400j"],
    ids=lambda text: text[:9],
)  # fmt: skip
@pytest.mark.parametrize(
    "before", [GATHER, [*EXPLAIN, "--indices", "2"]], ids=["gather", "explain"]
)
def test_a_fill_value_does_not_become_infinite(run, before, number):
    message = "must be a number that float64 can hold, or inf, got '"
    check_usage(run(*before, "--fill-value", number), "--fill-value", message)


@pytest.mark.parametrize(
    ("text", "value"),
    [("inf", np.inf), ("-Infinity", -np.inf), ("1e308", 1e308), (str(2**70), 2**70)],
)
def test_a_fill_value_may_be_infinite(run, text, value):
    status, _, err = run(*GATHER, "--fill-value", text)
    assert (status, err) == (0, "")
    assert np.load("out.npy")[2].tolist() == [value] * 3


def test_the_largest_numbers_are_numbers(run):
    assert run(*GATHER, "--memory", "1023PiB")[0] == 2  # not a known unit
    assert run(*GATHER, "--memory", "1000000TiB")[0] == 0
    largest = str(2**64 - 1)
    status, out, _ = run(*EXPLAIN, "--values", largest, "--index-dtype", "uint64")
    assert (status, f"{largest}" in out) == (0, False)
    message = "gatherum: gather: `axis` must be in [-1, 1), got 18446744073709551615\n"
    assert run(*EXPLAIN, "--indices", "2", "--axis", largest) == (1, "", message)
