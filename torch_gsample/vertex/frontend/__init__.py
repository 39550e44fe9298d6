"""Symbols and recording of traced vertex programs."""
