"""The core as a C library: a C program gathers and scatters without Python."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import foreign
import gatherum
from cases import CASES

pytestmark = [
    *foreign.needs(foreign.C),
    pytest.mark.skipif(
        "SANITIZER" in os.environ, reason="a sanitized core needs its runtime: run it without"
    ),
]
SOURCES = Path(__file__).parent


def _compiled(name, folder):
    """Compile a C program against the installed header and library."""
    executable = folder / f"{name}.exe"
    include = gatherum.get_include()
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    where = [f"-I{include}", str(SOURCES / f"{name}.c"), *foreign.library(folder)]
    subprocess.run([foreign.C, *strict, *where, "-o", str(executable)], check=True)
    return executable


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return _compiled("call", tmp_path_factory.mktemp("c"))


def test_accumulators_without_updates_are_not_read(tmp_path):
    """Valgrind reports results that depend on uninitialized memory."""
    finish = _compiled("finish", tmp_path)
    run = foreign.run(finish)
    assert run.stdout == "128 folds, 0 wrong\n"
    valgrind = shutil.which("valgrind")
    if valgrind is None or foreign.EMULATOR:
        pytest.skip("install valgrind to see what is read")
    run = foreign.run(Path(valgrind), "-q", "--error-exitcode=9", finish)
    assert run.returncode == 0, run.stderr


def _call(program, folder, plan, operands, out, *more, threads=1):
    paths = []
    names = ("program", "data", "indices", "updates", "out")
    contents = [bytes(plan.program), *(a.tobytes() for a in operands), out.tobytes()]
    if len(operands) == 2:
        contents.insert(3, b"")
    for name, content in zip(names, contents, strict=True):
        paths.append(folder / name)
        paths[-1].write_bytes(content)
    run = foreign.run(program, *paths, threads, *more)
    return run, np.frombuffer((folder / "out").read_bytes(), out.dtype).reshape(out.shape)


def _plan_of(case):
    operands = [case.data, case.indices]
    if case.updates is not None:
        operands.append(case.updates)
    operands = [a.copy() for a in operands]
    if case.updates is not None:
        shape = gatherum.plan(case.op, *operands, **_attributes(case)).call.updates.shape
        operands[2] = np.broadcast_to(operands[2], shape).copy()
    return gatherum.plan(case.op, *operands, **_attributes(case)), operands


def _attributes(case):
    return {name: value for name, value in case.attributes.items() if name != "fill_value"}


PLAIN = [case for case in CASES if not case.attributes.get("fill_value") and case.expected.size]


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_every_case_without_python(program, tmp_path, case):
    plan, operands = _plan_of(case)
    run, result = _call(program, tmp_path, plan, operands, np.zeros_like(case.expected))
    assert run.returncode == 0, run.stdout
    scatters, rank, size = map(int, run.stdout.split()[1:4])
    assert (scatters, rank) == (case.updates is not None, case.expected.ndim)
    assert size == len(bytes(plan.program))
    assert result.tobytes() == case.expected.tobytes()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("mode", ["", "in-place"])
@pytest.mark.parametrize("reduction", ["none", "add", "mean"])
def test_large_scatters_without_python(program, tmp_path, reduction, mode, threads):
    rng = np.random.default_rng(3)
    data, updates = rng.standard_normal((5_000, 9)), rng.standard_normal((90_000, 9))
    operands = data, rng.integers(0, 5_000, (90_000, 1)), updates
    plan = gatherum.plan("scatter_nd", *operands, reduction=reduction)
    run, result = _call(
        program, tmp_path, plan, operands, np.zeros_like(data), mode, threads=threads
    )
    assert run.returncode == 0, run.stdout
    expected = gatherum.scatter_nd(*operands, reduction=reduction)
    assert result.tobytes() == expected.tobytes()


def test_a_bad_index_is_reported_and_nothing_written(program, tmp_path):
    data, updates = np.arange(6.0), np.ones(3)
    operands = data, np.array([[1], [-7], [9]]), updates
    plan = gatherum.plan("scatter_nd", *operands)
    run, result = _call(program, tmp_path, plan, operands, np.zeros(6), "in-place")
    assert run.stdout == "run 1|an index is out of bounds|indices|1|0|-7\n"
    assert not result.any()


@pytest.mark.parametrize("small", ["data", "indices", "updates", "out"])
def test_an_operand_that_is_too_small_is_refused(program, tmp_path, small):
    operands = [np.arange(6.0), np.array([[1], [0], [5]]), np.ones(3)]
    plan = gatherum.plan("scatter_nd", *operands)
    arrays = {
        "data": operands[0],
        "indices": operands[1],
        "updates": operands[2],
        "out": np.ones(6),
    }
    arrays[small] = arrays[small].ravel()[:-1]
    *others, out = arrays.values()
    run, _ = _call(program, tmp_path, plan, others, out)
    message = "an operand's memory is smaller than the program addresses"
    assert run.stdout == f"check 5|{message}|{small}|-1|0|0\n"


def test_bytes_of_another_version_are_refused(program, tmp_path):
    class Forged:
        program = b"gatherum" + (99).to_bytes(8, "little") + bytes(64)

    operands = np.arange(6.0), np.array([1])
    run, _ = _call(program, tmp_path, Forged, operands, np.zeros(1))
    assert run.stdout == "read 4|the program is of another version||-1|0|0\n"


def test_a_poll_interrupts(program, tmp_path):
    rng = np.random.default_rng(1)
    operands = np.zeros(1000), rng.integers(0, 1000, 30_000_000, np.int32)
    plan = gatherum.plan("gather", *operands)
    run, _ = _call(program, tmp_path, plan, operands, np.zeros(30_000_000), "interrupt")
    assert run.stdout.startswith(("run 2|the call was interrupted|", "ok "))
