"""The ops of `torch.ops.gatherum`, and their lowering by Inductor.

This package imports only torch.dlpack and the packages below it. Start with ops.py.
"""
