"""Seed edges and negative edges."""
