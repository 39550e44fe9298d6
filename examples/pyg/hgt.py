"""The Heterogeneous Graph Transformer with its sampler, PyG's ``HGTLoader``.

.. code-block:: sh

    gsample run examples/pyg/hgt.py
    gsample run examples/pyg/hgt.py --dataset ogb-mag
"""

from itertools import islice

import torch
import torch.nn.functional as F
from common import load_typed_graph, parse_args, share_of_largest_class
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.loader import HGTLoader
from torch_geometric.nn import HGTConv, Linear


class HGT(nn.Module):
    """Two layers of attention, with weights for each type."""

    def __init__(self, data: HeteroData, hidden: int, out_channels: int):
        super().__init__()
        types = data.node_types
        self.encode = nn.ModuleDict({t: Linear(-1, hidden) for t in types})
        self.convs = nn.ModuleList(
            HGTConv(hidden, hidden, data.metadata(), heads=2) for _ in range(2)
        )
        self.classify = Linear(hidden, out_channels)

    def forward(self, batch: HeteroData, node_type: str) -> Tensor:
        h = {t: self.encode[t](x).relu() for t, x in batch.x_dict.items()}
        for conv in self.convs:
            h = conv(h, batch.edge_index_dict)
        return self.classify(h[node_type])[: batch[node_type].batch_size]


def main() -> None:
    args = parse_args('ogb-mag', num_samples=512)
    data, node_type, num_classes = load_typed_graph(args)
    labelled = data[node_type]
    train_loader, test_loader = (
        HGTLoader(
            data,
            num_samples=[args.num_samples] * 2,
            input_nodes=(node_type, labelled[f'{split}_mask']),
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
        )
        for split in ('train', 'test')
    )

    def labels(batch: HeteroData) -> Tensor:
        return batch[node_type].y[: batch[node_type].batch_size]

    model = HGT(data, args.hidden, num_classes)
    with torch.no_grad():  # gives all weights their sizes
        model(next(iter(train_loader)), node_type)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(1, args.epochs + 1):
        for batch in islice(train_loader, args.max_batches):
            loss = F.cross_entropy(model(batch, node_type), labels(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    with torch.no_grad():
        correct = [
            model(batch, node_type).argmax(dim=1) == labels(batch)
            for batch in islice(test_loader, args.max_batches)
        ]
    share = share_of_largest_class(
        labelled.y, labelled.train_mask, labelled.test_mask
    )
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'HGT: test accuracy {torch.cat(correct).double().mean():.4f}')


if __name__ == '__main__':
    main()
