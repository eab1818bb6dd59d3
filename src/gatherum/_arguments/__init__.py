"""From a caller's values to a `Call`: conversion, casting, checks, resolved indices.

conversion.py converts, checks.py checks, indices.py resolves. This package imports
_derivatives, _frameworks and below. Start with conversion.py.
"""
