"""Tasks of a call on Dask arrays, and the kernels that they run."""
