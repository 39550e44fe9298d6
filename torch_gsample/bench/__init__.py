"""A benchmark of this machine, compared with the samplers installed on it.

A few numbers come in; medians of candidates that took turns go out.
"""
