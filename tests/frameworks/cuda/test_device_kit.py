"""The kit for a machine with a GPU: its steps, reports and packages."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from doubles import CompilerDouble, HostArray, array_of
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[2] / "device"))

import first
import first_calls
import kernels
import pack

from gatherum._command import verify
from gatherum._model.reductions import FOLDS
from gatherum.cuda import code_cache, driver, nvidia
from gatherum.cuda.device import Kernel
from gatherum.cuda.host_transfer import OnDevice

posix = pytest.mark.skipif(sys.platform == "win32", reason="steps end with their process group")


def python(code):
    return sys.executable, "-c", code


@pytest.fixture
def kit(tmp_path):
    """Make an empty kit."""
    folder = tmp_path / "kit"
    folder.mkdir()
    (tmp_path / "cache").mkdir()
    with tarfile.open(folder / "kernels.tar.xz", "w:xz") as packed:
        packed.add(tmp_path / "cache", ".")
    return folder


@posix
def test_steps_go_on_after_a_failure(kit, tmp_path, monkeypatch, capfd):
    asks = "import os; print(os.environ['A'], len(os.listdir(os.environ['GATHERUM_CUDA_CACHE'])))"
    sleeps = "import subprocess, sys; print('begins', flush=True); subprocess.run(['sleep', '99'])"
    steps = [
        first.Step("asks", 60, python(asks), (("A", "an A"),)),
        first.Step("fails", 60, python("print('two | words'); raise SystemExit(3)")),
        first.Step("is not there", 60, ("no-such-program",)),
        first.Step("sleeps", 1, python(sleeps)),
        first.Step("prints nothing", 60, python("")),
    ]
    monkeypatch.setattr(first, "steps", lambda *_: steps)
    monkeypatch.setattr(sys, "argv", ["first.py", str(kit), str(tmp_path / "out")])
    assert first.main() == 1
    lines = [line.split(" s  ")[1] for line in capfd.readouterr().out.splitlines()]
    assert lines == [
        "ok",
        "ended with status 3: two | words",
        "[Errno 2] No such file or directory: 'no-such-program': ",
        "stopped after 1 s: begins",
        "ok",
    ]
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.startswith("| card | step | when | took | result | last line |\n")
    assert report.count("\n| an A 0 | ") == 5
    assert "| 0 s | ended with status 3 | two / words |\n" in report
    log = (tmp_path / "out" / "log.txt").read_text()
    assert f"===== asks: {sys.executable} -c" in log
    assert "begins" in log


def test_no_step_begins_after_the_end(tmp_path):
    step = first.Step("late", 60, python("print('is run')"))
    outcome = first.run(step, 0.5, {}, tmp_path / "log.txt")
    assert outcome == (step, 0.0, "not run: no time is left", "")
    assert not (tmp_path / "log.txt").exists()


@posix
def test_the_remaining_time_is_the_limit(tmp_path):
    step = first.Step("long", 60, python("import time; time.sleep(99)"))
    outcome = first.run(step, 1.5, {}, tmp_path / "log.txt")
    assert (outcome.problem, outcome.last) == ("stopped after 2 s", "")


def test_all_steps_fit_into_one_run():
    steps = first.steps((sys.executable,), Path("out"), 0.1)
    assert len({step.name for step in steps}) == len(steps)
    assert max(step.limit for step in steps) < 9 * 60 / 4
    for step in steps:
        files = [part for part in step.command if part.endswith(".py")]
        assert all((first.TREE / file).is_file() for file in files), step


@pytest.mark.slow
def test_the_first_calls_by_the_kernels_themselves(on_shim, monkeypatch, capsys):
    def back(result, dtype):
        return array_of(result).view(dtype)

    double = OnDevice("cuda:0, a double", HostArray, back)
    monkeypatch.setattr(verify, "_on_cuda", lambda: double)
    assert first_calls.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "cuda:0, a double",
        "gather: ok",
        "winners: ok",
        "integer add: ok",
        "float add, runs of 3, 100, 2000: ok",
        "a bad index: ok",
        "small scatter: ok",
        "small float add: ok",
        "a bad index of a small scatter: ok",
        "0 of 8 calls went wrong",
    ]


def test_a_wrong_result_is_reported(monkeypatch, capsys):
    class Wrong:
        name = "a device"

        def gather(self, *operands):
            raise RuntimeError("it failed")

        def scatter_slices(self, data, *_, **__):
            return data

    monkeypatch.setattr(verify, "_on_cuda", Wrong)
    assert first_calls.main() == 8
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "gather: RuntimeError: it failed"
    assert lines[2:9] == [
        f"{name}: other bits than NumPy's" for name in list(first_calls.operands())[1:]
    ]
    assert lines[9] == "8 of 8 calls went wrong"


def test_kernels_of_the_first_calls_are_packed(monkeypatch):
    rows = list(kernels.verify_cases.case_rows())[::20]
    monkeypatch.setattr(kernels.verify_cases, "case_rows", lambda: iter(rows))
    monkeypatch.setattr(kernels, "DRAWN", settings(kernels.DRAWN, max_examples=20))
    needed = set(kernels.needed())
    for call in first_calls.operands().values():
        assert needed >= set(kernels.launched(*call))
    assert {kernel.name for kernel in needed} >= {
        "check", "gather", "winners", "scatter", "keys", "fold", "fold_long", "fold_atomic",
        "scatter_sorted", "pattern", "fold_small", "scatter_small",
    }  # fmt: skip
    assert {dict(kernel.macros).get("REDUCTION") for kernel in needed} == {None, *FOLDS}
    assert 250 < len(needed) < 2000


def test_a_kit_has_the_wheels_and_the_compiled_kernels(tmp_path, monkeypatch, capsys):
    few = [Kernel.of("check", MODE=mode) for mode in ("a", "b")]
    wheel = tmp_path / "gatherum-1.whl"
    wheel.write_bytes(b"a wheel")
    monkeypatch.setattr(pack.kernels, "needed", lambda: few)
    monkeypatch.setattr(nvidia, "open_compiler", lambda: driver.Compiler(CompilerDouble()))
    monkeypatch.setattr(pack, "KIT", tmp_path / "kit")
    monkeypatch.setenv("GATHERUM_CUDA_CACHE", "")  # is restored
    monkeypatch.setattr(sys, "argv", ["pack.py", str(wheel), "--no-sorters"])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 0, b""))
    pack.main()
    printed = capsys.readouterr().out
    assert printed.startswith("2 kernels for sm_90, 0.0 MiB\n")
    assert printed.endswith(f'python3 tests/device/first.py {tmp_path / "kit"} "$OUT"\n')
    assert (tmp_path / "kit" / wheel.name).read_bytes() == b"a wheel"
    monkeypatch.undo()
    (tmp_path / "kit" / wheel.name).unlink()
    result = first.installed(tmp_path / "kit", tmp_path / "there")
    entries = list(Path(result["GATHERUM_CUDA_CACHE"]).glob("*.cubin"))
    assert len(entries) == 2
    assert all(code_cache._read(entry) for entry in entries)


def test_a_kit_that_cannot_be_carried_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "large.whl").write_bytes(bytes(3 << 20))
    monkeypatch.setattr(pack, "KIT", tmp_path)
    monkeypatch.setattr(pack, "MOST", 2 << 20)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 0, b""))
    with pytest.raises(SystemExit, match="more than can be carried; leave wheels out"):
        pack.check_size()
    assert "     3.0 MiB  large.whl\n" in capsys.readouterr().out
