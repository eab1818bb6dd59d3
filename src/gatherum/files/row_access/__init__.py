"""Access the rows of an array that is stored contiguously, in chunks, or in several files.

This package imports only files.resources and the packages below it. Start with table.py.
"""
