"""Shuffles of rows between workers, connections to clusters, and staged chunks of Zarr arrays."""
