"""Test vectors: the core passes them, each target's files contain them, and mistakes fail."""

import json
import re
import sys

import numpy as np
import pytest

import gatherum
from gatherum import directml, reference
from gatherum._command.cli.vectors import FORMATS
from gatherum._model.operators import OPERATORS
from gatherum.conformance import TARGETS, VirtualArray, vectors, virtual, write
from gatherum.conformance.rules import RULES
from source import ROOT
from strategies import same_bits


def outcome(function, case):
    try:
        with np.errstate(all="ignore"):
            return function(*case.operands.values(), **case.attributes)
    except (TypeError, ValueError, IndexError) as error:
        return type(error).__name__


def passes(case, result):
    if case.error or isinstance(result, str):
        return isinstance(result, str) and result == case.error
    return same_bits(result, case.expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "bool", "complex64"])
def test_the_core_passes_all_cases(dtype):
    cases = list(vectors(dtype=dtype))
    assert len({case.name for case in cases}) == len(cases) > 200
    assert all(re.fullmatch("[a-z0-9_]+", case.name) for case in cases)
    for case in cases:
        assert passes(case, outcome(getattr(gatherum, case.operator), case)), case.name


def test_each_rule_has_cases_of_each_kind_of_answer():
    cases = list(vectors())
    assert {case.rule for case in cases} == set(RULES)
    assert {case.operator for case in cases} == set(OPERATORS)
    assert {case.error for case in cases} == {"", "IndexError"}


def test_choices():
    chosen = list(vectors("npz", gatherum.gather_nd, rule="batches"))
    assert {(case.operator, case.rule) for case in chosen} == {("gather_nd", "batches")}
    first, again, other = (
        [case.operands["indices"].tolist() for case in vectors(rule="random", seed=seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    for wrong in (
        {"format": "xml"},
        {"op": "take"},
        {"rule": "none"},
        {"format": "onnx", "opset": 0},
        {"format": "onnx", "opset": 99},
        {"format": "onnx", "op": "gather_nd", "opset": 10},
        {"format": "dxdispatch", "feature_level": "9"},
        {"seed": -1},
        {"opset": 13},
        {"format": "onnx", "feature_level": "4_0"},
    ):
        with pytest.raises(ValueError, match=r"^vectors: `"):
            vectors(**wrong)


def test_a_folder_holds_the_cases_of_one_run(tmp_path):
    write(tmp_path / "new", op="gather", rule="plain")
    with pytest.raises(
        FileExistsError, match=r"new: must be empty, so that no case of another run"
    ):
        write(tmp_path / "new", op="gather")
    with pytest.raises(ValueError, match=r"^vectors: onnx has no case of these choices$"):
        write(tmp_path / "none", "onnx", op="scatter_slices")
    assert not (tmp_path / "none").exists()


def test_the_command_has_the_formats_of_the_library():
    assert tuple(TARGETS) == FORMATS


def test_archives(tmp_path):
    assert write(tmp_path, op="scatter_nd") == len(list(vectors(op="scatter_nd")))
    rows = json.loads((tmp_path / "cases.json").read_text())
    for row, case in zip(rows, vectors(op="scatter_nd"), strict=True):
        with np.load(tmp_path / f"{row['name']}.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        expected = arrays.pop("expected", None)
        assert (expected is None) == bool(case.error)
        assert expected is None or same_bits(expected, case.expected)
        assert list(arrays) == list(case.operands)
        assert row["source"].startswith("docs/semantics.md#")


def webnn(graph):
    """Run a graph of one operator by the standard, which clamps indices."""
    inputs = graph["inputs"]
    data, indices, *updates = (
        np.array(one["data"], one["descriptor"]["dataType"]).reshape(one["descriptor"]["shape"])
        for one in inputs.values()
    )
    (step,) = graph["operators"]
    options = next((part["options"] for part in step["arguments"] if "options" in part), {})
    axis = options.get("axis", 0)
    n = data.shape[: indices.shape[-1]] if step["name"].endswith("ND") else data.shape[axis]
    counted = np.clip(indices, -np.array(n), np.array(n) - 1)
    at = np.where(counted < 0, counted + np.array(n), counted)
    if step["name"] == "gather":
        return np.take(data, at, axis)
    if step["name"].endswith("Elements"):
        assert np.delete(at.shape, axis).tolist() == np.delete(data.shape, axis).tolist()
    if step["name"] == "gatherElements":
        return np.take_along_axis(data, at, axis)
    if step["name"] == "gatherND":
        return data[tuple(np.moveaxis(at, -1, 0))]
    out = data.copy()
    if step["name"] == "scatterND":
        out[tuple(np.moveaxis(at, -1, 0))] = updates[0]
        return out
    grid = list(np.indices(at.shape))
    grid[axis] = at
    out[tuple(grid)] = updates[0]
    return out


def test_webnn(tmp_path):
    count = write(tmp_path, "webnn")
    tests = [
        test
        for path in sorted(tmp_path.glob("*_*.json")) + [tmp_path / "gather.json"]
        for test in json.loads(path.read_text())["tests"]
    ]
    assert len(tests) == count > 60
    for test in tests:
        expected = test["graph"]["expectedOutputs"]["output"]
        result = webnn(test["graph"])
        assert result.ravel().tolist() == expected["data"], test["name"]
        assert list(result.shape) == expected["descriptor"]["shape"], test["name"]
    assert any("outside" in test["name"] for test in tests)


@pytest.mark.parametrize("level", ["6_4", "4_0", "2_0"])
def test_dxdispatch(tmp_path, level):
    count = write(tmp_path, "dxdispatch", feature_level=level)
    rows = json.loads((tmp_path / "cases.json").read_text())
    assert len(rows) == count > 5
    for row in rows:
        model = json.loads((tmp_path / f"{row['name']}.json").read_text())
        desc = directml.from_json(model["dispatchables"][row["name"]])
        buffers = {
            name: np.array(one["initialValues"], one["initialValuesDataType"].lower())
            for name, one in model["resources"].items()
            if name not in ("output", "expected")
        }
        out = np.zeros(len(row["expected"]), buffers["data"].dtype)
        bindings = model["commands"][0]["bindings"]
        tensors = {
            re.sub(r"(?<!^)(?=[A-Z])", "_", field).lower(): buffers.get(name, out)
            for field, name in bindings.items()
        }
        directml.Device(level).compile(desc).dispatch(**tensors)
        assert out.tolist() == row["expected"], row["name"]


def laid_out(case):
    """Return the operands of a case as arrays, with its table in memory."""
    return [a.array() if isinstance(a, VirtualArray) else a for a in case.operands.values()]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "M8[s]"])
def test_far_cases_are_right_where_they_are_not_far(monkeypatch, dtype):
    """The oracle's answer for a small table, renumbered, equals that for the larger one."""
    monkeypatch.setattr(virtual, "_TABLES", ((9, (0, 1, 4, 6, 8)), (5, (0, 1, 2, 3, 4))))
    cases = list(vectors(dtype=dtype, rule="far_sizes"))
    assert len({case.name for case in cases}) == len(cases) >= 36
    assert {case.error for case in cases} == {"", "IndexError"}
    for case in cases:
        result = outcome(getattr(reference, case.operator), case._replace(
            operands=dict(enumerate(laid_out(case)))))  # fmt: skip
        whole = case.expected.array() if isinstance(case.expected, VirtualArray) else case.expected
        assert passes(case._replace(expected=whole), result), case.name


def test_far_cases_are_described(tmp_path):
    count = write(tmp_path, rule="far_sizes", dtype="complex64")
    assert [path.name for path in tmp_path.iterdir()] == ["cases.json"]
    rows = json.loads((tmp_path / "cases.json").read_text())
    assert len(rows) == count == len(list(vectors(rule="far_sizes", dtype="complex64")))
    assert {row["operator"] for row in rows} == set(OPERATORS)
    for row in rows:
        data, indices = row["operands"]["data"], row["operands"]["indices"]
        assert row["virtual"] and np.prod(data["shape"]) > 2**31
        assert data["rows"]["1"] == [[3.0, 0.0], [4.0, 0.0]]
        assert ("expected" in row) != ("error" in row)
        least = -(2**32) - 2
        assert least <= np.min(indices["values"]) and np.max(indices["values"]) <= 2**32 + 2
    assert max(np.max(row["operands"]["indices"]["values"]) for row in rows) == 2**32 + 2


def test_formats_that_hold_values_have_no_far_cases():
    assert "far_sizes" not in {case.rule for case in vectors()}
    for format in sorted({*TARGETS} - {"npz"}):
        with pytest.raises(ValueError, match=r"'far_sizes' is for format 'npz', whose index desc"):
            vectors(format, rule="far_sizes")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="takes 4 GiB of addresses, and pages of few")
@pytest.mark.parametrize("op", OPERATORS)
def test_the_core_passes_far_cases(op):
    for case in vectors(op=op, dtype="int8", rule="far_sizes"):
        if case.operands["data"].shape[0] > 2**31 + 2:
            continue
        operands = laid_out(case)
        options = {"out": operands[0]} if OPERATORS[op].scatters else {}
        try:
            result = getattr(gatherum, op)(*operands, **case.attributes, **options)
        except IndexError:
            assert case.error == "IndexError"
            continue
        if OPERATORS[op].scatters:
            result = result[list(case.expected.rows)]
            assert result.tolist() == [row.tolist() for row in case.expected.rows.values()]
        else:
            assert same_bits(result, case.expected)


# --- mistakes that backends make, and the rule whose cases catch them


def changed(operator, change):
    """Return an operator that runs the oracle on other operands or attributes."""

    def run(*operands, **attributes):
        operands_by_name = dict(zip(("data", "indices", "updates"), operands, strict=False))
        change(operands_by_name, attributes)
        return getattr(reference, operator)(*operands_by_name.values(), **attributes)

    return run


def first_duplicate(operands_by_name, attributes):
    if attributes.get("reduction", "none") == "none":
        for name in ("indices", "updates"):
            operands_by_name[name] = np.flip(operands_by_name[name], 0)


def clamped(operands_by_name, attributes):
    if attributes.get("mode", "raise") == "raise":
        attributes["mode"] = "clip"


def dropped(operands_by_name, attributes):
    if attributes.get("mode", "raise") == "raise":
        attributes["mode"] = "drop"


def as_unsigned(operands_by_name, attributes):
    attributes["negative"] = False


def as_signed(operands_by_name, attributes):
    operands_by_name["indices"] = operands_by_name["indices"].astype(
        f"i{operands_by_name['indices'].itemsize}"
    )


def always_from_the_end(operands_by_name, attributes):
    attributes.pop("negative", None)


def in_32_bits(operands_by_name, attributes):
    operands_by_name["indices"] = operands_by_name["indices"].astype(np.int32)


def with_the_old_value(operands_by_name, attributes):
    attributes.pop("include_self", None)


def without_batches(operands_by_name, attributes):
    attributes.pop("batch_dims", None)


def first_axis(operands_by_name, attributes):
    attributes.pop("axis", None)


def backward_sums(operands_by_name, attributes):
    if attributes.get("reduction") == "add":
        first_duplicate(operands_by_name, attributes | {"reduction": "none"})


def flushed(operands_by_name, attributes):
    operands_by_name["data"] = operands_by_name["data"] + np.zeros(
        (), operands_by_name["data"].dtype
    )  # -0 becomes 0, NaN is quiet


def in_halves(operator):
    def run(data, indices, updates, **attributes):
        if data.dtype != np.float16 or attributes.get("reduction") != "add":
            return getattr(reference, operator)(data, indices, updates, **attributes)
        for n in range(len(indices)):
            data = getattr(reference, operator)(
                data, indices[n : n + 1], updates[n : n + 1], **attributes
            )
        return data

    return run


def of_flat_places(data, indices, **attributes):
    if not 0 < indices.shape[-1] == data.ndim or attributes:
        return reference.gather_nd(data, indices, **attributes)
    places = (indices * (np.array(data.strides) // data.itemsize)).sum(-1)
    if ((places < -data.size) | (places >= data.size)).any():
        raise IndexError
    return data.ravel()[places]


def numbers_over_nan(data, indices, updates, **attributes):
    if attributes.get("reduction") in ("max", "min"):
        kept = ~np.isnan(updates)
        updates = np.where(kept, updates, -np.inf if attributes["reduction"] == "max" else np.inf)
    return reference.scatter_elements(data, indices, updates.astype(data.dtype), **attributes)


def rounded_to_zero(data, indices, updates, **attributes):
    if attributes.get("reduction") == "mean" and data.dtype.kind == "i":
        result = reference.scatter_elements(data * 1.0, indices, updates * 1.0, **attributes)
        return np.trunc(result).astype(data.dtype)
    return reference.scatter_elements(data, indices, updates, **attributes)


MISTAKES = [
    ("scatter_nd", first_duplicate, "last_duplicate"),
    ("scatter_elements", first_duplicate, "last_duplicate"),
    ("gather", clamped, "outside"),
    ("gather_elements", dropped, "outside"),
    ("gather_nd", clamped, "components"),
    ("gather", as_unsigned, "negative"),
    ("scatter_slices", always_from_the_end, "negative"),
    ("gather", as_signed, "index_types"),
    ("gather", in_32_bits, "outside"),
    ("scatter_nd", with_the_old_value, "reductions"),
    ("gather_nd", without_batches, "batches"),
    ("gather_elements", first_axis, "plain"),
    ("scatter_slices", backward_sums, "order_of_sums"),
    ("gather", flushed, "moved_bits"),
    ("scatter_slices", in_halves, "halves"),
    ("gather_nd", of_flat_places, "components"),
    ("scatter_elements", numbers_over_nan, "extremes"),
    ("scatter_elements", rounded_to_zero, "integers"),
]


@pytest.mark.parametrize(("operator", "mistake", "rule"), MISTAKES)
def test_a_mistake_is_caught_by_the_rule_that_it_breaks(operator, mistake, rule):
    if mistake is in_halves:
        wrong = in_halves(operator)
    elif mistake in (of_flat_places, numbers_over_nan, rounded_to_zero):
        wrong = mistake
    else:
        wrong = changed(operator, mistake)
    cases = list(vectors(op=operator))
    caught = {case.rule for case in cases if not passes(case, outcome(wrong, case))}
    assert rule in caught
    assert len(caught) < len(RULES) / 2  # it names the mistake, not the operator


def test_a_case_says_where_its_rule_is_published():
    root = ROOT
    for rule in RULES.values():
        page, _, anchor = rule.source.partition("#")
        titles = re.findall(r"^## (.+)$", (root / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [title.lower().replace(" ", "-") for title in titles]
