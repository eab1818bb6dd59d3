"""The inputs that fuzzing begins with, and those that have once failed, without any engine."""

from pathlib import Path

import pytest

from gatherum.algorithms import ALGORITHMS
from targets import TARGETS, target

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
NEEDS = {
    "calls": ("ml_dtypes",),
    "readers": ("zarr", "ml_dtypes", "click"),
    "descs": ("click",),
    "models": ("onnx", "click"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_ends_as_it_should(name):
    for package in NEEDS[name]:
        pytest.importorskip(package, reason=f"install {package} to run this target")
    run, files = target(name).run, sorted((CORPUS / name).iterdir())
    labels = set()
    for file in files:
        try:
            labels.add(run(file.read_bytes()))
        except AssertionError as why:
            raise AssertionError(f"{file.name}: {why}") from why
    assert len(labels) >= 15, "inputs that all end alike test nothing"
    if name == "calls":
        assert {word for label in labels for word in label.split()} >= set(ALGORITHMS)


def test_the_corpus_is_small():
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1 << 20
