"""Graphs on disk as matrices: what programs extract is read when it is needed.

A graph on disk comes in, a ``SparseSample`` whose edges stay there goes out.
"""
