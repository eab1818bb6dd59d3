"""The six functions, aggregation, prepared calls and quantized calls, on tensors.

This package imports only torch.torch_scatter and the packages below it. Start with api.py.
"""
