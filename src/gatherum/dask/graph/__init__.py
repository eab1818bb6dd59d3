"""Tasks of a call on Dask arrays, and the kernels that they run.

This package imports dask.operands and below. Start with tasks.py.
"""
