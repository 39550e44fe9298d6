"""Calls of fused modules in a trace, which is of PyG's own code."""

import warnings
from typing import Any

import torch

from torch_gsample.fusion.calls import State
from torch_gsample.loader.batch_edge_index import edges_of_batches, plain_edges


def has_edges_of_batches(args: Any, kwargs: Any) -> bool:
    """Whether arguments of a call have edges of our batches."""
    found = edges_of_batches(*args, *kwargs.values())
    return next(found, None) is not None


@torch.compiler.disable(reason='blocks are not compiled')
def for_compiler(name: Any, state: State, args: Any, kwargs: Any) -> Any:
    """Returns the arguments of a compiled call, with plain edges.

    Torch refuses tensors of a subclass as arguments of compiled operators.
    """
    if not state.is_called:
        state.is_called = True
        warnings.warn(
            f'fuse: {name} runs on whole batches, not on blocks: it is '
            f'compiled by torch.compile. Compile other modules than the fused '
            f'one, or none',
            stacklevel=2,
        )
    return plain_edges(args), plain_edges(kwargs)
