"""Shuffles of rows between workers, connections to clusters, and staged chunks of Zarr arrays.

This package imports dask.graph and below. Start with shuffle.py.
"""
