"""Convert the arguments of a caller to a checked `Call`.

conversion.py converts, checks.py checks, indices.py resolves. This package imports only
_derivatives, _frameworks and the packages below them. Start with conversion.py.
"""
