"""Derivatives of the operators, composed of array operations that each framework supplies.

derivatives.py has the rules, array_ops.py the operations, elementary.py exp and log. This package
imports only _system and the packages below it. Start with derivatives.py.
"""
