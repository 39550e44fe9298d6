"""Predicts which file of GCC a person changes next, from the past only.

.. code-block:: sh

    python examples/link_prediction_gcc.py

Each event (person, file, day) is compared with files drawn at random for the
same person and day. What the model knows of an event of day ``t`` are the
events of days before ``t``: neighbours are sampled at ``edge_label_time =
t - 1``, as the sampler takes edges up to and including that time. The model
is trained on events up to 2018, the epoch is chosen on those up to May 2020,
and it is tested on those up to 2022. Takes about a minute on two cores.

With one ``--seed``, batches, negatives and samples are the same on every
machine; sums of floats inside torch only for equal versions and threads.
"""

import argparse
import copy
import sys
import time
from itertools import islice

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import HeteroData
from torch_geometric.utils import scatter

from torch_gsample.datasets import GccChangelog
from torch_gsample.loader import LinkNeighborLoader

EVENT = ('person', 'changed', 'file')
REVERSE = ('file', 'rev_changed', 'person')
DEPTH = 4


class TemporalSAGE(nn.Module):
    """GraphSAGE whose messages know how old the event is.

    A file starts from the directories it lies in, a person from nothing, so
    that both may be new.

    Args:
        num_dirs (int): Number of directories.
        hidden (int): Width of all layers.
        num_hops (int): Number of hops that the loader samples.
    """

    def __init__(self, num_dirs: int, hidden: int, num_hops: int):
        super().__init__()
        self.directory = nn.Embedding(num_dirs, hidden, padding_idx=0)
        self.age = nn.Embedding(16, hidden)  # log2 of days
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                f'{kind}_{node_type}': nn.Linear(hidden, hidden)
                for kind in ('self', 'neighbor')
                for node_type in ('person', 'file')
            })
            for _ in range(num_hops)
        )
        self.score = nn.Sequential(
            nn.Linear(3 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, batch: HeteroData) -> Tensor:
        """Returns scores ``[batch_size, 1 + num_negatives]``, the event's
        first.
        """
        h = {
            'file': self.directory(batch['file'].x).sum(dim=1),
            'person': self.age.weight.new_zeros(
                batch['person'].num_nodes, self.age.embedding_dim
            ),
        }
        for layer in self.layers:
            h = h | {
                dst: h[dst]
                + F.relu(
                    layer[f'self_{dst}'](h[dst])
                    + layer[f'neighbor_{dst}'](
                        self._mean_event(h[src], batch, (src, relation, dst))
                    )
                )
                for src, relation, dst in (EVENT, REVERSE)
            }
        person = h['person'][batch['person'].src_index].unsqueeze(1)
        file = h['file'][candidates(batch)]
        person = person.expand_as(file)
        pair = torch.cat([person, file, person * file], dim=-1)
        return self.score(pair).squeeze(-1)

    def _mean_event(
        self, h: Tensor, batch: HeteroData, edge_type: tuple[str, str, str]
    ) -> Tensor:
        dst = batch[edge_type[-1]]
        row, col = batch[edge_type].edge_index
        # Each seed event has trees of its own, which `batch` numbers.
        days = dst.seed_time[dst.batch[col]] - batch[edge_type].time
        age = self.age((days + 1).log2().long())
        return scatter(h[row] + age, col, 0, dst.num_nodes, reduce='mean')


def candidates(batch: HeteroData) -> Tensor:
    """Returns the local ids of the true file and of the negatives."""
    true, negative = batch['file'].dst_pos_index, batch['file'].dst_neg_index
    return torch.cat([true.view(-1, 1), negative.view(len(true), -1)], dim=1)


def load_graph() -> tuple[HeteroData, int]:
    """Returns the graph, files with their directories, and how many."""
    dataset = GccChangelog(pre_transform=T.ToUndirected())
    data = dataset[0]
    ids: dict[str, int] = {'': 0}
    rows = []
    for name in dataset.file_names:
        parts = name.split('/')[:-1]
        paths = ['/'.join(parts[: i + 1]) for i in range(min(len(parts), DEPTH))]
        row = [ids.setdefault(path, len(ids)) for path in paths]
        rows.append(row + [0] * (DEPTH - len(row)))
    data['file'].x = torch.tensor(rows)
    return data, len(ids)


class PastEvents:
    """Answers how often and how lately something happened before a day.

    Args:
        key (torch.Tensor): What happened, one number an event.
        day (torch.Tensor): When it happened.
    """

    def __init__(self, key: Tensor, day: Tensor):
        self.base = int(day.max()) + 1
        self.events = (key * self.base + day).sort().values

    def count(self, key: Tensor, day: Tensor) -> Tensor:
        """Returns the number of events of ``key`` before ``day``."""
        first = torch.searchsorted(self.events, key * self.base)
        end = torch.searchsorted(self.events, key * self.base + day)
        return end - first

    def latest(self, key: Tensor, day: Tensor) -> Tensor:
        """Returns the last day of ``key`` before ``day``, or -1."""
        end = torch.searchsorted(self.events, key * self.base + day)
        last = self.events[(end - 1).clamp(min=0)] % self.base
        return torch.where(self.count(key, day) > 0, last, -1)


def metrics(score: Tensor) -> str:
    """Returns area under the curve and mean reciprocal rank, ties halved."""
    positive, negative = score[:, 0], score[:, 1:]
    rank = (
        1
        + (negative > positive[:, None]).sum(dim=1)
        + 0.5 * (negative == positive[:, None]).sum(dim=1)
    )
    return f'AUC {auc(score):.4f}, MRR {float((1 / rank).mean()):.4f}'


def auc(score: Tensor) -> float:
    positive, negative = score[:, 0].contiguous(), score[:, 1:].flatten()
    negative = negative.sort().values
    lower = torch.searchsorted(negative, positive)
    not_higher = torch.searchsorted(negative, positive, right=True)
    return float((lower + not_higher).double().mean()) / 2 / len(negative)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Predicts future edges of a temporal graph.',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add('--epochs', type=int, default=3)
    add('--batch-size', type=int, default=1024)
    add('--fanouts', type=int, nargs='+', default=[10, 3])
    add('--strategy', choices=['last', 'uniform'], default='last')
    add('--hidden', type=int, default=64)
    add('--lr', type=float, default=0.003)
    add('--max-events', type=int, default=50_000, help='trained on per epoch')
    add('--eval-events', type=int, default=5_000)
    add('--negatives', type=int, default=20, help='per event in evaluation')
    add('--seed', type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    begin = time.perf_counter()
    seed_everything(args.seed)
    data, num_dirs = load_graph()
    event = data[EVENT].edge_index
    day = data[EVENT].time
    val_day, test_day = day[int(0.8 * len(day))], day[int(0.9 * len(day))]
    splits = {
        'train': (day < val_day).nonzero().flatten(),
        'val': ((day >= val_day) & (day < test_day)).nonzero().flatten(),
        'test': (day >= test_day).nonzero().flatten(),
    }

    def make_loader(split: str, num_negatives: int) -> LinkNeighborLoader:
        index = splits[split]
        if split != 'train':
            index = index[torch.randperm(len(index))[: args.eval_events]]
        return LinkNeighborLoader(
            data,
            num_neighbors=args.fanouts,
            edge_label_index=(EVENT, event[:, index]),
            edge_label_time=day[index] - 1,  # strictly before the event
            time_attr='time',
            temporal_strategy=args.strategy,
            neg_sampling=dict(mode='triplet', amount=num_negatives),
            batch_size=args.batch_size // (1 if split == 'train' else 8),
            shuffle=split == 'train',
            seed=args.seed,
        )

    loaders = {
        'train': make_loader('train', 1),
        'val': make_loader('val', args.negatives),
        'test': make_loader('test', args.negatives),
    }
    model = TemporalSAGE(num_dirs, args.hidden, len(args.fanouts))
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    num_batches = min(
        len(loaders['train']), -(-args.max_events // args.batch_size)
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, args.epochs * num_batches
    )

    def train() -> float:
        model.train()
        total = 0.0
        for batch in islice(loaders['train'], num_batches):
            optimizer.zero_grad()
            score = model(batch)
            target = torch.zeros_like(score)
            target[:, 0] = 1
            loss = F.binary_cross_entropy_with_logits(score, target)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        return total / num_batches

    @torch.no_grad()
    def predict(split: str) -> Tensor:
        model.eval()
        return torch.cat([model(batch) for batch in loaders[split]])

    best, best_state = -1.0, model.state_dict()
    for epoch in range(1, args.epochs + 1):
        loss = train()
        score = predict('val')
        print(f'Epoch {epoch}: loss {loss:.4f}, validation {metrics(score)}'
            f' {time.perf_counter()-begin:.0f} s')
        if auc(score) > best:
            best, best_state = auc(score), copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(metrics(predict('test')))

if __name__ == '__main__':
    main()
