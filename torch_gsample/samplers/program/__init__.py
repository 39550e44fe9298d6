"""Runs programs on matrices as samplers."""
