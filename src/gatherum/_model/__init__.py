"""Values that describe a call without its data: operators, dtypes, reductions, errors.

call.py describes a call, operators.py has the table of operators, errors has the error messages.
This package imports the compiled core. Start with call.py.
"""
