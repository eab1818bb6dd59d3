"""A folder of small files, and the function that runs a command line in it."""

import io
import sys

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", np.arange(12.0).reshape(4, 3))
    np.save("rows.npy", np.array([2, 0, 2]))
    np.save("bad.npy", np.array([1, 4]))
    np.save("columns.npy", np.array([[2], [0], [1], [1]]))
    np.save("points.npy", np.array([[0, 1], [3, 2], [0, 1]]))
    np.save("ones.npy", np.ones(3))
    np.save("four.npy", np.ones((4, 1)))
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    """Run a command line. Return status, standard output and standard error."""
    from gatherum._command import cli

    def call(*arguments):
        status = cli.run(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return call


@pytest.fixture
def stdin(monkeypatch):
    """Replace standard input by bytes."""

    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give
