"""Calls on tensors with a private name of torch missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gatherum
from gatherum._system import private_names
from source import SOURCE

torch = pytest.importorskip("torch", reason="install torch to run the tests of its tensors")
private = pytest.importorskip("gatherum.torch.private")

SCRIPT = Path(__file__).parent / "hidden_names.py"


def answers_with(*hidden: list[str]) -> list[dict[str, object]]:
    """Return the results of the script's calls for each list of hidden names."""
    lines = "".join(f"{json.dumps(names)}\n" for names in hidden)
    done = subprocess.run(
        [sys.executable, SCRIPT],
        input=lines,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_name_is_there() -> None:
    assert private_names.missing(private.NAMES) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each set of names takes a fork")
def test_calls_are_the_same_without_any_name() -> None:
    usual, result = answers_with([], list(private.NAMES))
    check_answers("all", usual, result)


@pytest.mark.release
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each set of names takes a fork")
def test_calls_are_the_same_without_a_name() -> None:
    names = list(private.NAMES)
    usual, *others = answers_with([], *([name] for name in names))
    for name, answers in zip(names, others, strict=True):
        check_answers(name, usual, answers)


def check_answers(name: str, usual: dict[str, object], actual: dict[str, object]) -> None:
    assert "import" not in actual, (name, actual)
    assert not [step for step, answer in usual.items() if "NotImplemented" in answer]
    different = {step: actual[step] for step in usual if actual[step] != usual[step]}
    refused = [step for step in usual if step.startswith("transformed")]
    if name == "all":  # without them, active transforms cannot be detected: torch raises
        refused.append("functionalized")
        assert all(
            "functional" in (text := different.pop(step)) or "functorch" in text for step in refused
        )
    elif "torch.func raise an error" in private.NAMES[name]:
        message = (
            "derivatives cannot be computed inside transforms of torch.func: torch "
            f"{torch.__version__} lacks {name}; gatherum was tested with torch {private.TESTED}"
        )
        assert all(different.pop(step).endswith(message) for step in refused)
    assert different == {}, name


def test_a_torch_that_is_too_old_is_refused(monkeypatch) -> None:
    private.check_version()
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(
        ImportError, match=r"^gatherum.torch needs torch 2.10 or later, and this is 2.9.1\+cpu$"
    ):
        private.check_version()


def test_the_version_that_is_tested_is_this_one() -> None:
    assert torch.__version__.startswith(private.TESTED)


def test_an_exchange_of_another_version_is_not_used(monkeypatch) -> None:
    from gatherum._system import native
    from gatherum.torch import dlpack
    from gatherum.torch.autograd import recorded_functions

    def refuse(*_: object) -> None:
        raise ValueError("gatherum: this torch exchanges tensors in another version of DLPack")

    monkeypatch.setattr(private, "exchange", private.exchange)
    with monkeypatch.context() as patched:
        patched.setattr(native, "set_torch", refuse)
        dlpack.open_exchange(recorded_functions.record, recorded_functions.record_total)
        assert private.exchange is None
    data, rows = torch.arange(6.0).reshape(3, 2), torch.tensor([2, 0])
    assert torch.ops.gatherum.gather(data, rows).tolist() == [[4, 5], [0, 1]]
    data.untyped_storage().resize_(8)
    with pytest.raises(ValueError, match="`data` must lie in its storage, which has 8 bytes"):
        torch.ops.gatherum.gather(data, rows)
    assert gatherum.gather(torch.arange(3.0), rows).tolist() == [2, 0]


MARKS = """
import warnings
import torch
import gatherum
import gatherum.torch

for name in [name for name in vars(gatherum.gather) if name.startswith("_torchdynamo")]:
    delattr(gatherum.gather, name)
data, rows = torch.arange(6.0).reshape(3, 2), torch.tensor([2, 0])
wanted = gatherum.gather(data, rows) * 2
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    broken = torch.compile(lambda x: gatherum.gather(x, rows) * 2, backend="eager")
    assert torch.equal(broken(data), wanted)
    assert any("Dynamo does not know how to trace" in str(each.message) for each in caught)
whole = torch.compile(lambda x: gatherum.torch.gather(x, rows) * 2, backend="eager", fullgraph=True)
assert torch.equal(whole(data), wanted)
"""


@pytest.mark.slow
def test_functions_without_the_marks_for_dynamo_break_a_graph() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MARKS], capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
