"""The six functions on tensors, and aggregation, prepared and quantized calls.

This package imports torch.torch_scatter and below. Start with api.py.
"""
