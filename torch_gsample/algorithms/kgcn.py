"""KGCN: receptive fields of fixed size in a knowledge graph."""

from collections.abc import Sequence

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def kgcn(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    user: Tensor,
    relation: Tensor,
    edge_type: Tensor,
) -> list[SparseSample]:
    r"""Samples the receptive field of each pair of a user and an item (KGCN).

    Each entity of the field gets :math:`k` neighbours, uniformly with
    replacement, so all fields have the same size. Weights are a user's
    interest in the relations:

    .. math::
        S[e, v] = \frac{\exp \langle \mathbf{u}, \mathbf{r}_{e, v} \rangle}
            {\sum_{e' \in \mathcal{S}(v)}
             \exp \langle \mathbf{u}, \mathbf{r}_{e', v} \rangle}

    as in `"Knowledge Graph Convolutional Networks for Recommender Systems"
    <https://arxiv.org/abs/1904.12575>`_ (WWW 2019). Fields are trees: the
    columns of a layer are the edges of the previous layer, in their order. An
    entity draws the same neighbours for all users, as in the paper.

    Args:
        A (SparseSample): The graph, ``[num_entities, num_entities]``.
        seeds (torch.Tensor): int64 ``[num_pairs]``, items.
        fanouts (Sequence[int]): Neighbours per entity in each layer.
        user (torch.Tensor): ``[num_pairs, F]``, the user of each pair.
        relation (torch.Tensor): ``[num_relations, F]``.
        edge_type (torch.Tensor): int64, the relation of each edge, by
            :attr:`SparseSample.edge_id`.

    Returns:
        List[SparseSample]: ``[num_entities, num_cols]`` each.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 0, 0], [0, 0, 1, 2]])
        ... )
        >>> layers = kgcn(
        ...     A,
        ...     torch.tensor([0]),
        ...     [3, 2],
        ...     user=torch.rand(1, 4),
        ...     relation=torch.rand(2, 4),
        ...     edge_type=torch.tensor([0, 1, 0, 1]),
        ... )
        >>> [S.num_edges for S in layers]
        [3, 6]
    """
    layers = []
    for k in fanouts:
        S = A[:, seeds].individual_sample(k, replace=True)
        user = user[S.coo()[1]]
        score = (user * relation[edge_type[S.edge_id]]).sum(dim=1)
        layers.append(S.with_value(score).softmax(dim=0))
        seeds = S.edges()[0]
    return layers
