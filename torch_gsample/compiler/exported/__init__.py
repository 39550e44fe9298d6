"""Compiled programs in files.

A program and example arguments come in; a file goes out, which another process
loads and runs without a capture.
"""
