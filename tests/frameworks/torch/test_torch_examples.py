"""Run the examples in `examples/torch` and of the page about PyTorch."""

import importlib.util
import re
from pathlib import Path

import pytest
from tensors import compiled, torch

import gatherum

ROOT = Path(__file__).parents[3]
PRINTED = {
    "embedding": ["to rounding", "and the same bits on 1, 2 and 7 threads"],
    "message_passing": ["the gradient is finite: True", "compiled, for any number of edges"],
    "gat": ["are classified right", "on two threads each loss has the same bits"],
    "expert_routing": ["answers and 19 gradients are those of the loop over tokens"],
    "same_loss": ["twice on one thread and twice on two"],
    "table_dataset": ["4000 rows of two epochs, each with its label", "classified right"],
}


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run():
    assert {path.stem for path in (ROOT / "examples/torch").glob("*.py")} == set(PRINTED)
    page = (ROOT / "docs/pytorch.md").read_text()
    assert set(re.findall(r"^\| `(\w+)\.py` \|", page, re.MULTILINE)) == set(PRINTED)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when it compiles
@pytest.mark.parametrize("name", PRINTED)
def test_an_example(name, capsys, settings_restored):
    threads = torch.get_num_threads(), gatherum.get_num_threads()
    module_of(ROOT / f"examples/torch/{name}.py").main()
    printed = capsys.readouterr().out
    for part in PRINTED[name]:
        assert part in printed
    assert (torch.get_num_threads(), gatherum.get_num_threads()) == threads


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_examples_of_the_page():
    examples = module_of(ROOT / "docs/examples.py")
    compiled(lambda: None)  # clear what other tests have compiled
    tried, failed = examples.run_page(ROOT / "docs/pytorch.md")
    assert tried >= 20
    assert failed == 0


def test_a_page_is_left_out_where_its_package_is_missing(monkeypatch, capsys):
    examples = module_of(ROOT / "docs/examples.py")
    assert examples.is_installed("torch")
    assert "gatherum.torch.torch_scatter" in examples.modules()
    monkeypatch.setattr(examples, "is_installed", lambda package: False)
    assert examples.run_page(ROOT / "docs/pytorch.md") == (0, 0)
    assert "docs/pytorch.md: left out, for torch is not installed" in capsys.readouterr().out
    assert not any(name.startswith("gatherum.torch.") for name in examples.modules())
