"""The strategies of a job. Each writes rows to a sink in the method ``run(job, sink)``.

file_gather.py and file_scatter.py choose the strategies. This package imports `files.job` and the
packages below it. Start with file_gather.py.
"""
