"""Generates kernels for programs.

An expression over edges comes in; C++ source, a compiled kernel and a callable
with gradients go out.
"""
