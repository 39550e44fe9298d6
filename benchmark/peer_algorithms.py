"""The algorithms of ``algorithms.py`` as PyG users write them today.

Each is written with SciPy or with torch-sparse, has the distribution of ours
(draws with replacement, no union with the seeds) and omits everything else.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from torch_gsample import CSC

#: ``(number of the round, seeds) -> anything``
Batch = Callable[[int, Tensor], object]


def scipy_matrix(graph: CSC, value: Tensor) -> sparse.csc_matrix:
    """Returns the graph with int32 indices if they suffice."""
    return sparse.csc_matrix(
        (value.numpy(), graph.indices.numpy(), graph.indptr.numpy()),
        shape=(graph.num_rows, graph.num_cols),
    )


def _scipy_layer(
    sub: sparse.csc_matrix, p: np.ndarray, rows: np.ndarray, k: int
) -> sparse.csr_matrix:
    # Far fewer edges than rows: compressed rows are faster to slice.
    chosen = sub.tocsr()[rows]
    return sparse.diags(1 / (k * p[rows])) @ chosen


def scipy_ladies(A: sparse.csc_matrix, fanouts: Sequence[int]) -> Batch:
    def batch(i: int, seeds: Tensor) -> object:
        generator, columns, layers = np.random.default_rng(i), seeds, []
        for k in fanouts:
            sub = A[:, np.asarray(columns)]
            p = np.bincount(sub.indices, sub.data**2, minlength=A.shape[0])
            p /= p.sum()
            rows = generator.choice(A.shape[0], k, p=p)
            layers.append(_scipy_layer(sub, p, rows, k))
            columns = np.unique(rows)
        return layers

    return batch


def scipy_fastgcn(A: sparse.csc_matrix, fanouts: Sequence[int]) -> Batch:
    q = np.bincount(A.indices, A.data**2, minlength=A.shape[0])
    q /= q.sum()
    cumulated = np.cumsum(q)

    def batch(i: int, seeds: Tensor) -> object:
        generator, columns, layers = np.random.default_rng(i), seeds, []
        for k in fanouts:
            rows = np.searchsorted(cumulated, generator.random(k))
            sub = A[:, np.asarray(columns)]
            layers.append(_scipy_layer(sub, q, rows, k))
            columns = np.unique(rows)
        return layers

    return batch


def torch_sparse_matrix(graph: CSC, value: Tensor) -> object:
    """Returns the transposed graph as a ``torch_sparse.SparseTensor``."""
    from torch_sparse import SparseTensor

    return SparseTensor(
        rowptr=graph.indptr.long(),
        col=graph.indices.long(),
        value=value,
        sparse_sizes=(graph.num_cols, graph.num_rows),
        is_sorted=True,
        trust_data=True,
    )


def torch_sparse_ladies(adj_t: object, fanouts: Sequence[int]) -> Batch:
    def batch(i: int, seeds: Tensor) -> object:
        generator, layers = torch.Generator().manual_seed(i), []
        for k in fanouts:
            sub = adj_t[seeds]
            _, col, value = sub.coo()
            p = torch.zeros(adj_t.size(1)).index_add_(0, col, value**2)
            rows = torch.multinomial(p, k, True, generator=generator)
            chosen = sub[:, rows]
            layers.append(chosen * (p.sum() / (k * p[rows])).view(1, -1))
            seeds = rows.unique()
        return layers

    return batch


def torch_sparse_fastgcn(adj_t: object, fanouts: Sequence[int]) -> Batch:
    _, col, value = adj_t.coo()
    q = torch.zeros(adj_t.size(1)).index_add_(0, col, value**2)
    cumulated = q.double().cumsum(0)
    cumulated = cumulated / cumulated[-1]
    q = q / q.sum()

    def batch(i: int, seeds: Tensor) -> object:
        generator, layers = torch.Generator().manual_seed(i), []
        for k in fanouts:
            draws = torch.rand(k, dtype=torch.double, generator=generator)
            rows = torch.searchsorted(cumulated, draws)
            chosen = adj_t[seeds][:, rows]
            layers.append(chosen * (1 / (k * q[rows])).view(1, -1))
            seeds = rows.unique()
        return layers

    return batch
