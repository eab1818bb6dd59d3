"""The operands of a call on files, and the outputs of its result.

This package imports `files.strategies` and the packages below it. Start with operands.py.
"""
