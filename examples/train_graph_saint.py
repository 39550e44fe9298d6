"""Classifies Debian's packages on GraphSAINT's subgraphs.

All nodes of a subgraph are trained on, so none is read for its neighbours
alone. ``node_norm`` and ``edge_norm`` make the loss and the means of a
subgraph estimates of those of the whole graph. With an equal budget of feature
rows, it is more accurate than ``NeighborLoader``, in smaller batches.
"""

import torch.nn.functional as F
from runner import (
    GNN,
    Method,
    accuracy_on,
    arguments,
    baselines,
    compare,
    debian,
)
from torch import Tensor
from torch_geometric.data import Data

from torch_gsample.loader import GraphSAINTRandomWalkSampler


def main() -> None:
    args = arguments(walks=1000, walk_length=2, coverage=3)
    data = debian()
    loader = GraphSAINTRandomWalkSampler(
        data,
        args.walks,
        args.walk_length,
        num_steps=50,
        sample_coverage=args.coverage,
        log=False,
        seed=args.seed,
    )
    model = GNN(data, args.hidden, 2)

    def loss(batch: Data) -> Tensor:
        weight = batch.edge_norm * batch.edge_weight
        out = model(batch.x, [(batch.edge_index, weight)] * 2)
        each = F.cross_entropy(out, batch.y, reduction='none')
        return (each * batch.node_norm)[batch.train_mask].sum()

    saint = Method('GraphSAINT', loader, model, loss, accuracy_on(data, model))
    compare([*baselines(data, [10, 5], args), saint], args)


if __name__ == '__main__':
    main()
