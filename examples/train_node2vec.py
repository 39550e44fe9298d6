"""Learns embeddings of Debian's packages with node2vec, without features.

A logistic regression on the embeddings tells the section of packages. With
``LinkNeighborLoader``, embeddings averaged over neighbours learn to tell edges
from random pairs. With an equal budget of rows, they are more accurate, and
node2vec is twice as fast.
"""

import torch
import torch.nn.functional as F
from runner import Method, arguments, compare, debian, mean_weight
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from torch_gsample.loader import LinkNeighborLoader
from torch_gsample.nn import Node2Vec


def accuracy(z: Tensor, data: Data, split: str) -> float:
    """Returns the accuracy of a logistic regression on embeddings."""
    z = (z - z.mean(dim=0)) / z.std(dim=0)
    train, mask = data.train_mask, data[f'{split}_mask']
    model = nn.Linear(z.size(1), int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    with torch.enable_grad():
        for _ in range(50):
            loss = F.cross_entropy(model(z[train]), data.y[train])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(
        (model(z[mask]).argmax(dim=1) == data.y[mask]).double().mean()
    )


class MeanOfEmbeddings(nn.Module):
    """Embeddings and a layer of GraphSAGE."""

    def __init__(self, num_nodes: int, hidden: int):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(num_nodes, hidden))
        self.conv = GraphConv(hidden, hidden)

    def forward(self, n_id: Tensor, edge_index: Tensor) -> Tensor:
        h = F.embedding(n_id, self.table, sparse=True)
        weight = mean_weight(edge_index, len(h))
        return h + self.conv(h, edge_index, weight)


def main() -> None:
    args = arguments(batch_size=256, walk_length=10, rows=1_500_000)
    torch.sparse.check_sparse_tensor_invariants.disable()  # no warning
    data = debian()
    seed = {'seed': args.seed}
    pairs = LinkNeighborLoader(
        data,
        [5],
        batch_size=4 * args.batch_size,
        neg_sampling='binary',
        shuffle=True,
        **seed,
    )
    mean = MeanOfEmbeddings(data.num_nodes, args.hidden)

    def loss(batch: Data) -> Tensor:
        u, v = mean(batch.n_id, batch.edge_index)[batch.edge_label_index]
        score = (u * v).sum(dim=1)
        return F.binary_cross_entropy_with_logits(score, batch.edge_label)

    def score(split: str) -> float:
        z = mean(torch.arange(data.num_nodes), data.edge_index)
        return accuracy(z, data, split)

    walks = Node2Vec(
        data.edge_index,
        embedding_dim=args.hidden,
        walk_length=args.walk_length,
        context_size=5,
        q=0.5,
        num_nodes=data.num_nodes,
        sparse=True,
        **seed,
    )
    nn.init.normal_(walks.embedding.weight, std=0.1)
    node2vec = Method(
        'node2vec',
        walks.loader(batch_size=args.batch_size, shuffle=True),
        walks,
        lambda batch: walks.loss(*batch),
        lambda split: accuracy(walks(), data, split),
        rows=lambda batch: sum(part.numel() for part in batch),
        optimizer=torch.optim.SparseAdam(list(walks.parameters()), lr=0.01),
    )
    largest = data.y[data.train_mask].bincount().argmax()
    majority = (data.y[data.test_mask] == largest).double().mean()
    methods = [
        Method(
            'LinkNeighborLoader',
            pairs,
            mean,
            loss,
            score,
            optimizer=torch.optim.Adagrad(mean.parameters(), 0.1),
        ),
        node2vec,
    ]
    compare(methods, args, known={'Largest section': float(majority)})


if __name__ == '__main__':
    main()
