"""Kernels that are generated for a program.

An expression over edges comes in; C++ text, a compiled kernel and a callable
with gradients go out.
"""
