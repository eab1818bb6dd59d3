"""Derivatives of the operators, over the few array operations that each framework supplies."""
