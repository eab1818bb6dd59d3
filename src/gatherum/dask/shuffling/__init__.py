"""Shuffles of rows between workers, connections to clusters, and staged chunks of Zarr arrays.

This package imports only dask.graph and the packages below it. Start with shuffle.py.
"""
