"""Explanations of a call: facts, pseudocode and pictures.

This package imports only _functions, cuda, files and the packages below them. Start with
explanations.py.
"""
