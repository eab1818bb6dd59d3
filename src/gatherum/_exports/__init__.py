"""Signatures in `help`, and hints for names from other libraries.

This package imports _model. Start with help_signatures.py.
"""
