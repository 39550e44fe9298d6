"""A benchmark of this machine, beside the samplers that are installed on it.

A few numbers come in; medians of candidates that took turns go out.
"""
