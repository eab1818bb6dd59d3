"""The rows of an array in a file: flat, in chunks, or in several files.

This package imports files.resources and below. Start with table.py.
"""
