"""Plans: calls that are checked and lowered to a program of the core.

plans.py has the public class, programs.py compiles, index_errors.py and overlap.py check data.
This package imports _arguments and below. Start with plans.py.
"""
