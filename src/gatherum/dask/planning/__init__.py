"""Layouts, strategies and predicted costs of calls on Dask arrays.

This package imports dask.errors and below. Start with strategy.py.
"""
