"""Whole models of DxDispatch: their resources, and the output of their commands."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

from gatherum.conformance import write
from gatherum.directml import from_json
from gatherum.directml.models import run_file

from .page_examples import EXAMPLES

FILES = Path(__file__).parents[2] / "examples" / "directml"
DESC = {
    "type": "GATHER",
    "desc": {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]},
        "IndicesTensor": {"DataType": "UINT32", "Sizes": [1, 1, 1, 2]},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 2]},
        "Axis": 3,
        "IndexDimensions": 1,
    },
}
TABLE = {"initialValuesDataType": "FLOAT32", "initialValues": [0.5, 1e6, -2, 1 / 3]}
IDS = {"initialValuesDataType": "UINT32", "initialValues": [3, 1]}
OUT = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 2, "value": 0}}
BINDINGS = {"InputTensor": "table", "IndicesTensor": "ids", "OutputTensor": "out"}
DISPATCH = {"type": "dispatch", "dispatchable": "lookup", "bindings": BINDINGS}
PRINT = {"type": "print", "resource": "out"}


def model(*commands, **resources):
    arrays = {"table": TABLE, "ids": IDS, "out": OUT} | resources
    return {"resources": arrays, "dispatchables": {"lookup": DESC}, "commands": list(commands)}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(source, level="6_4"):
        (tmp_path / "model.json").write_text(json.dumps(source))
        return run_file("model.json", level)

    return call


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_the_pages_examples_print_their_answers(example):
    path = FILES / f"{example.name}.json"
    answer = ", ".join(map(str, example.answer))
    assert run_file(str(path)).lines == [f"Resource 'output': {answer}"]
    assert from_json(path.read_text()) == from_json(json.loads(path.read_text()))


def test_vectors_print_the_expected_values(tmp_path):
    assert write(tmp_path, "dxdispatch") > 5
    for row in json.loads((tmp_path / "cases.json").read_text()):
        result = run_file(str(tmp_path / f"{row['name']}.json"))
        line, verdict = result.lines
        assert (result.equal, verdict) == (True, "Resource 'output' equals 'expected'")
        printed = [float(text) for text in line.removeprefix("Resource 'output': ").split(", ")]
        np.testing.assert_allclose(printed, row["expected"], rtol=1e-5)


def test_commands_run_in_their_order(run):
    result = run(model(PRINT, DISPATCH, PRINT))
    assert result.lines == ["Resource 'out': 0, 0", "Resource 'out': 0.333333, 1e+06"]
    assert result.equal


@pytest.mark.parametrize(
    ("resource", "line"),
    [
        ({"initialValuesDataType": "FLOAT16", "initialValues": ["nan", "-inf", 0.1]},
         "nan, -inf, 0.0999756"),
        ({"initialValuesDataType": "INT8", "initialValues": [-128, 65.0]}, "-128, 65"),
        ({"initialValuesDataType": "UINT64", "initialValues": [2**64 - 1]},
         "18446744073709551615"),
        ({"initialValuesDataType": "DML_TENSOR_DATA_TYPE_FLOAT64",
          "initialValues": {"valueCount": 3, "valueStart": 1, "valueDelta": 2.5}}, "1, 3.5, 6"),
        ({"initialValuesDataType": "INT64",
          "initialValues": {"valueCount": 3, "valueStart": -(2**62) - 1, "valueDelta": 2**62}},
         "-4611686018427387905, -1, 4611686018427387903"),
        ({"initialValuesDataType": "UINT16", "sizeInBytes": 16, "initialValuesOffsetInBytes": 2,
          "initialValues": [7, 8, 9]}, "0, 7, 8"),
        ({"initialValuesDataType": "FLOAT32",
          "initialValues": {"valueCount": 2, "valueStart": 1, "valueDelta": "inf"}}, "nan, inf"),
        ({"initialValues": {"sourcePath": "bytes.npy"}}, "1, 2, 3"),
        ({"initialValuesDataType": "INT16", "initialValues": {"sourcePath": "raw.bin"}}, "1, -1"),
    ],
)  # fmt: skip
def test_initial_values(run, tmp_path, resource, line):
    np.save(tmp_path / "bytes.npy", np.array([1, 2, 3], np.uint8))
    (tmp_path / "raw.bin").write_bytes(np.array([1, -1], np.int16).tobytes())
    assert run(model(PRINT, out=resource)).lines == [f"Resource 'out': {line}"]


def test_values_of_several_types(run):
    mixed = {
        "initialValuesDataType": "UNKNOWN",
        "initialValues": [
            {"name": "first", "type": "UINT32", "value": 2},
            {"type": "INT32", "value": 0},
        ],
    }
    result = run(model(DISPATCH, PRINT, ids=mixed))
    assert result.lines == ["Resource 'out': -2, 0.5"]


def test_verbose(run):
    result = run(model({**PRINT, "resource": "table", "verbose": True}))
    assert result.lines == [
        "Resource 'table':",
        "[0] 0.5 (0x3F000000)",
        "[1] 1e+06 (0x49742400)",
        "[2] -2 (0xC0000000)",
        "[3] 0.333333 (0x3EAAAAAB)",
    ]
    result = run(model({**PRINT, "resource": "ids", "verbose": True}))
    assert result.lines[1] == "[0] 3 (0x       3)"


def test_a_part_of_a_resource_is_bound(run):
    part = {"name": "ids", "elementOffset": 4, "elementCount": 2}
    ids = {"initialValuesDataType": "UINT32", "initialValues": [0, 0, 0, 0, 2, 1]}
    bindings = {**BINDINGS, "IndicesTensor": [part]}
    result = run(model({**DISPATCH, "bindings": bindings}, PRINT, ids=ids))
    assert result.lines == ["Resource 'out': -2, 1e+06"]


def test_buffers_bound_at_initialisation_are_read_at_that_time(run):
    source = model(DISPATCH, DISPATCH, PRINT)
    desc = json.loads(json.dumps(DESC))
    desc["bindings"] = {"InputTensor": "table"}
    bindings = {name: BINDINGS[name] for name in ("IndicesTensor", "OutputTensor")}
    into_table = {**DISPATCH, "bindings": {**bindings, "OutputTensor": "table"}}
    source["dispatchables"]["lookup"] = desc
    source["commands"] = [into_table, {**DISPATCH, "bindings": bindings}, PRINT]
    assert run(source).lines == ["Resource 'out': 0.333333, 1e+06"]


def test_files_are_in_the_result(run, tmp_path):
    target = {"type": "writeFile", "resource": "table", "targetPath": "new/table.npy"}
    raw = {"type": "WriteFile", "resource": "ids", "targetPath": "ids.bin"}
    result = run(model({**target, "dimensions": [2, 2]}, raw))
    assert result.lines == [
        "Resource 'table' written to 'new/table.npy'",
        "Resource 'ids' written to 'ids.bin'",
    ]
    assert not (tmp_path / "new").exists()
    array = np.load(io.BytesIO(result.files["new/table.npy"]))
    np.testing.assert_array_equal(array, np.float32(TABLE["initialValues"]).reshape(2, 2))
    assert result.files["ids.bin"] == np.array([3, 1], np.uint32).tobytes()
    assert os.listdir(tmp_path) == ["model.json"]


def test_buffers_have_whole_words(run):
    bytes_ = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3]}
    target = {"type": "writeFile", "resource": "out", "targetPath": "out.bin"}
    assert run(model(target, out=bytes_)).files == {"out.bin": b"\1\2\3\0"}


@pytest.mark.parametrize(
    ("name", "data_type", "message"),
    [
        ("a.bin", "FLOAT64", 'must have whole elements of 8 bytes, "a.bin" has 4 bytes'),
        ("a.png", "FLOAT32", 'must be .npy or raw bytes, got "a.png"'),
    ],
)
def test_invalid_bytes_of_values(run, tmp_path, name, data_type, message):
    (tmp_path / name).write_bytes(bytes(4))
    resource = {"initialValuesDataType": data_type, "initialValues": {"sourcePath": name}}
    with pytest.raises(ValueError) as raised:
        run(model(out=resource))
    assert str(raised.value) == f"`resources.out.initialValues.sourcePath` {message}"


def test_bytes_without_a_type(run, tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(4))
    with pytest.raises(ValueError) as raised:
        run(model(out={"initialValues": {"sourcePath": "a.bin"}}))
    assert str(raised.value) == (
        "`resources.out.initialValues`: raw bytes need `initialValuesDataType`, got none"
    )


def test_compare(run):
    compare = {"type": "compare", "resource": "out", "expected": "answer"}
    answer = {"initialValuesDataType": "FLOAT32", "initialValues": [1 / 3, 1e6]}
    result = run(model(DISPATCH, compare, answer=answer))
    assert (result.lines, result.equal) == (["Resource 'out' equals 'answer'"], True)
    result = run(model(compare, answer=answer))
    assert not result.equal
    assert result.lines == [
        "Resource 'out' differs from 'answer' in 2 of 2 elements: at [0] it has 0, "
        "expected 0.333333"
    ]
    zero = {"initialValuesDataType": "FLOAT32", "initialValues": [0, -0.0]}
    assert not run(model(compare, answer=zero)).equal  # bits are compared


def changed(resource, **members):
    return model(PRINT, **{resource: {**json.loads(json.dumps(OUT)), **members}})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, "the model must be an object, got 7"),
        (DESC, "the model must have resources and commands, got one operator desc"),
        ({"resources": {}, "dispatchables": {}}, "`commands` is missing: every model needs it"),
        (model() | {"more": 1}, "the model must have no members but $schema, resources, "
         'dispatchables, commands, got "more"'),
        (model() | {"commands": {}}, "`commands` must be a list, got an object"),
        (model({"type": "wait"}), "`commands[0].type` must be one of dispatch, print, writeFile, "
         'compare, got "wait"'),
        (model({"type": "print"}), "`commands[0].resource` must be a string, got none"),
        (model({"type": "print", "resource": "no"}), "`commands[0].resource` must be one of the "
         'resources "table", "ids", "out", got "no"'),
        (model({**PRINT, "verbose": 1}), "`commands[0].verbose` must be true or false, got 1"),
        (model(PRINT, {**DISPATCH, "dispatchable": "no"}),
         '`commands[1].dispatchable` must be one of "lookup", got "no"'),
        (model({**DISPATCH, "bindings": {"InputTensor": "table"}}),
         "`commands[0].bindings.IndicesTensor` is missing: GATHER has it"),
        (model({**DISPATCH, "bindings": {"Input": "table"}}),
         "`commands[0].bindings` must have no members but InputTensor, IndicesTensor, "
         'OutputTensor, got "Input"'),
        (model({**DISPATCH, "bindings": {**BINDINGS, "InputTensor": "ids"}}),
         "`commands[0].bindings.InputTensor` needs a buffer of 16 bytes, got 8"),
        (model({**DISPATCH, "bindings": {**BINDINGS, "OutputTensor": "table"}}),
         "`commands[0]`: GATHER: `OutputTensor` must share no memory with `InputTensor`"),
        (model({**DISPATCH, "bindings": {**BINDINGS, "InputTensor": {
            "name": "table", "elementCount": 5}}}),
         "`commands[0].bindings.InputTensor` must end within 16 bytes, got 20"),
        (model({**DISPATCH, "bindings": {**BINDINGS, "IndicesTensor": {
            "name": "table", "elementOffset": 1}}}),
         "`commands[0].bindings.IndicesTensor` must begin at a multiple of 16 bytes, got 4"),
        (model({"type": "compare", "resource": "out", "expected": "ids"}),
         "`commands[0].expected` must have elements as the resource, 2 of FLOAT32, "
         "got 2 of UINT32"),
        (model({"type": "writeFile", "resource": "out", "targetPath": "a.npy",
                "dimensions": [3]}),
         "`commands[0].dimensions` must have 2 elements, got [3]"),
        (changed("out", initialValues=[]), "`resources.out.initialValues` must have values, "
         "got none"),
        (changed("out", initialValues="deferred"),
         '`resources.out.initialValues` must be a list or an object, got "deferred"'),
        (changed("out", initialValues=[1, "x"]), "`resources.out.initialValues[1]` must be a "
         'number or one of nan, inf, -inf, got "x"'),
        (changed("out", initialValues=[1e39]),
         "`resources.out.initialValues[0]` must be a number of FLOAT32, got 1e+39"),
        (changed("ids", initialValuesDataType="UINT8", initialValues=[1, 256]),
         "`resources.ids.initialValues[1]` must be from 0 to 255 for UINT8, got 256"),
        (changed("ids", initialValuesDataType="UINT8", initialValues=[1.5]),
         "`resources.ids.initialValues[0]` must be an integer, got 1.5"),
        (changed("ids", initialValuesDataType="UINT8",
                 initialValues={"valueCount": 300, "valueStart": 0, "valueDelta": 1}),
         "`resources.ids.initialValues: the last value` must be from 0 to 255 for UINT8, got 299"),
        (changed("out", sizeInBytes=4), "`resources.out.sizeInBytes` must hold the initial "
         "values, 8 bytes, got 4"),
        (changed("out", sizeInBytes=8, initialValuesOffsetInBytes=4),
         "`resources.out.sizeInBytes` must hold the initial values, 12 bytes, got 8"),
        (changed("out", initialValues={"sourcePath": "model.json", "more": 1}),
         '`resources.out.initialValues` must have no members but sourcePath, got "more"'),
        (changed("out", initialValuesDataType="INT4"),
         "`resources.out.initialValuesDataType` must have elements of whole bytes, got INT4"),
        (changed("out", initialValuesDataType="FLOAT16",
                 initialValues={"valueCount": 3, "valueStart": 65000, "valueDelta": 1000}),
         "`resources.out.initialValues: the last value` must be a number of FLOAT16, got 67000.0"),
        (changed("out", initialValuesDataType="UNKNOWN", initialValues=[{"type": "INT4"}]),
         "`resources.out.initialValues[0].type` must have elements of whole bytes, got INT4"),
        (changed("out", initialValuesDataType="UNKNOWN", initialValues=[{"type": "UNKNOWN"}]),
         "`resources.out.initialValues[0].value` must have a type, got UNKNOWN"),
        (model({"type": "writeFile", "resource": "out", "targetPath": "a.png"}),
         '`commands[0].targetPath` must be no picture, got "a.png"'),
        (changed("out", type="texture"), "`resources.out.type` must be 'buffer', got \"texture\""),
        (changed("out", initialValues={"valueCount": 2}),
         "`resources.out.initialValues.valueStart` is missing"),
        (changed("out", initialValuesDataType="UNKNOWN", initialValues=[
            {"type": "INT8", "value": 1}]),
         '`commands[0].resource` must be a resource of one type, "out" is UNKNOWN'),
    ],
)  # fmt: skip
def test_errors_name_the_path_in_the_model(run, source, message):
    with pytest.raises(ValueError) as raised:
        run(source)
    assert str(raised.value) == message


def test_a_level_refuses_an_operator(run):
    source = json.loads(json.dumps(model(DISPATCH)).replace("UINT32", "INT32"))
    with pytest.raises(ValueError) as raised:
        run(source, "2_1")
    assert str(raised.value).startswith(
        "`dispatchables.lookup`: GATHER: feature level 2_1 does not accept this desc:"
    )


def test_an_operator_of_another_kind_is_not_run(run):
    source = model(DISPATCH)
    source["dispatchables"]["lookup"] = {"type": "hlsl"}
    with pytest.raises(ValueError, match=r'^`dispatchables.lookup`: `type` must be .*got "hlsl"'):
        run(source)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x93NUMPY", "not readable"),
        (b"PK\x05\x06" + 18 * b"\0", "not readable"),  # an empty .npz
        (np.arange(2.0), "must have elements of FLOAT32, .* has FLOAT64"),
    ],
)
def test_a_file_of_values_is_checked(run, tmp_path, content, message):
    if not isinstance(content, bytes):
        file = io.BytesIO()
        np.save(file, content)
        content = file.getvalue()
    (tmp_path / "a.npy").write_bytes(content)
    source = model(table={**TABLE, "initialValues": {"sourcePath": "a.npy"}})
    with pytest.raises(ValueError, match=f"^`resources.table.initialValues.sourcePath`.*{message}"):
        run(source)
