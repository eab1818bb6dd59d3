"""The operands of a call on files, and its output file.

This package imports `files.job` and the packages below it. Start with operands.py.
"""
