"""Links predicted from the past only: PyG's ``LinkNeighborLoader`` with times.

.. code-block:: sh

    gsample run examples/pyg/temporal_links.py
    gsample run examples/pyg/temporal_links.py --dataset movie-lens

Who changes which file of GCC next, or who rates which film. A seed sees what
happened before it, the last neighbours first. Beside the model is printed how
well the number of earlier events of a file or film does.
"""

from itertools import islice

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from common import area_under_curve, parse_args
from torch import Tensor, nn
from torch_geometric import datasets
from torch_geometric.data import HeteroData
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.nn import SAGEConv, to_hetero

from torch_gsample.datasets import GccChangelog


class SAGE(nn.Module):
    """Two layers of GraphSAGE."""

    def __init__(self, hidden: int):
        super().__init__()
        self.first = SAGEConv((hidden, hidden), hidden)
        self.second = SAGEConv((hidden, hidden), hidden)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class LinkModel(nn.Module):
    """Scores the pairs of a batch; each node starts from an embedding."""

    def __init__(self, data: HeteroData, hidden: int):
        super().__init__()
        sizes = {t: data[t].num_nodes for t in data.node_types}
        self.start = nn.ModuleDict(
            {t: nn.Embedding(n, hidden) for t, n in sizes.items()}
        )
        self.gnn = to_hetero(SAGE(hidden), data.metadata(), aggr='sum')

    def forward(self, batch: HeteroData, link: tuple[str, str, str]) -> Tensor:
        x = {t: self.start[t](batch[t].n_id) for t in batch.node_types}
        h = self.gnn(x, batch.edge_index_dict)
        src, dst = batch[link].edge_label_index
        return (h[link[0]][src] * h[link[2]][dst]).sum(dim=1)


def main() -> None:
    args = parse_args('movie-lens', 'gcc', max_batches=100)
    if args.dataset == 'gcc':
        data = GccChangelog()[0]
    else:
        data = datasets.MovieLens100K(args.root)[0]
        del data['user'].x, data['movie'].x
        data = HeteroData(data.to_dict())
    link = data.edge_types[0]
    edges = data[link]
    data = T.ToUndirected()(data)
    order = edges.time.argsort(stable=True)
    train, test = order.split([round(0.9 * len(order)), len(order) // 10])
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
    count = edges.edge_index[1, train].bincount(
        minlength=data[link[2]].num_nodes
    )
    scores, counts, labels = [], [], []
    for batch in islice(test_loader, args.max_batches):
        with torch.no_grad():
            scores.append(model(batch, link))
        dst = batch[link].edge_label_index[1]
        counts.append(count[batch[link[2]].n_id[dst]])
        labels.append(batch[link].edge_label)
    for name, values in (('Earlier events', counts), ('SAGE', scores)):
        area = area_under_curve(torch.cat(values), torch.cat(labels))
        print(f'{name}: AUC {area:.4f}')


if __name__ == '__main__':
    main()
