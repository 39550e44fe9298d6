"""Links predicted from the past only: PyG's ``LinkNeighborLoader`` with times.

.. code-block:: sh

    gsample run examples/pyg/temporal_links.py
    gsample run examples/pyg/temporal_links.py --dataset movie-lens

Who changes which file of GCC next, or who rates which film. A seed sees what
happened before it, the last neighbours first. A baseline is printed, too: the
product of the numbers of earlier events of both ends.
"""

from itertools import islice
from math import prod

import torch
import torch.nn.functional as F
from common import area_under_curve, load_links, parse_args
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.nn import GraphSAGE, to_hetero
from torch_geometric.typing import EdgeType


class LinkModel(nn.Module):
    """Scores the pairs of a batch; each node starts from an embedding."""

    def __init__(self, data: HeteroData, hidden: int):
        super().__init__()
        sizes = {t: data[t].num_nodes for t in data.node_types}
        self.start = nn.ModuleDict(
            {t: nn.Embedding(n, hidden) for t, n in sizes.items()}
        )
        gnn = GraphSAGE((hidden, hidden), hidden, num_layers=2)
        self.gnn = to_hetero(gnn, data.metadata(), aggr='sum')

    def forward(self, batch: HeteroData, link: EdgeType) -> Tensor:
        x = {t: self.start[t](batch[t].n_id) for t in batch.node_types}
        h = self.gnn(x, batch.edge_index_dict)
        src, dst = batch[link].edge_label_index
        return (h[link[0]][src] * h[link[2]][dst]).sum(dim=1)


def main() -> None:
    args = parse_args('movie-lens', 'gcc', max_batches=100)
    link, data = load_links(args)
    edges = data[link]
    order = edges.time.argsort(stable=True)
    train, test = order.tensor_split([int(0.9 * len(order))])
    train_loader, test_loader = (
        LinkNeighborLoader(
            data,
            num_neighbors=[10, 5],
            edge_label_index=(link, edges.edge_index[:, index]),
            edge_label_time=edges.time[index] - 1,
            time_attr='time',
            temporal_strategy='last',
            neg_sampling='binary',
            batch_size=args.batch_size,
            shuffle=True,
            num_workers=args.workers,
        )
        for index in (train, test)
    )
    model = LinkModel(data, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(1, args.epochs + 1):
        for batch in islice(train_loader, args.max_batches):
            target = batch[link].edge_label
            out = model(batch, link)
            loss = F.binary_cross_entropy_with_logits(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'Epoch {epoch}: loss {loss.item():.4f}')
    ends = zip(link[::2], edges.edge_index[:, train], strict=True)
    count = {t: i.bincount(minlength=data[t].num_nodes) for t, i in ends}
    scores, counts, labels = [], [], []
    for batch in islice(test_loader, args.max_batches):
        with torch.no_grad():
            scores.append(model(batch, link))
        pairs = zip(count, batch[link].edge_label_index, strict=True)
        counts.append(prod(count[t][batch[t].n_id[i]] + 1 for t, i in pairs))
        labels.append(batch[link].edge_label)
    for name, values in (('Earlier events', counts), ('SAGE', scores)):
        area = area_under_curve(torch.cat(values), torch.cat(labels))
        print(f'{name}: AUC {area:.4f}')


if __name__ == '__main__':
    main()
