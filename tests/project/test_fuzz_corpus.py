"""The initial inputs of fuzzing, and inputs that failed once, without a fuzzing engine."""

import pytest

import corpus
import levels
from gatherum import _core
from gatherum._system import native
from sizes import family
from targets import TARGETS, target

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
    run, labels = target(name).run, set()
    for kept, data in corpus.read(name).items():
        try:
            labels.add(run(data))
        except AssertionError as why:
            raise AssertionError(f"{kept}: {why}") from why
    assert len(labels) >= 15, "inputs that all end alike test nothing"
    if name == "calls":
        assert {word for label in labels for word in label.split()} >= {
            family(name) for name in native.algorithm_names()
        }


def test_the_corpus_is_small():
    assert sum(file.stat().st_size for file in corpus.FOLDER.iterdir()) < 1 << 19


def test_an_archive_is_written_the_same_every_time(monkeypatch, tmp_path):
    inputs = corpus.read("descs")
    before = (corpus.FOLDER / "descs.zip").read_bytes()
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    corpus.write("descs", dict(reversed(inputs.items())))
    assert corpus.read("descs") == inputs
    assert (tmp_path / "descs.zip").read_bytes() == before


def test_inputs_are_shared_out_among_the_levels():
    before, there = native.level(), levels.available()
    inputs = corpus.read("calls").values()
    try:
        chosen = [levels.choose(data, there) for data in inputs]
        assert native.level() == chosen[-1]
        assert chosen == [levels.choose(data, there) for data in inputs]
    finally:
        _core.choose_level(before)
    shares = {level: chosen.count(level) / len(chosen) for level in there}
    assert min(shares.values()) > 0.5 / len(there), shares


def test_a_forced_level_is_the_only_one(monkeypatch):
    monkeypatch.setenv("GATHERUM_ISA", "portable")
    assert levels.available() == ("portable",)
