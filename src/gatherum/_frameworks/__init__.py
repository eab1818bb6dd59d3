"""The registry of adapters, and the public functions as each adapter offers them.

registry.py finds the adapter of an array; refusals.py raises for arrays without one. It imports
_system and below. Start with registry.py.
"""
