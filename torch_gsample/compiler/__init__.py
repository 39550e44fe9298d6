"""``torch.compile(sampler, backend='gsample')``: sampling programs, compiled.

A graph that Dynamo captured comes in, a function goes out.
"""

from torch_gsample.compiler.backend import backend

__all__ = ['backend']
