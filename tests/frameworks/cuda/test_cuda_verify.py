"""`gatherum verify --device cuda`, by the kernels themselves, without a device."""

import json

import pytest
from doubles import HostArray, array_of

from gatherum._command import cli, verify, verify_cases
from gatherum.cuda.host_transfer import OnDevice

EXPECTED = json.loads(verify.EXPECTED.read_text())
BY_HOST = OnDevice(
    "cuda:0, a double", HostArray, lambda device_array, dtype: array_of(device_array).view(dtype)
)
ROWS = [
    ("gather", "float32", "none"),
    ("gather_nd", "uint8", "none"),
    ("scatter_elements", "complex64", "none"),
    ("scatter_nd", "int32", "add"),
    ("scatter_nd", "float32", "add"),
    ("scatter_slices", "float16", "mean"),
    ("scatter_nd", "float32", "fsum"),
    ("scatter_elements", "complex64", "fmean"),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids="/".join)
def test_small_calls_have_the_bits_of_the_host(on_shim, row, monkeypatch):
    op, name, reduction = row
    monkeypatch.setattr(verify_cases, "large_calls", lambda *_: ())
    dtype = verify_cases.dtype_named(name)
    expected = verify.row_digest(op, dtype, reduction)
    assert verify.row_digest(op, dtype, reduction, BY_HOST) == expected


@pytest.mark.slow
@pytest.mark.parametrize("row", [ROWS[0], ROWS[4]], ids="/".join)
def test_a_whole_row_has_the_published_digest(on_shim, row):
    op, name, reduction = row
    digest = verify.row_digest(op, verify_cases.dtype_named(name), reduction, BY_HOST)
    assert digest == EXPECTED["/".join(row)]


def test_the_output_names_the_device(on_core, monkeypatch, capsys):
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([ROWS[0], ROWS[4]]))
    monkeypatch.setattr(verify, "_on_cuda", lambda: BY_HOST)
    assert cli.run(["verify", "--device", "cuda"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "2 of 2 digests as published (cuda:0, a double)"


def test_a_device_that_gives_other_bits_is_found(on_core, monkeypatch, capsys):
    def one_bit_off(result, dtype):
        array = array_of(result).view(dtype)
        array.reshape(-1)[-1:] += 1
        return array

    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([ROWS[3]]))
    monkeypatch.setattr(verify, "_on_cuda", lambda: OnDevice("a double", HostArray, one_bit_off))
    assert cli.run(["verify", "--device", "cuda"]) == 1
    assert "scatter_nd/int32/add: differs from the published digest\n" in capsys.readouterr().out


@pytest.mark.frameworks
def test_torch_comes_first_where_it_has_a_device(monkeypatch):
    torch = pytest.importorskip("torch", reason="install torch to see that it has no device")
    monkeypatch.setattr(verify, "find_spec", lambda name: name == "torch")
    if not torch.cuda.is_available():
        with pytest.raises(OSError, match="neither torch nor CuPy has a CUDA device here"):
            verify.verify("cuda")
    else:
        assert "tensors of torch" in verify._on_cuda().name


def test_without_a_device_one_sentence_says_so(monkeypatch, capsys):
    monkeypatch.setattr(verify, "find_spec", lambda name: None)
    assert cli.run(["verify", "--device", "cuda"]) == 1
    assert capsys.readouterr().err == (
        "gatherum: gatherum.cuda: neither torch nor CuPy has a CUDA device here; install one of "
        "them for CUDA\n"
    )
