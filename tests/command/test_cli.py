"""The command: its results, its output and its exit statuses."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum._command import verify_cases
from gatherum._model.modes import MODES
from source import ROOT

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
import gatherum._command.cli.files  # noqa: E402  # whose files the tests replace
from gatherum._command import cli  # noqa: E402
from gatherum.files.resources import progress as progress_of_files  # noqa: E402

EXAMPLES = ROOT / "examples"
GATHERS = ["gather", "gather-elements", "gather-nd"]
SCATTERS = ["scatter-slices", "scatter-elements", "scatter-nd"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", np.arange(12.0).reshape(4, 3))
    np.save("rows.npy", np.array([2, 0, 2]))
    np.save("bad.npy", np.array([1, 4]))
    np.save("columns.npy", np.array([[2], [0], [1], [1]]))
    np.save("points.npy", np.array([[0, 1], [3, 2], [0, 1]]))
    np.save("ones.npy", np.ones(3))
    np.save("four.npy", np.ones((4, 1)))
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    """Run a command line. Return status, standard output and standard error."""

    def call(*arguments):
        status = cli.run(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return call


TABLE = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gather", "table.npy", "rows.npy"], TABLE[[2, 0, 2]]),
        (["gather", "table.npy", "rows.npy", "--axis", "1"], TABLE[:, [2, 0, 2]]),
        (
            ["gather", "table.npy", "bad.npy", "--mode", "fill", "--fill-value", "-2.5"],
            np.array([TABLE[1], [-2.5] * 3]),
        ),
        (
            ["gather", "table.npy", "bad.npy", "--mode", "clip"],
            TABLE[[1, 3]],
        ),
        (
            ["gather-elements", "table.npy", "columns.npy", "--axis", "1"],
            np.array([[2.0], [3], [7], [10]]),
        ),
        (["gather-nd", "table.npy", "points.npy"], np.array([1.0, 11, 1])),
        (
            ["gather-nd", "table.npy", "columns.npy", "--batch-dims", "1"],
            np.array([2.0, 3, 7, 10]),
        ),
        (
            ["scatter-nd", "table.npy", "points.npy", "ones.npy", "--reduction", "add"],
            TABLE + np.array([[0, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]),
        ),
        (
            [
                *["scatter-nd", "table.npy", "points.npy", "ones.npy"],
                *["--reduction", "add", "--exclude-self"],
            ],
            np.array([[0, 2, 2], [3, 4, 5], [6, 7, 8], [9, 10, 1.0]]),
        ),
        (
            ["scatter-slices", "table.npy", "rows.npy", "ones.npy", "--reduction", "add"],
            TABLE + np.array([[1], [0], [2], [0]]),
        ),
        (
            ["scatter-elements", "table.npy", "columns.npy", "four.npy", "--axis", "1"],
            np.array([[0, 1, 1], [1, 4, 5], [6, 1, 8], [9, 1, 11.0]]),
        ),
    ],
)
def test_operators_on_files(run, arguments, expected):
    status, out, err = run(*arguments, "-o", "out.npy")
    assert (status, err) == (0, "")
    assert out.startswith("out.npy: ")
    result = np.load("out.npy")
    assert result.dtype == expected.dtype
    assert result.tolist() == expected.tolist()


def test_a_scatter_in_place(run):
    arguments = ["scatter-nd", "table.npy", "points.npy", "ones.npy", "--in-place"]
    assert run(*arguments)[0] == 0
    assert np.load("table.npy")[[0, 3], [1, 2]].tolist() == [1, 1]
    assert run(*arguments, "-o", "out.npy") == (
        2,
        "",
        "gatherum: --in-place changes TABLE, so it takes no --out. "
        "See gatherum scatter-nd --help.\n",
    )


def blocks_of_readme(language):
    text = (EXAMPLES.parent / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_first_command_of_the_readme_prints_the_output_shown(folder, run):
    *_, command = blocks_of_readme("bash")[0].strip().split(" && .venv/bin/gatherum ")
    (folder / "examples").symlink_to(EXAMPLES)
    status, out, err = run(*command.split())
    assert (status, err) == (0, "")
    assert out == blocks_of_readme("text")[0]
    assert "Jupiter" in out


def test_ci_runs_the_second_command_of_the_readme():
    command = (
        r"""awk '/^```bash$/ { block++; inside = 1; next } """
        r"""/^```$/ { inside = 0 } inside && block == 2' README.md"""
    )
    assert command in (EXAMPLES.parent / ".ci" / "run").read_text()
    done = shell("bash", "-c", command, cwd=EXAMPLES.parent)
    assert done.stdout == blocks_of_readme("bash")[1]
    assert done.stdout.endswith(".venv/bin/nox -s test\n")


def test_remedies_are_flags(run, folder):
    scatter = ["scatter-slices", "table.npy", "rows.npy", "ones.npy"]
    assert run(*scatter, "-o", "table.npy") == (
        1,
        "",
        "gatherum: scatter-slices: the output table.npy is the same file as the table; --in-place "
        "changes the table itself\n",
    )
    journal = folder.resolve() / "out.npy.partial.journal"
    journal.write_text('{"gatherum": 0}\n')
    assert run(*scatter, "-o", "out.npy", "--resume") == (
        1,
        "",
        f"gatherum: {journal}: cannot resume, it was written by another version (without --resume "
        "the run starts over)\n",
    )


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
            "Invalid value for '--memory': memory must be a size such as '512MiB', got 'pig'. "
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


def test_check(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    status, out, err = run("check", page)
    assert (status, err) == (0, "")
    assert out == "scatter_nd: SCATTER_ND: accepted by feature level 6_4\n"
    status, out, err = run("check", page, "--feature-level", "2_0")
    assert (status, err) == (1, "")
    assert out.splitlines()[0].startswith("scatter_nd: SCATTER_ND: rejected by feature level 2_0, ")
    assert run("check", "no.json") == (1, "", "gatherum: no.json: No such file or directory\n")
    status, out, err = run("check", "table.npy")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: ")
    assert err.count("\n") == 1


MODEL = {
    "resources": {
        "out": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2.5]},
        "answer": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]},
    },
    "dispatchables": {},
}


def test_run_of_a_model(run, folder):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    assert run("run", page) == (0, "Resource 'output': 1, 11, 3, 10, 9, 6, 7, 12\n", "")
    target = {"type": "writeFile", "resource": "out", "targetPath": "written.npy"}
    compare = {"type": "compare", "resource": "out", "expected": "answer"}
    Path("model.json").write_text(json.dumps(MODEL | {"commands": [target, compare]}))
    status, out, err = run("run", "model.json")
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "Resource 'out' written to 'written.npy'",
        "Resource 'out' differs from 'answer' in 1 of 2 elements: at [1] it has 2.5, expected 2",
    ]
    np.testing.assert_array_equal(np.load("written.npy"), np.float32([1, 2.5]))
    os.unlink("written.npy")
    Path("model.json").write_text(json.dumps(MODEL | {"commands": [target, {"type": "wait"}]}))
    status, out, err = run("run", "model.json")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: model.json: `commands[1].type` must be one of dispatch, ")
    assert err.count("\n") == 1
    assert not Path("written.npy").exists()
    assert run("run", "no.json") == (1, "", "gatherum: no.json: No such file or directory\n")
    Path("net.onnx").write_bytes(b"\x08\x0a\x12")
    assert run("run", "net.onnx") == (
        1, "", "gatherum: net.onnx is an ONNX model; `run` takes DirectML's models in JSON. "
        "`gatherum check` checks an ONNX model, and onnx.reference or onnxruntime runs it\n",
    )  # fmt: skip


def test_check_for_programs(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    _, lines, _ = run("check", page, "--feature-level", "2_0")
    status, out, err = run("check", page, "--feature-level", "2_0", "--json")
    assert (status, err) == (1, "")
    assert json.loads(out) == {"accepted": False, "lines": lines.splitlines()}
    status, out, err = run("check", page, "--json")
    line = "scatter_nd: SCATTER_ND: accepted by feature level 6_4"
    assert (status, json.loads(out), err) == (0, {"accepted": True, "lines": [line]}, "")


def test_check_of_a_model(run):
    onnx = pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[rows, 3] table, int64[2] ids) => (y) { [lookup] y = Gather(table, ids) }"""
    )
    onnx.save(model, "model.onnx")
    status, out, err = run("check", "model.onnx", "--size", "rows=5")
    assert (status, err) == (0, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 1 accepted, 0 rejected, 0 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx", "--size", "rows=5", "--feature-level", "2_0")
    assert (status, err) == (1, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 0 accepted, 1 rejected, 0 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx")
    assert (status, err) == (1, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 0 accepted, 0 rejected, 1 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx", "--json")
    assert (status, err) == (1, "")
    answer = json.loads(out)
    assert answer["accepted"] is None
    assert [(node["name"], node["accepted"]) for node in answer["nodes"]] == [("lookup", None)]


def test_check_of_a_model_without_any_gather_or_scatter(run):
    onnx = pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (bool b, float[3] x) => (y) {
            y = If (b) <then_branch = t () => (z) { z = Abs(x) },
                        else_branch = e () => (w) { w = Neg(x) }>
        }"""
    )
    onnx.save(model, "none.onnx")
    line = "the model has no gather or scatter node: it has Abs, If, Neg\n"
    assert run("check", "none.onnx") == (3, line, "")
    status, out, err = run("check", "none.onnx", "--json")
    assert (status, err) == (3, "")
    assert json.loads(out) == {"accepted": None, "nodes": [], "operators": ["Abs", "If", "Neg"]}
    Path("none.json").write_text(json.dumps({"dispatchables": {"b": {"type": "hlsl"}}}))
    line = "the model has no gather or scatter operator: it has b (hlsl)\n"
    assert run("check", "none.json") == (3, line, "")


def test_check_of_several_files(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    gather = str(EXAMPLES / "directml" / "gather_elements.json")
    Path("none.json").write_text(json.dumps({"dispatchables": {}}))
    status, out, err = run("check", page, gather)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{page}:",
        "scatter_nd: SCATTER_ND: accepted by feature level 6_4",
        f"{gather}:",
        "gather_elements: GATHER_ELEMENTS: accepted by feature level 6_4",
    ]
    assert run("check", page, "none.json")[0] == 3
    assert run("check", page, "none.json", gather, "--feature-level", "2_0")[0] == 1
    status, out, err = run("check", page, "none.json", "--json")
    assert (status, err) == (3, "")
    assert [(one["file"], one["accepted"]) for one in json.loads(out)] == [
        (page, True),
        ("none.json", None),
    ]
    assert run("check")[0] == 2
    assert run("check", page, "no.json")[2] == "gatherum: no.json: No such file or directory\n"


@pytest.mark.parametrize("level", ["3.0", "3_0", "DML_FEATURE_LEVEL_3_0", "LEVEL_3_0"])
def test_a_level_has_several_spellings(run, level):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    line = "scatter_nd: SCATTER_ND: accepted by feature level 3_0\n"
    assert run("check", page, "--feature-level", level) == (0, line, "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_bytes_rate_and_time_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_of_files.progress_shown(True, "gather table.npy") as progress:
        progress.phase("gathering")
        for moved in (0, 1 << 20, 3 << 20):
            progress(moved, 4 << 20)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue())
    line = r"gather table\.npy: gathering \S+ 3\.0 of 4\.0 MiB, \d+(\.\d)? [KMGT]?i?B/s 0:00:0\d"
    assert re.search(line, shown), shown
    assert "?" not in shown


def test_a_summary_begins_with_the_result(run, folder):
    status, out, _ = run("gather", "table.npy", "rows.npy", "-o", "out.npy")
    result = np.load("out.npy")
    assert status == 0
    assert out.startswith(f"out.npy: float64 {result.shape}, {result.nbytes} B; 3 rows, read ")
    status, out, _ = run("groups", "rows.npy", "--func", "count", "-o", "counts.npy")
    assert out.startswith(f"counts.npy: int64 {np.load('counts.npy').shape}, ")


def test_no_progress_without_a_terminal(run, folder, monkeypatch):
    from gatherum import files

    asked = []
    monkeypatch.setattr(files, "gather_file", lambda *_, **call: asked.append(call["progress"]))
    for terminal, more in ((False, ()), (True, ()), (True, ("--no-progress",))):
        monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
        run("gather", "table.npy", "rows.npy", "-o", "out.npy", *more)
    assert asked == [False, True, False]


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


def test_info_is_the_configuration(run, capfd):
    status, out, err = run("info")
    gatherum.show_config()
    assert (status, err) == (0, "")
    assert out == capfd.readouterr().out


def test_explain_prints_and_draws_the_same_as_python(run, folder):
    arguments = ["--data", "2x3x4", "--indices", "5", "--axis", "1", "--svg", "picture.svg"]
    status, out, err = run("explain", "gather", *arguments)
    explanation = gatherum.explain("gather", ((2, 3, 4), "f4"), ((5,), "i8"), axis=1)
    assert (status, err) == (0, "")
    assert out == f"{explanation}\n\n{explanation.text()}\n\nPicture: picture.svg\n"
    assert (folder / "picture.svg").read_text(encoding="utf-8") == explanation.svg()


def test_explain_fits_the_terminal_and_has_colours(monkeypatch):
    arguments = [
        "explain",
        "scatter-nd",
        "--data",
        "6",
        "--values",
        "0,2,2,5",
        "--reduction",
        "add",
    ]
    monkeypatch.setenv("COLUMNS", "60")
    for variable, coloured in (("GATHERUM_UNUSED", True), ("NO_COLOR", False)):
        monkeypatch.setenv(variable, "1")
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert cli.run(arguments) == 0
        out = sys.stdout.getvalue()
        assert ("\x1b[38;5;" in out) == coloured
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
        assert max(map(len, plain.splitlines())) <= 60
        assert (
            """
    for i in range(4):
        x = check(indices[8*i], 6)
        out[4*x] = add(out[4*x], updates[4*i])  # 4 bytes
    # check(x, n): x in [-n, n), counted from the end below
    # 0; else an IndexError

"""
            in plain
        )
        explanation = gatherum.explain("scatter_nd", ((6,), "f4"), np.array([[0], [2], [2], [5]]),
                                       ((4,), "f4"), reduction="add")  # fmt: skip
        assert plain.endswith(f"\n{explanation.text(60)}\n")
        words = f"{explanation} {explanation.text(60)}".replace("#", "").split()
        assert plain.replace("#", "").split() == words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gather_nd", "--data", "4x3", "--values", "0,2,2,7"],
         "  found     4 entries, 1 invalid"),
        (["gather", "--data", "table.npy", "--indices", "rows.npy"], "  data      float64 (4, 3)"),
        (["gather", "--data", "table.npy", "--values", "rows.npy"], "  found     3 entries, 0"),
        (["gather", "--data", "9", "--values", "1,2,3,4", "--indices", "2x2"], "float32 (2, 2)"),
        (["gather-nd", "--data", "scalar", "--indices", "3x0"], "gather_nd -> float32 (3,)"),
        (["scatter-nd", "--data", "2x3x4", "--indices", "2x7x1", "--batch-dims", "1"],
         "  updates   float32 (2, 7, 4)"),
        (["scatter-elements", "--data", "4x3", "--indices", "columns.npy", "--axis", "1"],
         "  updates   float32 (4, 1)"),
        (["scatter-nd", "--data", "table.npy", "--indices", "points.npy", "--updates", "ones.npy",
          "--reduction", "mean", "--exclude-self"], "reduction='mean', include_self=False"),
        (["gather", "--data", "9", "--values", "200", "--index-dtype", "uint8", "--mode", "fill",
          "--fill-value", "nan", "--no-negative"], "mode='fill', negative=False"),
    ],
)  # fmt: skip
def test_explain_takes_shapes_lists_and_files(run, arguments, expected):
    status, out, err = run("explain", *arguments)
    assert (status, err) == (0, "")
    assert expected in out


def test_explain_names_the_kernels_of_a_device(run):
    operands = ["--data", "100000x64", "--indices", "1000000"]
    fold = ["--reduction", "add", "--mode", "drop", "--device", "cuda"]
    status, out, err = run("explain", "scatter-slices", *operands, *fold)
    assert (status, err) == (0, "")
    expected = """
  device    cuda
  launches  gather + keys + sort + fold + fold_long + fold_long: the updates are sorted by \
destination, then folded in order
    gather         copies the data; 16 bytes at a time; 32-bit offsets
    keys           computes the destination number of each update; int64 indices; 32-bit offsets
    sort           sorts the updates by destination: torch.sort, cupy.argsort or CUB; 17 \
bits of keys of 4 bytes, payload of 4 bytes
    fold           folds each destination's updates in order, by a thread; add of float32; \
4 items at a time; 32-bit offsets
    fold_long      folds destinations with more than 16 updates, by a warp; add of float32; \
4 items at a time; 32-bit offsets
    fold_long      folds destinations with more than 512 updates, by a block; add of float32; \
4 items at a time; 32-bit offsets
  moves     571,200,000 bytes, scratch 16,000,000 bytes

Loops"""
    assert expected in out
    status, out, _ = run("explain", "gather", "--data", "9", "--values", "1,9", "--device", "cuda")
    assert status == 0
    assert "    gather         moves the items that the indices address; int64 indices; 4 by" in out
    assert "  raises    IndexError: gather: index 9 is out of bounds for axis 0 of size 9" in out


def test_the_floor_of_a_device_needs_one(run, monkeypatch):
    def no_driver(*_):
        raise RuntimeError("no CUDA device answers")

    monkeypatch.setattr("gatherum.cuda.explain.open_driver", no_driver)
    arguments = ["gather", "--data", "9", "--indices", "3", "--device", "cuda", "--floor"]
    status, out, err = run("explain", *arguments)
    assert (status, err) == (1, "gatherum: no CUDA device answers\n")
    assert "  launches  gather: every item" in out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["take", "--data", "2", "--indices", "3"], 2,
         "Invalid value for 'OP': 'take' is not one of 'gather', 'gather-elements', 'gather-nd', "
         "'scatter-slices', 'scatter-elements', 'scatter-nd'."),
        (["gather", "--data", "2xa", "--indices", "3"], 2,
         "Invalid value for '--data': must be sizes such as 2x3x4, scalar, a .npy file or -, got "
         "'2xa'."),
        (["gather", "--data", "2", "--values", "1,b"], 2,
         "Invalid value for '--values': must be integers such as 0,2,2,7, a .npy file or -, got "
         "'1,b'."),
        (["gather", "--data", "2"], 2, "Missing option '--indices' (or '--values')."),
        (["gather", "--data", "2", "--values", "-1", "--index-dtype", "u1"], 2,
         "--values must fit into --index-dtype uint8."),
        (["gather", "--data", "2", "--values", "1", "--indices", "rows.npy"], 2,
         "--values and a file of --indices exclude each other."),
        (["gather", "--data", "2", "--indices", "1", "--batch-dims", "0"], 2,
         "gather takes --axis, not --batch-dims."),
        (["gather", "--data", "2", "--indices", "1", "--updates", "2"], 2,
         "gather takes no --updates."),
        (["gather", "--data", "2", "--indices", "1", "--updates", str(EXAMPLES / "planets.npy")], 2,
         "gather takes no --updates."),
        (["gather", "--data", "2", "--indices", "1", "--reduction", "add"], 2,
         "gather takes no --reduction."),
        (["gather", "--data", "2", "--indices", "1", "--exclude-self"], 2,
         "gather takes no --exclude-self."),
        (["gather", "--data", "2", "--indices", "1", "--dtype", "float31"], 2,
         "Invalid value for '--dtype': must be a dtype such as float32, got 'float31'."),
        (["gather", "--data", "2x3", "--indices", "1", "--axis", "2"], 1,
         "gather: `axis` must be in [-2, 2), got 2"),
        (["scatter-nd", "--data", "2", "--indices", "1x1", "--updates", "3"], 1,
         "scatter-nd: `updates` must have shape (1,), got (3,)"),
        (["gather", "--data", "9", "--values", "1,2,3", "--indices", "2x2"], 1,
         "explain: --values must be 4 numbers for indices of shape (2, 2), got 3"),
        (["gather", "--data", "9", "--indices", "3", "--mode", "wrap", "--fill-value", "1"], 2,
         "--fill-value is for --mode fill or drop, got --mode wrap."),
        (["gather", "--data", "none.npy", "--indices", "3"], 1,
         "none.npy: No such file or directory"),
        (["gather", "--data", "empty.npy", "--indices", "3"], 1,
         "empty.npy: not a .npy file (no \\x93NUMPY at its beginning)"),
    ],
)  # fmt: skip
def test_errors_of_explain(run, folder, arguments, status, message):
    (folder / "empty.npy").touch()
    if status == 2:
        message += " See gatherum explain --help."
    assert run("explain", *arguments) == (status, "", f"gatherum: {message}\n")


def test_a_picture_creates_no_folder(run, folder):
    arguments = "gather", "--data", "2x3", "--indices", "2", "--svg", "missing/x.svg"
    message = f"missing/x.svg: the directory {folder.resolve()}/missing does not exist"
    assert run("explain", *arguments) == (1, "", f"gatherum: {message}\n")
    with pytest.raises(FileNotFoundError) as raised:
        gatherum.explain("gather", (2, 3), (2,)).save("missing/x.svg")
    assert str(raised.value) == message
    assert not (folder / "missing").exists()


def test_a_picture_replaces_no_operand(run, folder):
    before = (folder / "rows.npy").read_bytes()
    arguments = "gather", "--data", "table.npy", "--values", "rows.npy", "--svg", "./rows.npy"
    message = "gatherum: explain: the picture ./rows.npy is the same file as --values\n"
    assert run("explain", *arguments) == (1, "", message)
    assert (folder / "rows.npy").read_bytes() == before


def test_verify_says_how_many_digests_agree(run, monkeypatch):
    rows = [("gather", "int8", "none"), ("gather", "int16", "none")]
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter(rows))
    status, out, err = run("verify")
    assert (status, err) == (0, "")
    assert out.startswith("2 of 2 digests as published (level ")


def test_verify_names_different_digests(run, monkeypatch):
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([("gather", "int8", "none")]))
    monkeypatch.setattr("gatherum._command.verify.row_digest", lambda *_: "0" * 32)
    status, out, _ = run("verify")
    assert status == 1
    assert out.startswith("gather/int8/none: differs from the published digest\n0 of 1 ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gatherum ver", {"plain,verify"}),
        ("gatherum explain sc", {f"plain,{name}" for name in SCATTERS}),
        ("gatherum gather --mode ", {f"plain,{mode}" for mode in MODES}),
        (
            "gatherum scatter-nd --reduction m",
            {f"plain,m{end}" for end in ("ul", "ax", "in", "ean")},
        ),
        ("gatherum check m.onnx --feature-level 4", {"plain,4_0", "plain,4_1"}),
        ("gatherum gather tab", {"file,tab"}),
    ],
)
def test_shells_complete(folder, words, expected):
    line = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = shell(
        *(sys.executable, "-m", "gatherum"), cwd=folder, _GATHERUM_COMPLETE="bash_complete", **line
    )
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(run, name):
    status, out, err = run("completion", name)
    assert (status, err) == (0, "")
    assert f"_GATHERUM_COMPLETE={name}_complete" in out


COMMANDS = [
    *GATHERS,
    *SCATTERS,
    "groups",
    "vectors",
    "check",
    "run",
    "explain",
    "verify",
    "info",
    "completion",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    status, out, err = run(command, "--help")
    assert (status, err) == (0, "")
    assert re.search(rf"Example: .*gatherum {command}", out)
    whole = re.findall(r"^ *(Example: .*)$", cli.commands.commands[command].help, re.MULTILINE)
    assert re.findall(r"^ *(Example: .*)$", out, re.MULTILINE) == whole  # complete lines
    assert set(COMMANDS) == set(cli.commands.commands)


def test_the_list_of_commands_is_whole(run):
    status, out, err = run("--help")
    assert (status, err) == (0, "")
    listed = out.partition("Commands:")[2]
    assert re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE) == sorted(COMMANDS)
    assert "..." not in listed


ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gatherum.__file__).parents[1])}


def shell(*command, cwd=None, **environment):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=ENVIRONMENT | environment,
        cwd=cwd,
    )


def test_the_module_runs(folder):
    done = shell(sys.executable, "-m", "gatherum", "--version")
    assert (done.returncode, done.stdout) == (0, f"gatherum {gatherum.__version__}\n")
    done = shell(sys.executable, "-m", "gatherum", "gather", "no.npy", "rows.npy", "-o", "out.npy")
    assert (done.returncode, done.stderr) == (1, "gatherum: no.npy: No such file or directory\n")


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


def test_groups(run):
    np.save("shop.npy", np.array([0, 2, 2, 0]))
    Path("shop.csv").write_text("0,2,2,0\n")
    assert run("groups", "table.npy", "shop.npy", "-o", "o.npy", "--func", "mean")[0] == 0
    assert np.load("o.npy")[0].tolist() == [4.5, 5.5, 6.5]
    assert np.isnan(np.load("o.npy")[1]).all()
    for groups in ("shop.npy", "shop.csv"):
        assert run("groups", groups, "--func", "count", "--size", "4") == (0, "[2 0 2 0]\n", "")
    result = run("groups", "table.npy", "shop.csv", "--func", "max", "--fill-value", "-1")
    assert result == (0, "[[ 9. 10. 11.]\n [-1. -1. -1.]\n [ 6.  7.  8.]]\n", "")
    assert run("groups", "table.npy")[0::2] == (
        2, "gatherum: Missing argument 'GROUPS'. See gatherum groups --help.\n",
    )  # fmt: skip
    assert run("groups", "table.npy", "shop.npy", "--size", "2")[0::2] == (
        1, "gatherum: groups: index 2 is out of bounds for axis 0 of size 2 (groups[1])\n",
    )  # fmt: skip
    status, _, line = run("groups", "table.npy", "shop.npy", "-o", "o.npy", "--no-clobber")
    assert (status, "exists already" in line) == (1, True)
