"""The table of ONNX operators with indices in docs/onnx.md is complete and correct."""

import re

import numpy as np
import pytest

from source import ROOT

onnx = pytest.importorskip("onnx", reason="install onnx to list its operators: pip install onnx")

from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import gatherum  # noqa: E402
from gatherum.onnx import reference_ops  # noqa: E402

PAGE = (ROOT / "docs" / "onnx.md").read_text()
SECTION = PAGE.split("\n### Other operators that take indices\n")[1].split("\n### ")[0]
ROWS = re.findall(r"^\| ([A-Z][\w, ]*) \| (yes|no) \|", SECTION, re.MULTILINE)
LISTED = {name: covered == "yes" for names, covered in ROWS for name in names.split(", ")}
NEWEST = int(re.search(r"up to opset (\d+)", SECTION)[1])
FAMILY = re.compile("gather|scatter", re.IGNORECASE)
INDEX = re.compile(r"\b(ind(ex|exes|ices)|positions?)\b|_(ids|index|indices|positions?)\b", re.I)


def takes_indices(schema):
    """Return True if its text mentions gathering, scattering, or an input of indices."""
    return FAMILY.search(schema.name + (schema.doc or "")) or any(
        INDEX.search(f"{formal.name} {formal.description}") for formal in schema.inputs
    )


def known():
    """Return the operators of the installed onnx in all its domains, keyed by name."""
    schemas = onnx.defs.get_all_schemas()
    return {
        schema.name: schema
        for schema in schemas
        if schema.name == "Scatter" or not schema.deprecated
    }


def test_every_operator_that_takes_indices_is_in_the_table():
    missing = {name for name, schema in known().items() if takes_indices(schema)} - set(LISTED)
    assert missing == set()


def test_the_table_is_of_the_newest_opset():
    """A newer onnx has operators that are not in the table: review them, and update its opset."""
    assert onnx.defs.onnx_opset_version() <= NEWEST


def test_the_table_has_no_other_operators():
    assert len(LISTED) > 25
    if onnx.defs.onnx_opset_version() >= NEWEST:
        assert set(LISTED) <= set(known())


def test_the_page_lists_the_covered_operators():
    ours = {op.__name__ for op in reference_ops() if op.op_domain == ""}
    listed = {name for name, covered in LISTED.items() if covered and name in known()}
    assert listed == ours


def theirs(name, *operands, domain="", **attributes):
    """Return the answer of ONNX's reference implementation."""
    names = [f"x{n}" for n in range(len(operands))]
    node = helper.make_node(name, names, ["y"], domain=domain, **attributes)
    imports = [helper.make_opsetid(domain, 1 if domain else 22)]
    function = helper.make_function("l", "f", names, ["y"], [node], imports)
    feeds = dict(zip(names, operands, strict=True))
    return ReferenceEvaluator(function).run(None, feeds, attributes={})[0]


def same(actual, expected):
    assert actual.shape == expected.shape
    assert actual.tolist() == expected.tolist()


def test_one_hot():
    indices, on, off = np.array([[0, 3], [-1, 4], [-5, 2]]), np.float32(5), np.float32(1)
    result = gatherum.scatter_elements(
        np.full((3, 2, 4), off), indices[..., None], on, axis=-1, mode="drop"
    )
    same(result, theirs("OneHot", indices, np.array(4), np.array([off, on]), axis=-1))


def test_max_unpool():
    x, i = np.array([[[[5, 6], [7, 8]]]], np.float32), np.array([[[[5, 7], [13, 15]]]])
    zeros = np.zeros((1, 1, 4, 4), np.float32)
    result = gatherum.scatter_elements(zeros.ravel(), i.ravel(), x.ravel()).reshape(zeros.shape)
    same(result, theirs("MaxUnpool", x, i, kernel_shape=[2, 2], strides=[2, 2]))


def test_array_feature_extractor():
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[3, 0]])
    result = gatherum.gather(x, y.ravel(), axis=-1)
    same(result, theirs("ArrayFeatureExtractor", x, y, domain="ai.onnx.ml"))


def test_compress():
    x, condition = np.arange(6).reshape(3, 2), np.array([True, False, True])
    result = gatherum.gather(x, np.flatnonzero(condition), 0)
    same(result, theirs("Compress", x, condition, axis=0))


def test_losses():
    scores, labels = np.log(np.float32([[0.25, 0.75], [0.5, 0.5]])), np.array([1, 0])
    result = -gatherum.gather_elements(scores, labels[:, None], axis=1)[:, 0]
    same(result, theirs("NegativeLogLikelihoodLoss", scores, labels, reduction="none"))
