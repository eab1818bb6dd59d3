"""From a caller's values to a `Call`: conversion, casting, checks, resolved indices."""
