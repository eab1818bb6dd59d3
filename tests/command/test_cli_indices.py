"""Row numbers on the command line and in text files, and errors before any work."""

import codecs
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from command_lines import npy
from gatherum._command import startup
from source import ROOT

cli = pytest.importorskip("gatherum._command.cli", reason="install click: pip install click rich")

TABLE = np.arange(12.0).reshape(4, 3)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command line in a folder of small files. Return status, output and error."""
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", TABLE)
    np.save("rows.npy", np.array([2, 0]))
    np.save("bad.npy", np.array([7]))
    np.save("ones.npy", np.ones(3))

    def call(*arguments):
        status = cli.run(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return call


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("gather", "2,0,2", TABLE[[2, 0, 2]]),
        ("gather", "-1", TABLE[[-1]]),
        ("gather", "", TABLE[:0]),
        ("gather", f"{2**64 - 1}", np.full((1, 3), -1.0)),
        ("gather-nd", "2,0", TABLE[[2, 0]]),
    ],
)
def test_values_take_the_place_of_an_index_file(run, command, text, expected):
    options = ["--mode", "fill", "--fill-value", "-1", f"--values={text}", "-o", "out.npy"]
    assert run(command, "table.npy", *options)[::2] == (0, "")
    assert np.load("out.npy").tolist() == expected.tolist()


@pytest.mark.parametrize("command", ["scatter-slices", "scatter-nd"])
def test_values_of_a_scatter(run, command):
    status = run(command, "table.npy", "ones.npy", "--values", "2,0", "-o", "out.npy")[0]
    assert status == 0
    assert np.load("out.npy").tolist() == np.where([[1], [0], [1], [0]], 1, TABLE).tolist()


@pytest.mark.parametrize(
    ("command", "name", "text", "expected"),
    [
        ("gather", "rows.csv", "2\n0\n2\n", TABLE[[2, 0, 2]]),
        ("gather", "rows.csv", "2,0,2", TABLE[[2, 0, 2]]),
        ("gather", "rows.TXT", "2 0\r\n\r\n3,1\r\n", TABLE[[[2, 0], [3, 1]]]),
        ("gather", "rows.txt", "", TABLE[:0]),
        ("gather-nd", "points.csv", "2,0\n3, 1\n", TABLE[[2, 3], [0, 1]]),
        ("gather-nd", "points.txt", "2\n3\n", TABLE[[2, 3]]),
        ("gather-nd", "points.txt", "2 1", TABLE[[2], [1]]),
        ("gather-nd", "points.csv", "row,column\n0,1\n", TABLE[[0], [1]]),
        ("gather-nd", "points.tsv", "2\t0\n3\t1\n", TABLE[[2, 3], [0, 1]]),
        ("gather-nd", "points.TSV", "row\tcolumn\n2\t0\n3\t1\n", TABLE[[2, 3], [0, 1]]),
        ("gather", "rows.csv", "\ufeffrow\n2\n0\n", TABLE[[2, 0]]),
        ("gather-nd", "points.csv", "# of x\nrow 1,column\n2,0\n3,1\n", TABLE[[2, 3], [0, 1]]),
        ("gather", "rows.txt", "row column\n2 0\n", TABLE[[2, 0]]),
    ],
)
def test_a_text_file_takes_the_place_of_an_index_file(run, command, name, text, expected):
    with open(name, "w", newline="", encoding="utf-8") as file:
        file.write(text)
    assert run(command, "table.npy", name, "-o", "out.npy")[::2] == (0, "")
    assert np.load("out.npy").tolist() == expected.tolist()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_encodings_and_comments_of_text_files(run, tmp_path, encoding, ending):
    text = ending.join(["# numbers of rows", "2", "0 # again", "", "2"])
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    (tmp_path / "rows.csv").write_bytes(mark + text.encode(encoding))
    assert run("gather", "table.npy", "rows.csv", "-o", "out.npy")[::2] == (0, "")
    assert np.load("out.npy").tolist() == TABLE[[2, 0, 2]].tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"2\nrow\n", "rows.csv, line 2: expected integers, got 'row'"),
        (b"a,b\nc,d\n1,2", "rows.csv, line 2: expected integers, got 'c,d'"),
        (b"row,2\n1,2\n", "rows.csv, line 1: expected integers, got 'row,2'"),
        (b"row 2\n1 2\n", "rows.csv, line 1: expected integers, got 'row 2'"),
        (b"nan\n1\n", "rows.csv, line 1: expected integers, got 'nan'"),
        (b"2\n1.5\n", "rows.csv, line 2: expected integers, got '1.5'"),
        (b"2,1\n\n3\n", "rows.csv, line 3: has 1 numbers, the lines before 2"),
        (b"\xff\xfe2", "rows.csv: is not a text file"),
        (b"2\n\xff\n", "rows.csv: is not a text file"),
        (b"1_0\n2\n", "rows.csv, line 1: expected integers, got '1_0'"),
        (b"2\n1__0", "rows.csv, line 2: expected integers, got '1__0'"),
        (b"0x10\n2", "rows.csv, line 1: expected integers, got '0x10'"),
        (b"1;2\n3", "rows.csv, line 1: expected integers, got '1;2'"),
        ("2\n\u0661".encode(), "rows.csv, line 2: expected integers, got '\u0661'"),
        ("\u0661\n2".encode(), "rows.csv, line 1: expected integers, got '\u0661'"),
        ("1\u00a02".encode(), r"rows.csv, line 1: expected integers, got '1\xa02'"),
        (b"2\n1\x0c2", r"rows.csv, line 2: expected integers, got '1\x0c2'"),
        ("2\n3\u20284".encode(), r"rows.csv, line 2: expected integers, got '3\u20284'"),
        (b"-1\n%d\n" % 2**63, "rows.csv: the numbers fit neither int64 nor uint64 together"),
    ],
)
def test_a_text_file_of_something_else(run, tmp_path, text, message):
    (tmp_path / "rows.csv").write_bytes(text)
    status, out, err = run("gather", "table.npy", "rows.csv", "-o", "out.npy")
    assert (status, out, err) == (1, "", f"gatherum: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("gather table.npy rows.npy --values 0 -o o.npy", "--values takes the place of INDICES."),
        (
            "scatter-slices table.npy rows.npy ones.npy --values 0 -o o.npy",
            "--values takes the place of INDICES.",
        ),
        ("gather table.npy -o o.npy", "Missing argument 'INDICES' (or --values)."),
        ("scatter-nd table.npy rows.npy -o o.npy", "Missing argument 'UPDATES'."),
        ("scatter-nd table.npy --values 0 -o o.npy", "Missing argument 'UPDATES'."),
        (
            "gather table.npy --values 0 -o o.npy --resume",
            "--resume needs an array file as INDICES.",
        ),
        ("gather table.npy i.csv -o o.npy --resume", "--resume needs an array file as INDICES."),
        (
            "scatter-nd table.npy rows.npy ones.npy --in-place --no-clobber",
            "--in-place changes TABLE, so it takes no --no-clobber.",
        ),
        (
            "gather table.npy --values 0,x -o o.npy",
            "Invalid value for '--values': must be integers such as 0,2,2,7, got '0,x'.",
        ),
        (
            "gather table.npy --values 1_0 -o o.npy",
            "Invalid value for '--values': must be integers such as 0,2,2,7, got '1_0'.",
        ),
        (
            "gather table.npy --values \u0661 -o o.npy",
            "Invalid value for '--values': must be integers such as 0,2,2,7, got '\u0661'.",
        ),
        (
            "gather table.npy rows.npy -o o.npy --axis 0_0",
            "Invalid value for '--axis': must be an integer of 64 bits, got '0_0'.",
        ),
        (
            "gather table.npy rows.npy -o o.npy --memory \u0661GiB",
            "Invalid value for '--memory': must be a size such as '512MiB', got '\u0661GiB'.",
        ),
        (
            "explain gather --data 4x3 --values 1_0",
            "Invalid value for '--values': must be integers such as 0,2,2,7, a .npy file or -, "
            "got '1_0'.",
        ),
        (
            "check x.onnx --size n=\u0661",
            "Invalid value for '--size': must be a name and a size such as batch=8, "
            "got 'n=\u0661'.",
        ),
        (
            "gather table.npy rows.npy -o o.npy --fill-value 0",
            "--fill-value is for --mode fill or drop, got --mode raise.",
        ),
        ("check x.json --size n=1", "--size is for ONNX models."),
        ("gather - - -o o.npy", "TABLE and INDICES cannot both be standard input."),
        ("gather - rows.npy -o o.npy --resume", "--resume needs files, not -."),
        ("gather table.npy rows.npy -o - --resume", "--resume needs files, not -."),
        (
            "gather - rows.npy -o o.npy --format hdf5",
            "--format is of a file, not of -, which is a .npy file.",
        ),
        (
            "scatter-nd - rows.npy ones.npy --in-place",
            "--in-place changes a file, not standard input.",
        ),
    ],
)
def test_wrong_usage(run, tmp_path, arguments, message):
    (tmp_path / "x.json").write_text("{}")
    command = arguments.split()
    expected = f"gatherum: {message} See gatherum {command[0]} --help.\n"
    assert run(*command) == (2, "", expected)


@pytest.mark.parametrize("text", ["1_0", "\u0661", "1_0.5", "1e1_0", "\u00a07"])
def test_a_fill_value_in_no_notation_of_numbers_stays_text(run, text):
    options = "--mode", "fill", "--fill-value", text, "-o", "o.npy"
    status, out, err = run("gather", "table.npy", "bad.npy", *options)
    assert (status, out) == (1, "")
    assert err == (
        "gatherum: gather: `fill_value` must convert exactly to the dtype of `data`, float64, "
        f"got {text!r}\n"
    )
    np.save("names.npy", np.array(["names"]))
    assert run("gather", "names.npy", "bad.npy", *options)[::2] == (0, "")
    assert np.load("o.npy").tolist() == [text[:5]]


def test_no_clobber_keeps_existing_files(run, tmp_path):
    (tmp_path / "out.npy").write_bytes(b"old")
    arguments = "gather", "table.npy", "rows.npy", "--no-clobber"
    message = "gatherum: out.npy: exists already, and --no-clobber keeps it\n"
    assert run(*arguments, "-o", "out.npy") == (1, "", message)
    assert (tmp_path / "out.npy").read_bytes() == b"old"
    assert run(*arguments, "-o", "new.npy")[0] == 0
    assert np.load("new.npy").tolist() == TABLE[[2, 0]].tolist()


def test_a_folder_is_refused_before_any_input_is_opened(run, tmp_path):
    os.mkdir("folder")
    status, out, err = run("gather", "no.npy", "rows.npy", "-o", "folder")
    assert (status, out) == (1, "")
    assert err == (
        "gatherum: gather: the output folder would replace a directory: "
        f"{tmp_path / 'folder'}: not a Zarr array (neither zarr.json nor .zarray is there); name a "
        "new file or directory, such as 'x.npy' or 'x.zarr'\n"
    )
    assert list((tmp_path / "folder").iterdir()) == []


def test_no_array_is_made_inside_another_one(run):
    zarr = pytest.importorskip("zarr", reason="install zarr: pip install zarr")
    zarr.create_array("x.zarr", data=np.ones((2, 2)))  # its chunks are in x.zarr/c/0
    for inside in ("x.zarr/y", "x.zarr/c/y.zarr", "x.zarr/c/0/y.zarr"):
        status, _, err = run("gather", "no.npy", "rows.npy", "-o", inside)
        assert status == 1
        assert err.startswith(f"gatherum: gather: the output {inside} lies inside the Zarr array ")


def test_a_missing_package_is_reported_before_any_work(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    message = "gatherum: Zarr arrays need zarr: pip install zarr\n"
    for table, indices, out in (
        ("table.npy", "bad.npy", "out.zarr"),
        ("no.npy", "rows.npy", "out.zarr"),
        ("no.npy", "rows.zarr", "out.npy"),
    ):
        assert run("gather", table, indices, "-o", out) == (1, "", message)


@pytest.mark.parametrize("text", ["[]", "{", '{"dispatchables": 3}', '{"type": "GATHER"}'])
def test_check_names_the_file_of_a_desc(run, tmp_path, text):
    (tmp_path / "desc.json").write_text(text)
    status, out, err = run("check", "desc.json")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: desc.json: ")
    assert err.count("desc.json") == 1


def test_check_names_the_file_of_a_model(run, tmp_path):
    onnx = pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    (tmp_path / "text.onnx").write_text("no model")
    assert run("check", "text.onnx")[2].count("text.onnx") == 1
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[rows, 3] table, int64[n] ids) => (y) { y = Gather(table, ids) }"""
    )
    onnx.save(model, "model.ONNX")
    assert run("check", "model.ONNX", "--size", "row=5") == (
        1,
        "",
        "gatherum: model.ONNX: the model has no symbolic size 'row'; its own are 'n', 'rows'\n",
    )
    del model.opset_import[:]
    onnx.save(model, "model.onnx")
    status, out, err = run("check", "model.onnx")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: model.onnx: ")


def test_a_missing_model_is_reported_without_onnx_too(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "gatherum.onnx", None)
    assert run("check", "no.onnx") == (1, "", "gatherum: no.onnx: No such file or directory\n")


def test_errors_for_invalid_indices_list_the_valid_forms(run):
    for argument, text in (
        ("2,0", "'2,0' is not there, nor"),
        ("rows.dat", "'rows.dat' is not there"),
    ):
        status, out, err = run("gather", "table.npy", argument, "-o", "o.npy")
        assert (status, out) == (1, "")
        assert err.startswith(f"gatherum: {text}")
        assert err.endswith(
            ". INDICES may also be numbers in a .csv, .tsv or .txt file, or after --values\n"
        )


@pytest.mark.parametrize(
    ("arguments", "content", "expected"),
    [
        ("gather table.npy -", npy(np.array([2, 0])), TABLE[[2, 0]]),
        ("gather table.npy -", b"2\n0\n", TABLE[[2, 0]]),
        ("gather table.npy -", b"row\n", TABLE[:0]),
        ("gather-nd table.npy -", b"row column\n2 0\n3 1", TABLE[[2, 3], [0, 1]]),
        ("gather - rows.npy", npy(-TABLE), -TABLE[[2, 0]]),
        ("gather - --values 3", npy(-TABLE), -TABLE[[3]]),
        ("scatter-slices table.npy rows.npy -", npy(np.zeros(3)), TABLE * [[0], [1], [0], [1]]),
    ],
)
def test_standard_input(run, stdin, arguments, content, expected):
    stdin(content)
    assert run(*arguments.split(), "-o", "out.npy")[::2] == (0, "")
    assert np.load("out.npy").tolist() == expected.tolist()


PAGE = ROOT / "examples" / "directml" / "scatter_nd.json"


def test_a_check_of_standard_input(run, stdin):
    content = PAGE.read_bytes()
    Path("desc.json").write_bytes(content)
    for level, status in (("6_4", 0), ("2_0", 1)):
        stdin(content)
        expected = run("check", "desc.json", "--feature-level", level)
        assert expected[0] == status
        assert run("check", "-", "--feature-level", level) == expected
    stdin(content)
    status, out, err = run("check", "desc.json", "-")
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if line.endswith(":")] == [
        "desc.json:", "standard input:",
    ]  # fmt: skip
    stdin(b"{")
    assert run("check", "-")[2].startswith("gatherum: standard input: not valid JSON: ")
    for arguments, why in (
        ("- desc.json -", "two FILEs cannot both be standard input"),
        ("- --size rows=5", "--size is for ONNX models"),
    ):
        stdin(content)
        expected = 2, "", f"gatherum: {why}. See gatherum check --help.\n"
        assert run("check", *arguments.split()) == expected


def test_a_check_of_an_onnx_model_on_standard_input(run, stdin):
    parser = pytest.importorskip("onnx.parser", reason="install onnx to check its models")
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[4,3] table, int64[rows] ids) => (y) { y = Gather(table, ids) }"""
    content = parser.parse_model(text).SerializeToString()
    Path("model.onnx").write_bytes(content)
    stdin(content)
    expected = run("check", "model.onnx", "--size", "rows=5")
    assert expected[0] == 0
    assert run("check", "-", "--size", "rows=5") == expected
    stdin(content[:-3])
    status, out, err = run("check", "-")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: standard input: no ONNX model in the bytes: Error parsing ")


def test_a_model_that_is_run_from_standard_input(run, stdin):
    model = """{"resources": {"x": {"initialValuesDataType": "FLOAT32", "initialValues": [1.5]}},
        "dispatchables": {}, "commands": [{"type": "print", "resource": "x"}]}"""
    stdin(model.encode())
    assert run("run", "-") == (0, "Resource 'x': 1.5\n", "")
    stdin(b"{}")
    assert run("run", "-") == (
        1, "", "gatherum: standard input: `resources` is missing: every model needs it\n"
    )  # fmt: skip


def test_an_explanation_of_standard_input(run, stdin):
    rows = np.array([2, 0])
    for arguments, content in (
        ("--data - --indices rows.npy", npy(TABLE)),
        ("--data table.npy --indices -", npy(rows)),
        ("--data table.npy --values -", npy(rows)),
        ("--data table.npy --values -", b"2 0"),
    ):
        stdin(content)
        expected = run("explain", "gather", "--data", "table.npy", "--indices", "rows.npy")
        assert expected[0] == 0
        assert run("explain", "gather", *arguments.split()) == expected
    np.save("one.npy", np.array([[2, 0]]))
    expected = run("explain", "gather-nd", "--data", "4x3", "--values", "one.npy")
    for arguments in (["gather-nd", "--values", "-"], ["--values", "-", "gather-nd"]):
        stdin(b"2 0")  # a line is a tuple
        assert run("explain", "--data", "4x3", *arguments) == expected
    run("explain", "gather", "--data", "4x3", "--values", "2,0", "--svg", "picture.svg")
    status, out, err = run("explain", "gather", "--data", "4x3", "--values", "2,0", "--svg", "-")
    assert (status, err) == (0, "")
    assert out == Path("picture.svg").read_text()
    for arguments, why in (
        ("--data - --values -", "--data and --values cannot both be standard input"),
        ("--data 4x3 --indices 2 --floor --svg -",
         "--svg - prints the picture alone, so it takes no --floor"),
    ):  # fmt: skip
        stdin(npy(TABLE))
        expected = 2, "", f"gatherum: {why}. See gatherum explain --help.\n"
        assert run("explain", "gather", *arguments.split()) == expected
    stdin(b"4x3")
    expected = "gatherum: standard input: not a .npy file (no \\x93NUMPY at its beginning)\n"
    assert run("explain", "gather", "--data", "-", "--indices", "2") == (1, "", expected)


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        ("gather - rows.npy -o o.npy", "TABLE"),
        ("groups table.npy -", "GROUPS"),
        ("check -", "FILE"),
        ("run -", "MODEL"),
        ("explain gather --data - --indices 2", "--data"),
    ],
)
def test_standard_input_that_is_closed(run, monkeypatch, arguments, role):
    command, *parts = arguments.split()
    why = f"{role} is -, but standard input is closed. See gatherum {command} --help."
    monkeypatch.setattr(sys, "stdin", None)
    assert run(command, *parts) == (2, "", f"gatherum: {why}\n")
    startup.open_streams()
    with sys.stdin:
        assert run(command, *parts) == (2, "", f"gatherum: {why}\n")


def test_a_completion_reads_no_standard_input(run, stdin, monkeypatch, capfd):
    stdin(npy(TABLE))
    words = "gatherum explain gather --data - --values - --ind"
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_GATHERUM_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit):
        cli.run([])
    assert capfd.readouterr().out == "plain,--indices\nplain,--index-dtype\n"
    assert sys.stdin.buffer.read() == npy(TABLE)


def test_a_case_of_dxdispatch_passes_or_fails(run):
    choices = ["--format", "dxdispatch", "--op", "gather", "--rule", "plain"]
    assert run("vectors", "cases", *choices) == (0, "cases: 3 cases\n", "")
    path = Path("cases/gather_plain_0.json")
    assert run("run", str(path)) == (
        0, "Resource 'output': 4, 5, 0, 1\nResource 'output' equals 'expected'\n", ""
    )  # fmt: skip
    model = json.loads(path.read_text())
    model["resources"]["expected"]["initialValues"][2:] = [7, 8]
    path.write_text(json.dumps(model))
    assert run("run", str(path)) == (
        1,
        "Resource 'output': 4, 5, 0, 1\nResource 'output' differs from 'expected' in 2 of 4 "
        "elements: at [2] it has 0, expected 7\n",
        "",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--format onnx --opset 99", r"--opset must be in \[1, \d+\), got 99"),
        ("--format onnx --opset 0", r"--opset must be in \[1, \d+\), got 0"),
        ("--format onnx --opset 9 --op gather-nd",
         "--opset must be at least 11 for gather_nd, got 9"),
        ("--opset 13", "--opset is for format 'onnx', got 'npz'"),
        ("--seed -1", "--seed must be at least 0, got -1"),
        ("--rule no", "--rule must be one of 'plain', .*, got 'no'"),
        ("--format dxdispatch --feature-level 9",
         "--feature-level must be one of 1_0, .*, 6_4, got '9'"),
    ],
)  # fmt: skip
def test_vectors_refuse_choices_that_there_are_not(run, options, message):
    status, out, err = run("vectors", "cases", *options.split())
    assert (status, out) == (2, "")
    assert re.fullmatch(f"gatherum: {message}\\. See gatherum vectors --help\\.\n", err)
    assert not os.path.exists("cases")


def test_vectors_need_a_folder(run):
    why = "DIR is a folder of files, which standard output (-) is not"
    assert run("vectors", "-") == (2, "", f"gatherum: {why}. See gatherum vectors --help.\n")
    assert not os.path.exists("-")


def test_standard_input_that_is_something_else(run, stdin, tmp_path):
    before = sorted(tmp_path.iterdir())
    for arguments, content, message in (
        ("gather - rows.npy", b"2 0", ": not a .npy file (no "),
        ("gather - rows.npy", npy(TABLE)[:-1], ": shape (4, 3) of float64 needs 96"),
        ("gather table.npy -", b"2 x", ", line 1: expected integers"),
        ("gather table.npy -", b"1_0", ", line 1: expected integers, got '1_0'"),
        ("gather table.npy -", b"\xff", ": is not a text file"),
        ("gather table.npy -", b"", ": is empty; a header alone is a text without numbers"),
        ("gather table.npy -", b"[2, 0]", ", line 1: expected integers, got '[2, 0]'"),
        ("gather table.npy -", b"# rows\n2;0", ", line 2: expected integers, got '2;0'"),
    ):
        stdin(content)
        status, out, err = run(*arguments.split(), "-o", "o.npy", "--spill-dir", ".")
        assert (status, out) == (1, "")
        assert err.startswith(f"gatherum: standard input{message}")
        assert sorted(tmp_path.iterdir()) == before


def test_standard_output(run, monkeypatch):
    arguments = "gather", "table.npy", "rows.npy", "-o", "-"
    for terminal, more, expected in (
        (False, (), npy(TABLE[[2, 0]])),
        (False, ("--print",), f"{TABLE[[2, 0]]}\n".encode()),
        (True, (), f"{TABLE[[2, 0]]}\n".encode()),
    ):
        with monkeypatch.context() as patch:
            stream = io.TextIOWrapper(io.BytesIO())
            patch.setattr(stream, "isatty", lambda terminal=terminal: terminal, raising=False)
            patch.setattr(sys, "stdout", stream)
            assert run(*arguments, *more) == (0, "", "")
            assert stream.buffer.getvalue() == expected
