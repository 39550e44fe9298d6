"""Classifies Debian's packages with deep models on ShaDow's subgraphs.

Each package has a small subgraph of its own, so the model may have more layers
than the subgraph has hops: four layers read two hops. With an equal budget of
feature rows, it is more accurate than ``NeighborLoader``, in smaller batches.
"""

import torch.nn.functional as F
from runner import (
    GNN,
    Method,
    accuracy_of,
    arguments,
    baselines,
    compare,
    debian,
    mean_weight,
)
from torch import Tensor
from torch_geometric.data import Data

from torch_gsample.loader import ShaDowKHopSampler


def main() -> None:
    args = arguments(batch_size=256)
    data = debian()
    loaders = {
        split: ShaDowKHopSampler(
            data,
            depth=2,
            num_neighbors=5,
            node_idx=data[f'{split}_mask'],
            batch_size=args.batch_size,
            shuffle=True,
            seed=args.seed,
        )
        for split in ('train', 'val', 'test')
    }
    model = GNN(data, args.hidden, 4)

    def predict(batch: Data) -> Tensor:
        weight = mean_weight(batch.edge_index, batch.num_nodes)
        out = model(batch.x, [(batch.edge_index, weight)] * 4)
        return out[batch.root_n_id]

    shadow = Method(
        'ShaDow',
        loaders['train'],
        model,
        lambda batch: F.cross_entropy(predict(batch), batch.y),
        accuracy_of(loaders, predict, args.max_batches),
    )
    compare([*baselines(data, [5, 5, 5, 5], args), shadow], args)


if __name__ == '__main__':
    main()
