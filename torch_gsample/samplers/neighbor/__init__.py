"""Neighbour sampling, hop by hop."""
