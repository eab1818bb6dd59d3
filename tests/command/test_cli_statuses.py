"""Exit statuses, and failures outside a call: missing extras, signals, closed pipes."""

import os
import re
import signal
import subprocess
import sys
import tomllib

import numpy as np
import pytest

import gatherum
from command_lines import ENVIRONMENT, shell
from source import ROOT

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
import gatherum._command.cli.files  # noqa: E402  # whose files the tests replace

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing command. See gatherum --help."),
        (["take"], "No such command 'take'. See gatherum --help."),
        (["--quite"], "No such option '--quite'. See gatherum --help."),
        (["gather"], "Missing argument 'TABLE'. See gatherum gather --help."),
        (
            ["gather", "table.npy", "rows.npy"],
            "Missing option '-o' / '--out'. See gatherum gather --help.",
        ),
        (
            ["scatter-nd", "table.npy", "points.npy", "ones.npy"],
            "Missing option '-o' / '--out' (or --in-place). See gatherum scatter-nd --help.",
        ),
        (
            ["gather", "table.npy", "rows.npy", "-o", "out.npy", "--mode", "ignore"],
            "Invalid value for '--mode': 'ignore' is not one of 'raise', 'clip', 'wrap', 'fill', "
            "'drop'. See gatherum gather --help.",
        ),
        (
            ["gather", "table.npy", "rows.npy", "-o", "out.npy", "--memory", "pig"],
            "Invalid value for '--memory': must be a size such as '512MiB', got 'pig'. "
            "See gatherum gather --help.",
        ),
        (
            ["check", "x.json", "--feature-level", "9"],
            "Invalid value for '--feature-level': feature level must be one of 1_0, 2_0, 2_1, "
            "3_0, 3_1, 4_0, 4_1, 5_0, 5_1, 5_2, 6_0, 6_1, 6_2, 6_3, 6_4, got '9'. "
            "See gatherum check --help.",
        ),
        (
            ["check", "x.onnx", "--size", "batch"],
            "Invalid value for '--size': must be a name and a size such as batch=8, got 'batch'. "
            "See gatherum check --help.",
        ),
    ],
)
def test_usage_is_status_2_and_one_line(run, arguments, message):
    assert run(*arguments) == (2, "", f"gatherum: {message}\n")
    assert not os.path.exists("out.npy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gather", "none.npy", "rows.npy"], "none.npy: No such file or directory"),
        (
            ["gather", "table.npy", "bad.npy"],
            "gather: index 4 is out of bounds for axis 0 of size 4 (indices[1])",
        ),
        (
            ["gather", "table.npy", "rows.npy", "--axis", "2"],
            "gather: `axis` must be in [-2, 2), got 2",
        ),
        (
            ["gather", "table.npy", "table.npy"],
            "gather: `indices` must have an integer dtype, got float64",
        ),
        (
            ["scatter-slices", "table.npy", "rows.npy", "rows.npy"],
            "scatter-slices: `updates` must have the dtype of `data`, float64, got int64",
        ),
        (
            ["gather-nd", "table.npy", "rows.npy"],
            "gather-nd: the last dimension of `indices` must be at most 2, the dimensions of "
            "`data` that are not batch dimensions, got 3",
        ),
        (
            ["scatter-elements", "table.npy", "rows.npy", "table.npy"],
            "scatter-elements: `indices` must have as many dimensions as `data`, 2, got 1",
        ),
        (
            ["gather", "table.npy", "bad.npy", "--mode", "fill", "--fill-value", "x"],
            "gather: `fill_value` must convert exactly to the dtype of `data`, float64, got 'x'",
        ),
    ],
)
def test_data_is_status_1_and_one_line(run, arguments, message):
    assert run(*arguments, "-o", "out.npy") == (1, "", f"gatherum: {message}\n")
    assert not os.path.exists("out.npy")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (MemoryError("no 3 GiB"), 1, "not enough memory: no 3 GiB"),
        (OSError(28, "No space left on device", "out.npy"), 1, "out.npy: No space left on device"),
        (ValueError("one\n  and two"), 1, "one and two"),
        (ModuleNotFoundError("zarr is missing"), 1, "zarr is missing"),
        (
            RuntimeError("lost"),
            1,
            "internal error, please report it: RuntimeError: lost",
        ),
    ],
)
def test_nothing_ends_in_a_traceback(run, monkeypatch, error, status, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(gatherum.files, "gather_file", fail)
    arguments = ["gather", "table.npy", "rows.npy", "-o", "out.npy"]
    assert run(*arguments) == (status, "", f"gatherum: {message}\n")


def test_an_extra_that_is_missing_is_one_line(folder):
    done = shell(
        sys.executable,
        "-c",
        "import sys; sys.modules['zarr'] = None; sys.argv[0] = 'gatherum'\n"
        "sys.argv[1:] = 'gather table.npy rows.npy -o out.zarr'.split()\n"
        "from gatherum.__main__ import main; sys.exit(main())",
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "gatherum: Zarr arrays need zarr: pip install zarr\n",
    )


@pytest.mark.parametrize("option", ["--workers=2", "--scheduler=tcp://127.0.0.1:8786"])
def test_a_cluster_without_dask_is_wrong_usage(folder, option):
    done = shell(
        sys.executable,
        "-c",
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None\n"
        f"sys.argv = 'gatherum gather table.npy rows.npy -o out.zarr {option}'.split()\n"
        "from gatherum.__main__ import main; sys.exit(main())",
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"gatherum: {option.partition('=')[0]} needs dask and distributed: pip install "
        "'dask[array]' distributed. See gatherum gather --help.\n",
    )


def test_each_extra_installs_the_package_that_its_message_names():
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())
    extras = {
        extra: {re.match(r"\w+", need)[0] for need in needs}
        for extra, needs in project["project"]["optional-dependencies"].items()
    }
    assert extras == {
        "cli": {"click", "rich"},
        "onnx": {"onnx"},
        "jax": {"jax"},
        "torch": {"torch"},
        "dask": {"dask", "distributed"},
        "remote": {"fsspec", "aiohttp"},
        "cuda": {"cuda", "nvidia"},  # cuda-bindings, nvidia-cuda-nvrtc
        "zarr": {"zarr"},
        "hdf5": {"h5py"},
        "arrow": {"pyarrow"},
        "safetensors": {"ml_dtypes"},  # only for reductions of bfloat16
        "peers": {
            *("onnx", "onnxruntime", "numba", "jax"),
            *("scipy", "numpy_groupies", "polars", "pandas", "pyarrow"),
        },
    }


@pytest.mark.parametrize("as_script", [True, False])
@pytest.mark.parametrize("arguments", [["info"], ["--help"]])
def test_a_wrong_environment_variable_is_one_line(tmp_path, as_script, arguments):
    script = tmp_path / "gatherum"  # as pip writes it
    script.write_text("import sys\nfrom gatherum.__main__ import main\nsys.exit(main())\n")
    start = [script] if as_script else ["-m", "gatherum"]
    done = shell(sys.executable, *start, *arguments, GATHERUM_NUM_THREADS="abc")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "gatherum: GATHERUM_NUM_THREADS must be an integer, got 'abc'\n",
    )


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_its_extra_the_command_names_it(missing):
    done = shell(
        sys.executable,
        "-c",
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from gatherum.__main__ import main; sys.exit(main())",
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"gatherum: the command line needs {missing}: pip install click rich\n",
    )


def test_a_closed_pipe_raises_no_error(folder):
    np.save("long.npy", np.arange(900.0))
    command = (
        f"{sys.executable} -m gatherum gather long.npy rows.npy -o out.npy --print | head -c 0"
    )
    done = shell("bash", "-c", f"set -o pipefail; {command}")
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
def test_ctrl_c_is_answered(folder):
    np.save("rows.npy", np.zeros(40_000_000, np.int8))
    command = [sys.executable, "-m", "gatherum", "gather", "table.npy", "rows.npy"]
    command += ["-o", "out.npy", "--memory", "64MiB"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            while not os.path.exists("out.npy.partial"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "gatherum: interrupted\n")
    assert not os.path.exists("out.npy")
