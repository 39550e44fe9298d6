"""Predicts which file of GCC a person changes next, from the past only.

Each event (person, file, day) is ranked among events of the same person and
day with files drawn at random. A sample around an event of day ``t`` has edges
of earlier days alone: as the sampler reads edges up to and including the time
of a seed, that time is ``t - 1``. The first 80 % of all events are trained on,
the next 10 % choose the epoch, and the last 10 % are the test.

Compared are samples of the last events, uniform ones, as ``NeighborLoader``
draws them by default, and counts of earlier events.
"""

import argparse

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from runner import Method, arguments, auc, compare
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.utils import scatter

from torch_gsample.datasets import GccChangelog
from torch_gsample.loader import LinkNeighborLoader

EVENT = ('person', 'changed', 'file')
REVERSE = ('file', 'rev_changed', 'person')
FANOUTS = [10, 3]
DEPTH = 4  # directories that a file is described by


class TemporalSAGE(nn.Module):
    """GraphSAGE whose messages know how long ago their event was.

    A file starts from the directories that it lies in, a person from nothing:
    both can be new.

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
            nn.ModuleDict(
                {t: nn.Linear(2 * hidden, hidden) for t in ('person', 'file')}
            )
            for _ in range(num_hops)
        )
        self.score = nn.Sequential(
            nn.Linear(3 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, batch: HeteroData) -> Tensor:
        """Returns scores ``[batch_size, 1 + num_negatives]``, those of the
        events first.
        """
        h = {'file': self.directory(batch['file'].x).sum(dim=1)}
        h['person'] = h['file'].new_zeros(
            batch['person'].num_nodes, h['file'].size(1)
        )
        for i, layer in enumerate(self.layers):
            # The last hop is needed by the first layer only, and so on.
            hops = len(self.layers) - i
            out = {}
            for src, relation, dst in (EVENT, REVERSE):
                target = h[dst][: sum(batch[dst].num_sampled_nodes[:hops])]
                edges = batch[src, relation, dst]
                num_edges = sum(edges.num_sampled_edges[:hops])
                row, col = edges.edge_index[:, :num_edges]
                # Each event has trees of its own, which `batch` numbers.
                now = batch[dst].seed_time[batch[dst].batch[col]]
                days = now - edges.time[:num_edges]
                message = h[src][row] + self.age((days + 1).log2().long())
                mean = scatter(message, col, 0, len(target), reduce='mean')
                update = layer[dst](torch.cat([target, mean], dim=1))
                out[dst] = target + update.relu()
            h = out
        file = h['file'][candidates(batch)]
        person = h['person'][batch['person'].src_index, None].expand_as(file)
        return self.score(torch.cat([person, file, person * file], 2))[..., 0]


def candidates(batch: HeteroData) -> Tensor:
    """Returns local ids of each event's file and of its negatives."""
    true, negative = batch['file'].dst_pos_index, batch['file'].dst_neg_index
    return torch.cat([true[:, None], negative.view(len(true), -1)], dim=1)


def load_graph() -> tuple[HeteroData, int]:
    """Returns the graph and the number of directories.

    Files have the ids of the first directories of their path, 0 for none.
    """
    dataset = GccChangelog(pre_transform=T.ToUndirected())
    data = dataset[0]
    ids = {'': 0}
    x = torch.zeros(data['file'].num_nodes, DEPTH, dtype=torch.int64)
    for i, name in enumerate(dataset.file_names):
        parts = name.split('/')[:-1][:DEPTH]
        for depth in range(len(parts)):
            path = '/'.join(parts[: depth + 1])
            x[i, depth] = ids.setdefault(path, len(ids))
    data['file'].x = x
    return data, len(ids)


class Heuristics:
    """Scores an event by how many like it happened on earlier days.

    Args:
        data (HeteroData): The graph.
    """

    def __init__(self, data: HeteroData):
        # A directory's id is larger than those of the ones it lies in.
        self.directory = data['file'].x.max(dim=1).values
        self.day_end = int(data[EVENT].time.max()) + 1
        self.past = {
            name: (key * self.day_end + data[EVENT].time).sort().values
            for name, key in self.keys(*data[EVENT].edge_index).items()
        }

    def keys(self, person: Tensor, file: Tensor) -> dict[str, Tensor]:
        """Returns numbers that are equal for events that are alike."""
        return {
            'same file': file,
            'same person and file': (person << 32) + file,
            'same person and directory': (person << 32) + self.directory[file],
        }

    def __call__(self, batch: HeteroData) -> dict[str, Tensor]:
        """Returns a score of each heuristic for each candidate."""
        file = batch['file'].n_id[candidates(batch)]
        person = batch['person'].n_id[batch['person'].src_index, None]
        day = batch['person'].seed_time[:, None] + 1
        scores = {}
        for name, key in self.keys(person, file).items():
            first, past = key * self.day_end, self.past[name]
            scores[name] = torch.searchsorted(past, first + day)
            scores[name] -= torch.searchsorted(past, first)
        return scores


def make_loader(
    data: HeteroData,
    split: str,
    days: tuple[int, int],
    strategy: str,
    args: argparse.Namespace,
) -> LinkNeighborLoader:
    """Returns the loader of the events of ``days[0] <= day < days[1]``."""
    train, day = split == 'train', data[EVENT].time
    events = ((day >= days[0]) & (day < days[1])).nonzero().flatten()
    if not train:
        events = events[torch.randperm(len(events))[: args.eval_events]]
    return LinkNeighborLoader(
        data,
        num_neighbors=FANOUTS,
        edge_label_index=(EVENT, data[EVENT].edge_index[:, events]),
        edge_label_time=day[events] - 1,  # what happens that day is not known
        time_attr='time',
        temporal_strategy=strategy,
        neg_sampling={
            'mode': 'triplet',
            'amount': 1 if train else args.negatives,
        },
        batch_size=args.batch_size if train else args.batch_size // 8,
        shuffle=train,
        seed=args.seed,
    )


def loss_of(score: Tensor) -> Tensor:
    """Returns the loss of scores ``[batch_size, 1 + num_negatives]``."""
    target = torch.zeros_like(score)
    target[:, 0] = 1
    return F.binary_cross_entropy_with_logits(score, target)


def auc_of(scores: list[Tensor]) -> float:
    """Returns the area under the curve of the batches' scores."""
    score = torch.cat(scores)
    return auc(score[:, 0], score[:, 1:].flatten())


def main() -> None:
    args = arguments(eval_events=5000, negatives=20)
    data, num_dirs = load_graph()
    day = data[EVENT].time  # ascending
    first, val, test = (int(day[int(q * len(day))]) for q in (0, 0.8, 0.9))
    days = {
        'train': (first, val),
        'val': (val, test),
        'test': (test, int(day[-1]) + 1),
    }
    heuristics = Heuristics(data)

    def method(strategy: str) -> Method:
        loaders = {
            split: make_loader(data, split, days[split], strategy, args)
            for split in days
        }
        model = TemporalSAGE(num_dirs, args.hidden, len(FANOUTS))
        return Method(
            f'TemporalSAGE, {strategy}',
            loaders['train'],
            model,
            lambda batch: loss_of(model(batch)),
            lambda split: auc_of([model(batch) for batch in loaders[split]]),
            optimizer=torch.optim.Adam(model.parameters(), 0.003),
        )

    batches = list(make_loader(data, 'test', days['test'], 'last', args))
    scores = [heuristics(batch) for batch in batches]
    known = {
        name: auc_of([score[name] for score in scores]) for name in scores[0]
    }
    compare(map(method, ('uniform', 'last')), args, 'AUC', known)


if __name__ == '__main__':
    main()
