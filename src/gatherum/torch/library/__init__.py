"""The ops of `torch.ops.gatherum`, and their lowering by Inductor.

This package imports torch.dlpack and below. Start with ops.py.
"""
