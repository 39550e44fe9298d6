"""Mistakes that are planted in a copy of the sources, and must be caught."""
