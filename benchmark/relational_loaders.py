"""Batches a second of RelBench's pipeline with PyG, and of ours.

`python benchmark/relational_loaders.py` answers one question: how long does it
take from a DuckDB file to the batches of a task, and what does a model learn
of them? RelBench's `make_pkey_fkey_graph` and PyG's `NeighborLoader` on
pyg-lib read the same tables as `from_tables` and `RelationalLoader`. Both have
one thread and the same fan-outs; batches hold the same columns as
TensorFrames.

With `--strategy last` nothing is random: rows of the first batches must be
equal. The same model is trained on both, from the same weights.

It needs relbench, pytorch-frame and pyg-lib: without them it says so and ends.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import torch
from torch import Tensor, nn

NEEDED = 'relbench', 'torch_frame', 'pyg_lib'
KEYS = {'customer': 'customer', 'item': 'item'}
MANIFEST = {
    'tables': {
        'customer': {'key': 'id'},
        'item': {'key': 'id'},
        'sale': {'key': 'id', 'time': 'time', 'foreign_keys': KEYS},
    }
}
#: Sales differ in how often a customer buys, and in the last purchases.
TABLES = """
SELECT setseed(0.5);
CREATE TABLE customer AS SELECT range AS id, random()::FLOAT AS age,
    'segment ' || range % 7 AS segment FROM range({customers});
CREATE TABLE item AS SELECT range AS id, random()::FLOAT AS price,
    'kind ' || range % 20 AS kind FROM range({items});
CREATE TABLE sale AS SELECT range AS id,
    floor(pow(random(), 2) * {customers})::BIGINT AS customer,
    floor(pow(random(), 2) * {items})::BIGINT AS item,
    random()::FLOAT AS amount, 'way ' || range % 3 AS way,
    TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND AS time
FROM range({sales});
CREATE TABLE task AS SELECT t.customer, t.cutoff, count(s.id) > 0 AS label
FROM (
    SELECT range % {customers} AS customer, TIMESTAMP '2020-01-01' + INTERVAL
    ({sales} / 2 + (hash(range) % ({sales} / 2 - {horizon}))::BIGINT) SECOND
    AS cutoff FROM range({seeds})
) AS t LEFT JOIN sale AS s ON s.customer = t.customer AND s.time > t.cutoff
    AND s.time <= t.cutoff + INTERVAL {horizon} SECOND
GROUP BY t.customer, t.cutoff ORDER BY t.cutoff, t.customer;
"""


def write(path: str, sales: int, seeds: int) -> None:
    """Writes customers, items, sales, and who buys within a time."""
    sizes = {'customers': max(sales // 50, 1), 'items': max(sales // 200, 1)}
    with duckdb.connect(path) as database:
        query = TABLES.format(
            sales=sales, seeds=seeds, horizon=sales // 40, **sizes
        )
        database.execute(query)


def of_relbench(path: str, args: argparse.Namespace) -> tuple[Any, Any]:
    """Returns PyG's loader of RelBench's graph, and the statistics."""
    from relbench.base import Database, Table
    from relbench.modeling.graph import (
        AttachTargetTransform,
        make_pkey_fkey_graph,
    )
    from torch_frame import stype
    from torch_geometric.loader import NeighborLoader

    kinds = {
        'customer': {'age': stype.numerical, 'segment': stype.categorical},
        'item': {'price': stype.numerical, 'kind': stype.categorical},
        'sale': {'amount': stype.numerical, 'way': stype.categorical},
    }
    with duckdb.connect(path, read_only=True) as source:
        frames = {
            t: source.execute(f'FROM {t} ORDER BY id').df() for t in kinds
        }
        row, cutoff, label = read_task(source)
    # RelBench reads times as nanoseconds.
    frames['sale']['time'] = frames['sale']['time'].astype('datetime64[ns]')
    tables = {
        name: Table(
            frame,
            KEYS if name == 'sale' else {},
            'id',
            'time' if name == 'sale' else None,
        )
        for name, frame in frames.items()
    }
    data, stats = make_pkey_fkey_graph(Database(tables), kinds)
    loader = NeighborLoader(
        data,
        num_neighbors=args.fanouts,
        time_attr='time',
        input_nodes=('customer', row),
        input_time=cutoff,
        transform=AttachTargetTransform('customer', label),
        batch_size=args.batch_size,
        temporal_strategy=args.strategy,
    )
    return loader, stats


def of_ours(path: str, args: argparse.Namespace) -> tuple[Any, Any]:
    """Returns our loader of the same tables and task, and the statistics."""
    from torch_gsample.relational import (
        EntityTask,
        RelationalLoader,
        TensorFrames,
        from_tables,
    )

    tables = from_tables(path, MANIFEST)
    with duckdb.connect(path, read_only=True) as source:
        row, cutoff, label = read_task(source)
    frames = TensorFrames(tables)
    loader = RelationalLoader(
        tables,
        EntityTask('customer', row, cutoff * 1_000_000, label),
        args.fanouts,
        transform=frames,
        batch_size=args.batch_size,
        temporal_strategy=args.strategy,
        num_threads=1,
        prefetch=0,
        seed=0,
    )
    return loader, frames.col_stats


def read_task(source: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the rows, cutoffs in seconds and labels of the task."""
    found = source.execute(
        'SELECT customer, epoch(cutoff)::BIGINT AS cutoff, label::INT AS '
        'label FROM task ORDER BY cutoff, customer'
    ).fetchnumpy()
    row, cutoff, label = (
        torch.from_numpy(found[k]) for k in ('customer', 'cutoff', 'label')
    )
    return row.long(), cutoff.long(), label.float()


def rows_of(batch: Any) -> set[tuple[str, int, int]]:
    """Returns the rows of each seed's subgraph, by table."""
    return {
        (name, *pair)
        for name, store in batch.node_items()
        for pair in zip(store.batch.tolist(), store.n_id.tolist(), strict=True)
    }


class Model(nn.Module):
    """Sums of the last sales and their ages, and the customer's columns."""

    def __init__(self, hidden: int = 32):
        super().__init__()
        self.sale = nn.Linear(2, hidden)
        self.out = nn.Sequential(
            nn.Linear(hidden + 2, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, batch: Any, unit: int) -> Tensor:
        import torch_frame

        sale, customer = batch['sale'], batch['customer']
        numbers = sale.tf.feat_dict[torch_frame.numerical]
        cutoff = customer.seed_time
        age = (cutoff[sale.batch] - sale.time).double() / unit / 86_400
        x = torch.stack([numbers[:, 0], age.float().log1p()], 1)
        size = customer.batch_size
        total = torch.zeros(size, self.sale.out_features)
        total.index_add_(0, sale.batch, self.sale(x).relu())
        count = sale.batch.bincount(minlength=size)[:, None].float()
        own = customer.tf.feat_dict[torch_frame.numerical][:size]
        parts = [total / (count + 1), count.log1p(), own]
        return self.out(torch.cat(parts, 1)).view(-1)


def train(loader: Any, batches: int, unit: int) -> float:
    """Trains on some batches; returns the AUC of those that follow."""
    from sklearn.metrics import roc_auc_score

    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    score, label = [], []
    for i, batch in enumerate(islice(loader, batches)):
        y = batch['customer'].y
        if i < batches * 4 // 5:
            logit = model(batch, unit)
            loss = nn.functional.binary_cross_entropy_with_logits(
                logit, y.float()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                score += model(batch, unit).tolist()
            label += y.tolist()
    return float(roc_auc_score(label, score))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sales', type=int, default=1_000_000)
    parser.add_argument('--batch-size', type=int, default=512)
    parser.add_argument('--batches', type=int, default=20)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--fanouts', type=int, nargs='+', default=[128, 64])
    parser.add_argument('--strategy', default='uniform')
    args = parser.parse_args()
    missing = [n for n in NEEDED if importlib.util.find_spec(n) is None]
    if missing:
        print(f'skipped: {missing} must be installed', file=sys.stderr)
        return
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'shop.duckdb')
        write(path, args.sales, args.batch_size * args.batches)
        measure(path, args)


def measure(path: str, args: argparse.Namespace) -> None:
    """Prints the time of both from the file to a graph, and of batches."""
    loaders, used = {}, {}
    for name, make in (('RelBench and PyG', of_relbench), ('ours', of_ours)):
        start = time.process_time()
        loaders[name] = make(path, args)[0]
        used[name] = [time.process_time() - start]
    if args.strategy == 'last':
        both = zip(*(islice(x, 4) for x in loaders.values()), strict=True)
        assert all(rows_of(a) == rows_of(b) for a, b in both), 'rows differ'
        print('the same rows in the first batches')
    rows = dict.fromkeys(loaders, 0)
    for _ in range(args.rounds):
        for name, loader in loaders.items():
            start = time.process_time()
            for batch in islice(loader, args.batches):
                rows[name] += sum(s.n_id.numel() for s in batch.node_stores)
            used[name].append(time.process_time() - start)
    total = args.rounds * args.batches
    print(f'{args.sales:,} sales, batches of {args.batch_size}, fan-outs')
    print(f'{args.fanouts}, {args.strategy}; load {os.getloadavg()[0]:.1f}')
    print('                  once, s   batches a s   rows a batch     AUC')
    for unit, (name, (once, *rounds)) in zip(
        (1, 1_000_000), used.items(), strict=True
    ):
        auc = train(loaders[name], args.batches, unit)
        print(
            f'{name:17} {once:7.2f} {args.batches / min(rounds):13.2f} '
            f'{rows[name] / total:14,.0f} {auc:7.4f}'
        )
    best = [min(rounds) for _, *rounds in used.values()]
    print(f'ratio {best[0] / best[1]:.2f}, of processor time')


if __name__ == '__main__':
    main()
