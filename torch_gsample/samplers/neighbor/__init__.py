"""Samples neighbours hop by hop."""
