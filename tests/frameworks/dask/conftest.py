"""Dask's synchronous scheduler, unless a test says otherwise: errors come as they are raised."""

import pytest


@pytest.fixture(autouse=True)
def _synchronous():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield
