"""Derivatives of the operators, over the few array operations that each framework supplies.

derivatives.py has the rules, array_ops.py the operations, elementary.py exp and log. It imports
_system and below. Start with derivatives.py.
"""
