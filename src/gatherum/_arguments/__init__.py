"""Convert a caller's arguments to a checked `Call`.

conversion.py converts operands, weak_values.py converts Python numbers, checks.py checks specs, and
indices.py resolves indices. This package imports only _derivatives, _frameworks and the packages
below them. Start with conversion.py.
"""
