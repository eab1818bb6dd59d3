"""The choice of a strategy for a call on Dask arrays, by its cost."""
