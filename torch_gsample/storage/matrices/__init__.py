"""Graphs on disk as matrices whose extracts are read on demand.

A graph on disk comes in, a ``SparseSample`` whose edges stay there goes out.
"""
