"""Values that describe a call without its data: operators, dtypes, reductions, errors.

call.py describes a call, operators.py contains the table of operators, and `errors` contains the
error messages. This package imports the compiled core. Start with call.py.
"""
