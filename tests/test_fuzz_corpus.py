"""The inputs that fuzzing begins with, and those that have once failed, without any engine."""

from pathlib import Path

import pytest

import levels
from gatherum import _core, native
from sizes import family
from targets import TARGETS, target

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
NEEDS = {
    "calls": ("ml_dtypes",),
    "readers": ("zarr", "ml_dtypes", "click"),
    "stores": ("zarr", "click"),
    "descs": ("click",),
    "dispatch": ("ml_dtypes", "click"),
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
        assert {word for label in labels for word in label.split()} >= {
            family(name) for name in native.implementation_names()
        }


def test_the_corpus_is_small():
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1 << 20


def test_inputs_are_shared_out_among_the_levels():
    before, there = native.level(), levels.available()
    files = sorted((CORPUS / "calls").iterdir())
    try:
        chosen = [levels.choose(file.read_bytes(), there) for file in files]
        assert native.level() == chosen[-1]
        assert chosen == [levels.choose(file.read_bytes(), there) for file in files]
    finally:
        _core.choose_level(before)
    shares = {level: chosen.count(level) / len(files) for level in there}
    assert min(shares.values()) > 0.5 / len(there), shares


def test_a_forced_level_is_the_only_one(monkeypatch):
    monkeypatch.setenv("GATHERUM_ISA", "portable")
    assert levels.available() == ("portable",)
