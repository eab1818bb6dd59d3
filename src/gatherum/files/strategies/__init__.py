"""The strategies of a call on files: blocks of its rows, or passes over a table.

This package imports files.formats and below. Start with file_gather.py.
"""
