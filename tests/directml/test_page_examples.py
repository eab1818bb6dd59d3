"""Every example of the pages: as arrays, as buffers, and as the models in examples/directml."""

import json
from pathlib import Path

import numpy as np
import pytest

from gatherum.directml import Device, FeatureLevel, check, check_file, from_json

from .page_examples import EXAMPLES

MODELS = Path(__file__).parents[2] / "examples" / "directml"
OPERANDS = {
    "InputTensor": "input_tensor",
    "IndicesTensor": "indices_tensor",
    "UpdatesTensor": "updates_tensor",
    "OutputTensor": "output_tensor",
}
by_name = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@by_name
def test_on_arrays(example):
    result = Device().compile(example.desc)(*example.arrays())
    np.testing.assert_array_equal(result, example.expected(), strict=True)


@by_name
def test_on_buffers(example):
    names = [OPERANDS[name] for name in example.desc.tensors]
    buffers = [array.tobytes() for array in example.arrays()]
    out = bytearray(b"\xa5") * example.expected().nbytes
    Device("3_0").compile(example.desc).dispatch(**dict(zip(names, [*buffers, out], strict=True)))
    assert bytes(out) == example.expected().tobytes()


@by_name
def test_sizes_of_the_output_are_inferred(example):
    assert example.desc.infer_output_sizes() == example.desc.output_tensor.sizes


@by_name
def test_accepted_from_3_0_on_and_with_four_dimensions_before(example):
    accepted = [str(level) for level in FeatureLevel if check(example.desc, level) == []]
    d = example.desc.input_tensor.dimension_count
    begins = {"gather_nd_2_2d_remapping": "2_1"}.get(example.name, "3_0")
    assert (d == 4) == (example.name in ("gather_nd_2_2d_remapping", "gather_nd1_2_batches"))
    assert accepted == [str(level) for level in FeatureLevel if level >= FeatureLevel(begins)]


def test_each_example_has_a_model():
    assert sorted(path.stem for path in MODELS.glob("*.json")) == sorted(
        example.name for example in EXAMPLES
    )


@by_name
def test_its_model_is_accepted_and_runs(example):
    path = MODELS / f"{example.name}.json"
    model = json.loads(path.read_text())
    ((name, dispatchable),) = model["dispatchables"].items()
    desc = from_json(dispatchable)
    assert desc == example.desc
    report = check_file(path, "3_0")
    assert report.accepted
    assert report.lines == (f"{name}: {desc.operator}: accepted by feature level 3_0",)

    buffers = {resource: initial_bytes(spec) for resource, spec in model["resources"].items()}
    dispatch = model["commands"][0]
    operands = {OPERANDS[tensor]: buffers[to] for tensor, to in dispatch["bindings"].items()}
    Device("3_0").compile(desc).dispatch(**operands)
    assert model["commands"][1] == {"type": "print", "resource": "output"}
    assert bytes(buffers["output"]) == example.expected().tobytes()


def initial_bytes(resource):
    dtype = np.dtype(resource["initialValuesDataType"].lower())
    values = resource["initialValues"]
    if isinstance(values, dict):
        values = [values["value"]] * values["valueCount"]
    return bytearray(np.array(values, dtype).tobytes())
