"""The public functions on arrays: gathers, scatters, accumulators, reports, settings."""
