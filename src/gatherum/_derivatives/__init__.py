"""Derivatives of the operators, composed of array operations that each framework supplies.

derivatives.py contains the rules, array_ops.py declares the operations, and elementary.py computes
exp and log. This package imports only _system and the packages below it. Start with derivatives.py.
"""
