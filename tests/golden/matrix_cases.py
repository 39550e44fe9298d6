"""The methods of `SparseSample` with results in one order."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.golden.digest import structure
from tests.golden.graphs import matrix, mixed, some_nodes
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs
from torch_gsample.sparse_sample.extract import by_column
from torch_gsample.sparse_sample.select import random_walk_step

Method = Callable[[Any, Tensor], Any]


def weights(A: Any) -> Tensor:
    """A probability of each row; some are 0."""
    return mixed(A.num_rows, 110, 5).double() / 4


def thirds(A: Any) -> Any:
    """The matrix with values that sum differently in another order."""
    return A.with_value(mixed(A.num_edges, 111, 1000).double() / 3)


#: Functions of a matrix and some nodes.
METHODS: dict[str, Method] = {
    'columns': lambda A, s: A[:, s],
    'rows': lambda A, s: A[s, :],
    'block': lambda A, s: A[s, s],
    'transpose': lambda A, s: A.T[:, s],
    'induce': lambda A, s: A.induce(s),
    'induce batches': lambda A, s: A.induce(
        torch.cat([s, s]), torch.arange(2).repeat_interleave(len(s))
    ),
    'top': lambda A, s: A[:, s].top(3),
    'masked': lambda A, s: A[:, s].masked(A[:, s].values() > 0.5),
    'compact': lambda A, s: A[:, s].individual_sample(3).compact(),
    'by column': lambda A, s: by_column(A.T),
    'csc': lambda A, s: A.to_csc(),
    'csr': lambda A, s: A.to_csr(),
    'coo': lambda A, s: (*A.T.coo(), A.T.values()),
    'edge index': lambda A, s: A.to_edge_index(),
    'degree': lambda A, s: [A.degree(dim=0), A.degree(dim=1)],
    'sum': lambda A, s: [thirds(A).sum(dim=0), thirds(A).sum(dim=1)],
    'mean': lambda A, s: [thirds(A).mean(dim=0), thirds(A).mean(dim=1)],
    'max': lambda A, s: [A.max(dim=0), A.min(dim=1)],
    # MKL's root has another last bit on other processors.
    'norm': lambda A, s: thirds(A).norm(dim=0).float(),
    'divided': lambda A, s: thirds(A).div(A.sum(dim=0), dim=0),
    'product': lambda A, s: thirds(A).T @ weights(A).view(-1, 1).repeat(1, 3),
    'sddmm': lambda A, s: A[:, s].sddmm(
        weights(A).view(-1, 1), weights(A)[s].view(-1, 1)
    ),
    'individual': lambda A, s: A[:, s].individual_sample(3),
    'individual replace': lambda A, s: A[:, s].individual_sample(
        3, A[:, s], replace=True
    ),
    'collective': lambda A, s: A[:, s].collective_sample(8),
    'collective replace': lambda A, s: A[:, s].collective_sample(
        8, weights(A), replace=True
    ),
    'labor': lambda A, s: A[:, s].labor_sample(3),
    'walk step': lambda A, s: random_walk_step(A, s),
    'walk': lambda A, s: A.random_walk(s, 5, restart=0.25),
    'walk by values': lambda A, s: A.random_walk(s, 5, probs=A),
    'node2vec': lambda A, s: A.node2vec_walk(s, 5, 2.0, 0.5),
    'visit count': lambda A, s: A.visit_count(s, 4, 3),
    'row probs': lambda A, s: NodeProbs(weights(A)).sample(8),
    'twice': lambda A, s: [
        A[:, s].individual_sample(2),
        A[:, s].individual_sample(2),
    ],
}


def drawn(name: str, method: str) -> Any:
    A, nodes = matrix(name), some_nodes(matrix(name).num_cols, 9, 4)
    with program_scope(make_key(3, 1, 4)):
        out = METHODS[method](A, nodes)
    return structure(out) if method == 'labor' else out


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name."""
    return {
        f'{method}/{name}': partial(drawn, name, method)
        for method in METHODS
        for name in ('small', 'hub')
    }
