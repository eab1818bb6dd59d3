"""The six functions on tensors, and aggregation, prepared and quantized calls.

This package imports only torch.torch_scatter and the packages below it. Start with api.py.
"""
