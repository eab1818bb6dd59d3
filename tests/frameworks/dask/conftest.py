"""Dask's synchronous scheduler, unless a test sets another: errors propagate as raised."""

import pytest


@pytest.fixture(autouse=True)
def _synchronous():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield
