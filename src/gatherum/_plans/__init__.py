"""Plans: calls that are checked and lowered to a program of the core.

plans.py defines the public class, programs.py compiles calls, and index_errors.py and overlap.py
check data. This package imports only _arguments and the packages below it. Start with plans.py.
"""
