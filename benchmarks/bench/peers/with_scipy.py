"""SciPy: products with sparse matrices."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ..jobs import Job
from . import Methods


def _messages(job: Job) -> Methods:
    table, ends = job["table"], (job["targets"], job["sources"])
    ones, shape = np.ones(len(ends[0]), table.dtype), (job.size, len(table))
    matrix = csr_array((ones, ends), shape)
    return {
        "csr_array @ table, matrix built": lambda: matrix @ table,
        "csr_array @ table, matrix and product": lambda: csr_array((ones, ends), shape) @ table,
    }


def _product(job: Job) -> Methods:
    table = job["table"]
    weights = job.operands.get("weights", np.ones(len(job["rows"]), table.dtype))
    matrix = csr_array((weights, job["rows"], job["indptr"]), (job.size, len(table)))
    return {"csr_array @ table": lambda: matrix @ table}


JOBS = {"messages": _messages, "product": _product, "bags": _product}
