"""Explanations of a call: facts, pseudocode and pictures.

This package imports _functions, cuda, files and below. Start with explanations.py.
"""
