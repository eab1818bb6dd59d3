"""The registry of adapters, and the public functions for arrays of each adapter.

registry.py finds the adapter of an array; refusals.py raises errors for arrays without an adapter.
This package imports only _system and the packages below it. Start with registry.py.
"""
