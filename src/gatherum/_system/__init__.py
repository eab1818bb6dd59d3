"""Access to the compiled core, regular files and private names of other packages.

This package imports _model. Start with native.py.
"""
