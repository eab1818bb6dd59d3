"""The public functions on arrays: gathers, scatters, accumulators, reports, settings.

callbacks.py contains the functions that the core calls. This package imports only _plans, _edges
and the packages below them. Start with gathers.py.
"""
