"""The operators on tables larger than memory, in files.

The functions read `.npy`, `.npz`, `.safetensors`, HDF5, Zarr, Parquet, Arrow and Feather, and write
`.npy`, `.safetensors`, HDF5 and Zarr.

A call is a `FileCall`. It opens its operands as a `Job`, calls ``run(job, sink)`` of each of the
job's strategies, and commits the sink, which is an array, a new file, a copy of the table, or a
patch of the table. Start with file_call.py.
"""

from gatherum._exports.help_signatures import plain_help
from gatherum.files.gathers import gather_elements_file, gather_file, gather_nd_file
from gatherum.files.grouped import reduce_file
from gatherum.files.resources.stats import Stats
from gatherum.files.scatters import scatter_elements_file, scatter_nd_file, scatter_slices_file
from gatherum.files.stream import rows

from .open_table import Table, TableStats, open

__all__ = [
    "Stats",
    "Table",
    "TableStats",
    "gather_elements_file",
    "gather_file",
    "gather_nd_file",
    "open",
    "reduce_file",
    "rows",
    "scatter_elements_file",
    "scatter_nd_file",
    "scatter_slices_file",
]

plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
