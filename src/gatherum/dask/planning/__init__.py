"""Layouts, strategies and predicted costs of calls on Dask arrays.

This package imports only dask.errors and the packages below it. Start with choice.py.
"""
