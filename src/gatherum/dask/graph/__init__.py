"""Build the tasks of a call on Dask arrays, and run their kernels.

This package imports only dask.operands and the packages below it. Start with tasks.py.
"""
