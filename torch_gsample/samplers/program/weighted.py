"""Base of samplers whose programs weigh the edges of a layer."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from typing_extensions import Unpack

from torch_gsample.graph_input import GraphData
from torch_gsample.ops._check import count
from torch_gsample.options import LayerOptions
from torch_gsample.samplers.program.input import checked_list
from torch_gsample.samplers.program.sampler import ProgramSampler
from torch_gsample.sparse_sample import SparseSample


class WeightedSampler(ProgramSampler):
    """A program of layers with weights, on a homogeneous graph.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        program (Callable): The program.
        sizes (Tuple[str, List[int]]): The name and the value of the argument
            that becomes ``fanouts``.
        program_kwargs (Dict[str, Any]): Further arguments of the program.
        normalization (str, optional): See :class:`LadiesSampler`.
        weight_attr (str, optional): See :class:`ProgramSampler`.
        own_edges (bool, optional): See :class:`ProgramSampler`.
        **options (optional): See :class:`ProgramSampler`.
    """

    _checks_edges = False
    overlaps_reads = True

    def __init__(
        self,
        data: GraphData,
        program: Callable[..., Any],
        sizes: tuple[str, Sequence[int]],
        program_kwargs: dict[str, Any],
        *,
        normalization: Literal['row', 'sym'] | None = None,
        weight_attr: str | None = None,
        own_edges: bool = False,
        **options: Unpack[LayerOptions],
    ):
        if normalization not in (None, 'row', 'sym'):
            raise ValueError(
                f"{self._name}: 'normalization' must be None, 'row' or 'sym' "
                f'(got {normalization!r})'
            )
        super().__init__(
            data,
            program,
            [
                count(self._name, sizes[0], size)
                for size in checked_list(self._name, *sizes)
            ],
            weight_attr=weight_attr,
            own_edges=own_edges,
            **options,
        )
        if self.is_hetero:
            raise ValueError(
                f"{self._name}: 'data' must have one type of nodes and edges "
                f'(got {list(self.graph.edge_types)})'
            )
        self.program_kwargs = program_kwargs
        if normalization is not None:
            A = _normalized(self._name, self.matrices[None], normalization)
            if options.get('share_memory'):
                A.share_memory_()
            self.matrices[None] = A


def _normalized(name: str, A: SparseSample, kind: str) -> SparseSample:
    """Returns A[u, v] / d_v, or A[u, v] / sqrt(d_u d_v)."""
    if A._disk is None:  # stored weights are checked when they are read
        A = _checked(name, A)
    # If a sum is 0, all its edges have weight 0, and keep it.
    least = torch.finfo(A.dtype).tiny
    into = A.sum(dim=0).clamp(min=least)
    if kind == 'row':
        return A.div(into, dim=0)
    out_of = A.sum(dim=1).clamp(min=least)
    return A.div(out_of.sqrt(), dim=1).div(into.sqrt(), dim=0)


def _checked(name: str, A: SparseSample) -> SparseSample:
    """Returns the matrix with floating-point values that are not negative."""
    value = A.values()
    if not value.is_floating_point():
        A = A.with_value(value.to(torch.get_default_dtype()))
    if bool((value < 0).any()):
        raise ValueError(
            f"{name}: with 'normalization', weights must not be negative "
            f'(got {float(value.min())})'
        )
    return A
