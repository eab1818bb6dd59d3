"""Every test here has a machine with CUDA devices that is none: see `doubles`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doubles import DriverDouble, run_on_core  # noqa: E402

from gatherum.cuda import driver  # noqa: E402


@pytest.fixture
def machine(monkeypatch):
    """A driver's double, which the room takes for the driver."""
    double = DriverDouble()
    opened = driver.Driver(double)
    for module in ("driver", "calls", "nvidia", "protocols"):
        monkeypatch.setattr(f"gatherum.cuda.{module}.open_driver", lambda: opened)
    return double


@pytest.fixture
def on_core(machine, monkeypatch):
    """The same, and the core in the place of the kernels, which is quick and needs no compiler."""
    monkeypatch.setattr("gatherum.cuda.run.run", run_on_core)
    return machine
