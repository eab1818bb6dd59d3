"""The example in `examples/dask` runs here."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("dask.array", reason="install dask")
pytest.importorskip("xarray", reason="install xarray")
PATH = Path(__file__).parents[3] / "examples/dask/climate.py"


def test_a_climate_cube(capsys):
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert capsys.readouterr().out.splitlines() == [
        "lazy, with the dimensions ('station', 'time')",
        "180 values at 3 stations are those of xarray's sel",
        "means of 5 regions are those of xarray's where and mean",
    ]
