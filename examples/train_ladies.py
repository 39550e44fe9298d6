"""Classifies Debian's packages on layers that LADIES samples.

LADIES bounds the nodes of each layer, so a batch stays small however many hops
the model has. The weights of its edges make a sum an estimate of the whole
mean. With an equal budget of feature rows, it takes twice the time of
``NeighborLoader`` here and is not more accurate: choose it for small batches.
"""

from runner import (
    GNN,
    Layers,
    Method,
    accuracy_on,
    arguments,
    baselines,
    compare,
    debian,
    loss_of_seeds,
)
from torch_geometric.data import Data

from torch_gsample import LadiesSampler
from torch_gsample.loader import NeighborLoader


def layers_of(batch: Data) -> Layers:
    """Returns the edges of each hop, the outermost first."""
    edges = batch.edge_index.split(batch.num_sampled_edges, dim=1)
    weights = batch.edge_weight.split(batch.num_sampled_edges)
    return list(zip(edges, weights, strict=True))[::-1]


def main() -> None:
    args = arguments(batch_size=512, num_sampled=1024)
    data = debian()
    sampler = LadiesSampler(
        data, [args.num_sampled] * 3, weight_attr='edge_weight', seed=args.seed
    )
    loader = NeighborLoader(
        data,
        None,
        data.train_mask,
        sampler=sampler,
        batch_size=args.batch_size,
        shuffle=True,
    )
    model = GNN(data, args.hidden, 3)
    loss = loss_of_seeds(model, layers_of)
    ladies = Method('LADIES', loader, model, loss, accuracy_on(data, model))
    compare([*baselines(data, [10, 5, 5], args), ladies], args)


if __name__ == '__main__':
    main()
