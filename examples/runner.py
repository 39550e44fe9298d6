"""Compares samplers: one training loop, one budget, one table.

Each example of one sampler calls :func:`compare` with that sampler and
``NeighborLoader``. All methods of an example read the same number of feature
rows in an epoch, so a sampler of small batches takes more steps. The weights
of the epoch with the best validation score are tested, once.
"""

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import degree

from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

Layers = list[tuple[Tensor, Tensor]]  # ``edge_index`` and ``edge_weight``


@dataclass
class Method:
    """A sampler and the model that trains on its batches.

    Args:
        name (str): Its name in the table.
        loader (Iterable): Yields the batches of an epoch.
        model (torch.nn.Module): The model.
        loss (Callable): The loss of a batch.
        score (Callable): The score of a split, ``'val'`` or ``'test'``; more
            is better.
        rows (Callable): The number of feature rows that a batch reads.
        optimizer (torch.optim.Optimizer, optional): By default Adam.
    """

    name: str
    loader: Iterable
    model: nn.Module
    loss: Callable[[Any], Tensor]
    score: Callable[[str], float]
    rows: Callable[[Any], int] = lambda batch: batch.num_nodes
    optimizer: torch.optim.Optimizer | None = None


@dataclass
class Result:
    """A row of the table: ``seconds`` are processor time of training."""

    name: str
    score: float
    steps: int
    largest_batch: int
    seconds: float


class GNN(nn.Module):
    """Weighted sums over neighbours, with residual connections."""

    def __init__(
        self, data: Data, hidden: int, num_layers: int, dropout: float = 0.5
    ):
        super().__init__()
        self.encode = nn.Linear(data.num_features, hidden)
        convs = (GraphConv(hidden, hidden) for _ in range(num_layers))
        self.convs = nn.ModuleList(convs)
        self.classify = nn.Linear(hidden, int(data.y.max()) + 1)
        self.dropout = dropout

    def forward(self, x: Tensor, layers: Layers) -> Tensor:
        """Returns the scores of all nodes; ``layers`` has the edges of each
        layer with their weights.
        """
        h = self.drop(self.encode(x).relu())
        for conv, (edge_index, weight) in zip(self.convs, layers, strict=True):
            h = h + self.drop(conv(h, edge_index, weight).relu())
        return self.classify(h)

    def drop(self, h: Tensor) -> Tensor:
        return F.dropout(h, self.dropout, self.training)


def arguments(**defaults: int) -> argparse.Namespace:
    """Returns the command line's arguments and seeds torch."""
    shared = {'epochs': 4, 'batch_size': 1024, 'hidden': 64, 'seed': 0}
    shared |= {'rows': 200_000, 'max_batches': 10**9}
    texts = {
        'rows': 'feature rows that each method reads an epoch',
        'max_batches': 'of each method an epoch',
    }
    parser = argparse.ArgumentParser(
        formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, value in (shared | defaults).items():
        option = f'--{name.replace("_", "-")}'
        text = texts.get(name, ' ')
        parser.add_argument(option, type=int, default=value, help=text)
    parser.add_argument('--json', metavar='FILE', help='append results there')
    args = parser.parse_args()
    seed_everything(args.seed)
    return args


def debian(num_features: int = 128) -> Data:
    """Returns Debian's packages as an undirected graph, with the principal
    components of their features, and ``edge_weight`` for means.
    """
    data = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())[0]
    data.x = data.x @ torch.pca_lowrank(data.x, num_features, niter=1)[2]
    data.x = data.x / data.x.std()
    data.edge_weight = mean_weight(data.edge_index, data.num_nodes)
    return data


def mean_weight(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Returns the weights that make a sum over in-edges their mean."""
    return 1 / degree(edge_index[1], num_nodes)[edge_index[1]]


def layers_of(batch: Data) -> Layers:
    """Returns the edges of ``NeighborLoader``'s batch for each layer: those of
    all hops first, those of the first hop last.
    """
    layers = []
    for hops in range(len(batch.num_sampled_edges), 0, -1):
        edge_index = batch.edge_index[:, : sum(batch.num_sampled_edges[:hops])]
        layers.append((edge_index, mean_weight(edge_index, batch.num_nodes)))
    return layers


def loss_of_seeds(
    model: nn.Module, layers: Callable[[Data], Layers] = layers_of
) -> Callable[[Data], Tensor]:
    """Returns the cross entropy of a batch's seeds."""

    def loss(batch: Data) -> Tensor:
        size = batch.batch_size
        out = model(batch.x, layers(batch))
        return F.cross_entropy(out[:size], batch.y[:size])

    return loss


def accuracy_on(data: Data, model: GNN) -> Callable[[str], float]:
    """Returns the accuracy of a split, computed on the whole graph."""
    layers = [(data.edge_index, data.edge_weight)] * len(model.convs)

    def accuracy(split: str) -> float:
        right = model(data.x, layers).argmax(dim=1) == data.y
        return float(right[data[f'{split}_mask']].double().mean())

    return accuracy


def baselines(
    data: Data, fanouts: list[int], args: argparse.Namespace
) -> list[Method]:
    """Returns features alone, and ``NeighborLoader`` with a layer a hop."""
    methods = []
    for name, sizes in (('Features only', []), ('NeighborLoader', fanouts)):
        loader = NeighborLoader(
            data,
            sizes or [0],
            data.train_mask,
            batch_size=args.batch_size,
            shuffle=True,
            seed=args.seed,
        )
        model = GNN(data, args.hidden, len(sizes))
        layers = layers_of if sizes else lambda _: []
        loss = loss_of_seeds(model, layers)
        methods.append(
            Method(name, loader, model, loss, accuracy_on(data, model))
        )
    return methods


def accuracy_of(
    loaders: dict[str, Iterable],
    predict: Callable[[Data], Tensor],
    max_batches: int,
) -> Callable[[str], float]:
    """Returns the accuracy of a split, computed on the batches of its loader:
    ``predict`` returns the scores of a batch's seeds.
    """

    def accuracy(split: str) -> float:
        right = []
        for batch, _ in zip(loaders[split], range(max_batches), strict=False):
            out = predict(batch)
            right.append(out.argmax(dim=1) == batch.y[: len(out)])
        return float(torch.cat(right).double().mean())

    return accuracy


def auc(positive: Tensor, negative: Tensor) -> float:
    """Returns the area under the ROC curve; ties count as half."""
    negative = negative.sort().values
    low = torch.searchsorted(negative, positive.contiguous())
    high = torch.searchsorted(negative, positive.contiguous(), right=True)
    return float((low + high).double().mean() / 2 / len(negative))


def batches_of(
    method: Method, epoch: int, args: argparse.Namespace
) -> Iterator:
    """Yields batches until the budget is spent, pass after pass."""
    rows = steps = 0
    for part in count():
        if hasattr(method.loader, 'set_epoch'):
            method.loader.set_epoch(1000 * epoch + part)
        for batch in method.loader:
            yield batch
            rows, steps = rows + method.rows(batch), steps + 1
            if rows >= args.rows or steps >= args.max_batches:
                return


def train(method: Method, metric: str, args: argparse.Namespace) -> Result:
    """Trains a method for all epochs, and tests its best one."""
    model = method.model
    optimizer = method.optimizer or torch.optim.Adam(model.parameters(), 0.01)
    result, best, state = Result(method.name, 0.0, 0, 0, 0.0), -1.0, {}
    for epoch in range(1, args.epochs + 1):
        model.train()
        losses, start = [], time.process_time()
        for batch in batches_of(method, epoch, args):
            optimizer.zero_grad()
            loss = method.loss(batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            rows = method.rows(batch)
            result.largest_batch = max(result.largest_batch, rows)
        result.seconds += time.process_time() - start
        result.steps += len(losses)
        val = score(method, 'val')
        mean = sum(losses) / len(losses)
        print(
            f'{method.name}, epoch {epoch}: mean loss {mean:.4f}, '
            f'validation {metric} {val:.4f}',
            flush=True,
        )
        if val > best:
            best, state = val, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    result.score = score(method, 'test')
    return result


@torch.no_grad()
def score(method: Method, split: str) -> float:
    method.model.eval()
    return method.score(split)


def compare(
    methods: Iterable[Method],
    args: argparse.Namespace,
    metric: str = 'accuracy',
    known: dict[str, float] | None = None,
) -> None:
    """Trains all methods and prints their table; ``known`` has the test scores
    of baselines that learn nothing.
    """
    results = [Result(name, v, 0, 0, 0.0) for name, v in (known or {}).items()]
    results += [train(method, metric, args) for method in methods]
    for r in results:
        print(f'{r.name}: test {metric} {r.score:.4f}', end='')
        text = f', {r.steps} steps, up to {r.largest_batch:,} rows a batch'
        print(f'{text}, {r.seconds:.1f} s of a processor' if r.steps else '')
    if args.json:
        with open(args.json, 'a') as file:
            for r in results:
                file.write(json.dumps({'metric': metric, **asdict(r)}) + '\n')
