"""Signatures in `help`, and hints for names of other libraries.

This package imports _model. Start with help_signatures.py.
"""
