"""Values that describe a call without its data: operators, dtypes, reductions, errors."""
