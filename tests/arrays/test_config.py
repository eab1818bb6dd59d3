"""The report of an installation, and the environment variables that configure it."""

import importlib

import numpy as np
import pytest

import gatherum
from gatherum._system import native


def test_show_config_prints_the_result_of_config(capsys, settings_restored):
    gatherum.set_num_threads(3)
    gatherum.set_output_cache_limit(1_000_000)
    gatherum.clear_output_cache()
    assert gatherum.show_config() is None
    printed = capsys.readouterr().out
    config = gatherum.config()
    assert capsys.readouterr().out == ""
    assert list(config) == [
        "version",
        "python",
        "numpy",
        "level",
        "available_levels",
        "threads",
        "output_cache",
        "optional",
    ]
    assert config["version"] == gatherum.__version__
    assert config["threads"] == 3
    assert config["output_cache"] == {"limit": 1_000_000, "held": 0}
    assert config["level"] in config["available_levels"]
    files = {"zarr", "h5py", "pyarrow", "fsspec", "safetensors", "ml_dtypes"}
    libraries = {"click", "rich", "onnx", "torch", "jax", "dask", "distributed", "cuda-bindings"}
    assert set(config["optional"]) == libraries | files
    assert printed.splitlines()[0].startswith(f"gatherum {gatherum.__version__}, Python 3.")
    assert f"instruction set  {config['level']} (of " in printed
    assert "threads          3\n" in printed
    assert "output cache     0 of at most 1,000,000 bytes held\n" in printed


def test_missing_parts_are_reported(monkeypatch, capsys):
    parts = importlib.import_module("gatherum._functions.settings").OPTIONAL_PARTS
    monkeypatch.setitem(parts, "no-such-part", "nothing")
    assert gatherum.config()["optional"]["no-such-part"] is None
    gatherum.show_config()
    assert "no-such-part     not installed (nothing)\n" in capsys.readouterr().out


def test_optional_parts_are_not_imported(python):
    done = python(
        "import sys, gatherum; gatherum.show_config()\n"
        "parts = {'onnx', 'zarr', 'h5py', 'pyarrow', 'click', 'rich', 'ml_dtypes',\n"
        "         'torch', 'jax', 'dask', 'distributed', 'cuda'}\n"
        "assert not parts & set(sys.modules)"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("GATHERUM_NUM_THREADS", "0", "must be in [1, 1024], got 0"),
        ("GATHERUM_NUM_THREADS", "1025", "must be in [1, 1024], got 1025"),
        ("GATHERUM_NUM_THREADS", "two", "must be an integer, got 'two'"),
        ("GATHERUM_NUM_THREADS", "1_0", "must be an integer, got '1_0'"),
        ("GATHERUM_OUTPUT_CACHE", "1_000", "must be an integer, got '1_000'"),
        ("GATHERUM_OUTPUT_CACHE", "-1", f"must be in [0, {2**62 - 1}], got -1"),
        ("GATHERUM_OUTPUT_CACHE", "1GiB", "must be an integer, got '1GiB'"),
        (
            "GATHERUM_ISA",
            "v9",
            f"must be one of {', '.join(native.available_levels())} here, got 'v9'",
        ),
    ],
)
def test_wrong_environment_variables(python, name, value, sentence):
    done = python("import gatherum; print('imported'); gatherum.gather", **{name: value})
    assert (done.returncode, done.stdout) == (1, "imported\n")
    assert done.stderr.splitlines()[-1] == f"ValueError: gatherum: {name} {sentence}"


@pytest.mark.parametrize(
    ("use", "error_type", "sentence"),
    [
        ("gatherum.gather([1], [0])", "ValueError", "gatherum: {} must be an integer, got 'two'"),
        ("from gatherum import plan", "ValueError", "gatherum: {} must be an integer, got 'two'"),
        ("gatherum.no_such", "AttributeError", "module 'gatherum' has no attribute 'no_such'"),
    ],
)
def test_the_first_use_of_a_name_reports_a_wrong_variable(python, use, error_type, sentence):
    name = "GATHERUM_NUM_THREADS"
    code = f"import gatherum; print('imported'); {use}"
    done = python(code, **{name: "two"})
    assert (done.returncode, done.stdout) == (1, "imported\n")
    assert done.stderr.splitlines()[-1] == f"{error_type}: {sentence.format(name)}"


@pytest.mark.parametrize(
    ("name", "value", "expression", "expected"),
    [
        ("GATHERUM_NUM_THREADS", "5", "gatherum.get_num_threads()", "5"),
        ("GATHERUM_NUM_THREADS", " ", "gatherum.get_num_threads() >= 1", "True"),
        ("GATHERUM_OUTPUT_CACHE", "12345", "gatherum.get_output_cache_limit()", "12345"),
        ("GATHERUM_OUTPUT_CACHE", "", "gatherum.get_output_cache_limit()", str(2**29)),
        ("GATHERUM_ISA", "portable", "gatherum.config()['level']", "portable"),
    ],
)
def test_environment_variables(python, name, value, expression, expected):
    done = python(f"import gatherum; print({expression})", **{name: value})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == expected


DIGEST = """
import hashlib, gatherum, cases
digest = hashlib.sha256()
for case in cases.CASES:
    digest.update(case.run(gatherum).tobytes())
print(gatherum._system.native.level(), digest.hexdigest())
"""


def test_every_instruction_set_gives_the_same_bits(python):
    digests = set()
    for level in native.available_levels():
        done = python(DIGEST, GATHERUM_ISA=level)
        assert (done.returncode, done.stderr) == (0, "")
        used, digest = done.stdout.split()
        assert used == level
        digests.add(digest)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("function", "value", "error_type", "sentence"),
    [
        ("set_num_threads", 0, ValueError, "`n` must be in [1, 1025), got 0"),
        ("set_num_threads", 1025, ValueError, "`n` must be in [1, 1025), got 1025"),
        ("set_num_threads", 2.0, TypeError, "`n` must be an integer, got 2.0"),
        ("set_output_cache_limit", -1, ValueError, f"`nbytes` must be in [0, {1 << 62}), got -1"),
        ("set_output_cache_limit", 1.0, TypeError, "`nbytes` must be an integer, got 1.0"),
        ("set_output_cache_limit", "1", TypeError, "`nbytes` must be an integer, got '1'"),
    ],
)
def test_wrong_settings(function, value, error_type, sentence):
    with pytest.raises(error_type) as caught:
        getattr(gatherum, function)(value)
    assert str(caught.value) == f"{function}: {sentence}"


@pytest.mark.parametrize("setting", ["num_threads", "output_cache_limit"])
def test_settings_accept_every_integer_type(setting, settings_restored):
    for number in (3, np.int64(4), np.uint8(5)):
        getattr(gatherum, f"set_{setting}")(number)
        assert getattr(gatherum, f"get_{setting}")() == number
