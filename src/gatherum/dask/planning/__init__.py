"""Layouts, strategies and predicted costs of calls on Dask arrays."""
