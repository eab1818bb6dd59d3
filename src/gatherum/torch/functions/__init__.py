"""The six functions on tensors, and aggregation, prepared and quantized calls."""
