"""The public functions on arrays: gathers, scatters, accumulators, reports, settings.

core_hooks.py has the functions that the core calls. This package imports _plans, _edges and
below. Start with gathers.py.
"""
