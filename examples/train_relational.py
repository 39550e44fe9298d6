"""From SQL to a metric: will a Debian package be updated in half a year?

Tables in DuckDB come in: source packages, persons and dated uploads. SQL makes
the task, a row for each source and quarter; batches hold what was known then;
a GNN over uploads and those who made them learns it. Gradient boosting on flat
features that SQL counts and the share of updates are printed for comparison.

The rules against leaks:
- a row is in a batch only if it is earlier than its seed (checked each time);
- the label looks 182 days ahead, and labels of one split end before the next
  begins, so that no training label tells of the time of a test;
- flat features count uploads before the seed only;
- tables without times (`package`, `dependency`) are of 2026: left out;
- nothing after the freeze of Debian 12 is predicted: uploads to its successor
  are in no changelog of it.
"""

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import duckdb
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import HeteroData
from torch_geometric.nn.aggr import MultiAggregation

from torch_gsample.datasets import write_debian_database
from torch_gsample.relational import (
    EntityTask,
    RelationalData,
    RelationalLoader,
    from_tables,
)

MANIFEST = {
    'tables': {
        'source': {'key': 'name'},
        'person': {'key': 'id'},
        'upload': {
            'key': 'id',
            'time': 'time',
            'foreign_keys': {'source': 'source', 'person': 'person'},
        },
    }
}
#: First and last quarter of each split.
SPLITS = {
    'train': ('2008-01-01', '2020-04-01'),
    'val': ('2020-10-01', '2021-01-01'),
    'test': ('2021-10-01', '2022-07-01'),
}
TASK = """
CREATE TEMP TABLE task AS
WITH first AS (SELECT source, min(time) AS born FROM upload GROUP BY source),
quarter AS (
    SELECT unnest(range(TIMESTAMP '{}', TIMESTAMP '{} 00:00:01',
                        INTERVAL 3 MONTH)) AS cutoff
)
SELECT f.source, q.cutoff, coalesce(bool_or(
    u.time > q.cutoff AND u.time <= q.cutoff + INTERVAL 182 DAY
), false) AS updated
FROM first AS f JOIN quarter AS q ON f.born < q.cutoff
LEFT JOIN upload AS u ON u.source = f.source
GROUP BY f.source, q.cutoff ORDER BY q.cutoff, f.source
"""
FLAT = """
SELECT date_diff('day', max(u.time), t.cutoff),
    date_diff('day', min(u.time), t.cutoff),
    count(*), count(*) FILTER (u.time > t.cutoff - INTERVAL 1 YEAR),
    count(*) FILTER (u.time > t.cutoff - INTERVAL 3 MONTH),
    count(DISTINCT u.person), avg(u.changes), avg(u.closes),
    avg((u.kind = 'team')::INT), avg((u.kind = 'nmu')::INT),
    avg((u.urgency = 'high')::INT), month(t.cutoff)
FROM task AS t JOIN upload AS u ON u.source = t.source AND u.time < t.cutoff
GROUP BY t.cutoff, t.source ORDER BY t.cutoff, t.source
"""
DAY = 86_400_000_000  # microseconds


#: Over how many days the weight of an upload falls to a third.
DAYS = 30.0, 91.0, 182.0, 365.0, 730.0, 1461.0


class Gather(nn.Module):
    """Mean, largest and sum of what is learned of the rows that refer."""

    def __init__(self, hidden: int):
        super().__init__()
        self.message = nn.Linear(hidden, hidden)
        self.aggregation = MultiAggregation(['mean', 'max', 'sum'])
        self.out = nn.Linear(3 * hidden, hidden)

    def forward(self, x: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
        message = self.message(x).relu()[edge_index[0]]
        found = self.aggregation(message, edge_index[1], dim_size=num_nodes)
        return self.out(found.log1p()).relu()  # sums grow with the history


class GNN(nn.Module):
    """Uploads know their source and person, sources their uploads.

    What an upload tells depends on its age at the time of the seed, so its
    columns are weights that decay with age: their sums are counts of uploads
    in the last month, quarter and years, without their sharp ends.
    """

    def __init__(self, tables: RelationalData, hidden: int):
        super().__init__()
        kinds = tables.values['upload'].categories.values()
        sizes = [len(values) + 1 for values in kinds]
        self.categories = nn.ModuleList(nn.Embedding(n, 4) for n in sizes)
        self.register_buffer('days', torch.tensor(DAYS))
        width = 3 + len(DAYS) + 4 * len(sizes)
        self.uploads = nn.Linear(width, hidden)
        self.persons, self.histories = Gather(hidden), Gather(hidden)
        self.joined = nn.Linear(3 * hidden, hidden)
        self.sources = Gather(hidden)
        self.month = nn.Embedding(12, 4)  # of the seed
        self.out = nn.Sequential(
            nn.Dropout(0.3), nn.Linear(hidden + 4, hidden), nn.ReLU(),
            nn.Dropout(0.3), nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, batch: HeteroData) -> Tensor:
        upload, edges = batch['upload'], batch.edge_index_dict
        seed_time = batch['source'].seed_time
        age = ((seed_time[upload.batch] - upload.time).double() / DAY).float()
        columns = [upload.num.log1p(), age.log1p()[:, None] / 4]
        columns.append(torch.exp(-age[:, None] / self.days))
        for embed, code in zip(self.categories, upload.cat.T, strict=True):
            columns.append(embed(code + 1))
        x = self.uploads(torch.cat(columns, 1)).relu()
        parts = [x]
        for table, gather in (
            ('person', self.persons), ('source', self.histories)
        ):  # fmt: skip
            size = batch[table].num_nodes
            found = gather(x, edges['upload', table, table], size)
            # A row refers once: each upload gets that of its row, or none.
            row, col = edges[table, f'rev_{table}', 'upload']
            parts.append(torch.zeros_like(x).index_add(0, col, found[row]))
        x = self.joined(torch.cat(parts, 1)).relu()
        own = edges['upload', 'source', 'source']
        x = self.sources(x, own, batch['source'].num_nodes)
        month = (seed_time / (DAY * 365.2425 / 12)).long() % 12
        seeds = batch['source'].batch_size
        return self.out(torch.cat([x[:seeds], self.month(month)], 1))[:, 0]


def make_tasks(
    path: str, tables: RelationalData
) -> dict[str, tuple[EntityTask, np.ndarray]]:
    """Returns rows, times, labels and flat features of each split."""
    out = {}
    for split, ends in SPLITS.items():
        with duckdb.connect(path, read_only=True) as database:
            database.execute(TASK.format(*ends))
            rows = database.execute(
                'SELECT source, epoch_us(cutoff), updated FROM task '
                'ORDER BY cutoff, source'
            ).fetchall()
            flat = np.array(database.execute(FLAT).fetchall(), np.float32)
        names, times, labels = zip(*rows, strict=True)
        task = EntityTask(
            'source',
            tables.rows_of('source', list(names)),
            torch.tensor(times),
            torch.tensor(labels).float(),
        )
        out[split] = task, flat
    return out


def auroc(score: Tensor, label: Tensor) -> float:
    """The share of pairs that are in the right order; ties count half."""
    values, inverse = score.unique(return_inverse=True)
    count = inverse.bincount(minlength=len(values))
    last = count.cumsum(0).double()
    rank = (last - (count - 1) / 2)[inverse]
    positive = label.sum().double()
    above = rank[label > 0].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(label) - positive)))


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: RelationalLoader, most: int | None
) -> float:
    model.eval()
    scores, labels = [], []
    for batch in islice(loader, most):
        scores.append(model(batch))
        labels.append(batch['source'].y)
    return auroc(torch.cat(scores), torch.cat(labels))


def boosted(tasks: dict[str, tuple[EntityTask, np.ndarray]]) -> float | None:
    """Returns what gradient boosting reaches on flat features."""
    try:
        import lightgbm
    except ImportError:
        return None
    (train, x), (test, x_test) = tasks['train'], tasks['test']
    options = {
        'objective': 'binary', 'learning_rate': 0.03, 'num_leaves': 15,
        'verbose': -1, 'seed': 0, 'num_threads': 1, 'deterministic': True,
    }  # fmt: skip
    data = lightgbm.Dataset(x, train.label.numpy())
    score = lightgbm.train(options, data, 200).predict(x_test)
    return auroc(torch.from_numpy(score), test.label)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=128)
    parser.add_argument('--max-batches', type=int, help='of an epoch')
    parser.add_argument('--hidden', type=int, default=32)
    parser.add_argument('--seed', type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    seed_everything(args.seed)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'debian.duckdb')
        write_debian_database(path)
        tables = from_tables(path, MANIFEST)
        tasks = make_tasks(path, tables)
    loaders = {
        split: RelationalLoader(
            tables, task, [-1, 1, 16], batch_size=args.batch_size,
            shuffle=split == 'train', seed=args.seed, check_times=True,
            temporal_strategy='last', time_inclusive='left',
        )
        for split, (task, _) in tasks.items()
    }  # fmt: skip
    model = GNN(tables, args.hidden)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=2e-3, weight_decay=0.05
    )
    steps = args.epochs * min(
        len(loaders['train']), args.max_batches or len(loaders['train'])
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    for epoch in range(args.epochs):
        model.train()
        for batch in islice(loaders['train'], args.max_batches):
            optimizer.zero_grad()
            label = batch['source'].y
            loss = F.binary_cross_entropy_with_logits(model(batch), label)
            loss.backward()
            optimizer.step()
            schedule.step()
        val = evaluate(model, loaders['val'], args.max_batches)
        print(f'epoch {epoch}: AUC of validation {val:.3f}')
    test = tasks['test'][0]
    print(f'{len(test.row)} rows of the test, updated {test.label.mean():.3f}')
    flat = boosted(tasks)
    shown = 'not installed' if flat is None else f'{flat:.3f}'
    print(f'AUC of the test: LightGBM on flat features {shown}')
    reached = evaluate(model, loaders['test'], args.max_batches)
    print(f'AUC of the test: GNN {reached:.3f}')
    print(f'{time.perf_counter() - start:.0f} s')


if __name__ == '__main__':
    main()
