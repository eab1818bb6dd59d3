"""Gather quantized rows and dequantize them, in one pass."""

from .gather import gather_quantized

__all__ = ["gather_quantized"]
