"""Batches a second of RelBench's pipeline with PyG, and of ours.

`python benchmark/relational_loaders.py` answers one question: how long does it
take from a DuckDB file to the batches of a task, and what does a model learn
of them? RelBench's `make_pkey_fkey_graph` and PyG's `NeighborLoader` on
pyg-lib read the same tables as `from_tables` and `RelationalLoader`. Both have
one thread and the same fan-outs; batches hold the same columns as
TensorFrames. The loop reads of each batch what RelBench's model does, with
`--read all` everything.

`--schema shop` has three tables and four relations, `races` (as RelBench's
rel-f1) nine and 26. With `--strategy last` nothing is random: rows of the
first batches must be equal. The same model is trained on both, from the same
weights.

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
#: Tables: rows per event, foreign keys. Rows with keys have times.
SHOP = {
    'customer': (0.02, ()),
    'item': (0.005, ()),
    'sale': (1, ('customer', 'item')),
}
RACES = {
    'circuit': (0.0002, ()),
    'driver': (0.02, ()),
    'team': (0.002, ()),
    'race': (0.005, ('circuit',)),
    'result': (1, ('race', 'driver', 'team')),
    'qualifying': (0.5, ('race', 'driver', 'team')),
    'standing': (1, ('race', 'driver')),
    'team_result': (0.25, ('race', 'team')),
    'team_standing': (0.25, ('race', 'team')),
}
#: By name: tables, the table of seeds, and that of events.
SCHEMAS = {
    'shop': (SHOP, 'customer', 'sale'),
    'races': (RACES, 'driver', 'result'),
}
#: Rows differ in how often others refer to them, and in their last events.
TABLE = """
CREATE TABLE {table} AS SELECT range AS id, random()::FLOAT AS number,
    'kind ' || range % 7 AS kind{keys}{time} FROM range({rows});
"""
KEY = ', floor(pow(random(), 2) * {rows})::BIGINT AS {table}'
TIME = """, TIMESTAMP '2020-01-01'
    + INTERVAL (range * {events} // {rows}) SECOND AS time"""
TASK = """
CREATE TABLE task AS SELECT t.entity, t.cutoff, count(s.id) > 0 AS label
FROM (
    SELECT range % {entities} AS entity, TIMESTAMP '2020-01-01' + INTERVAL
    ({events} / 2 + (hash(range) % ({events} / 2 - {horizon}))::BIGINT) SECOND
    AS cutoff FROM range({seeds})
) AS t LEFT JOIN {event} AS s ON s.{entity} = t.entity AND s.time > t.cutoff
    AND s.time <= t.cutoff + INTERVAL {horizon} SECOND
GROUP BY t.entity, t.cutoff ORDER BY t.cutoff, t.entity;
"""


def write(path: str, schema: str, events: int, seeds: int) -> None:
    """Writes the tables, and which rows have an event within a time."""
    tables, entity, event = SCHEMAS[schema]
    rows = {t: max(int(events * part), 1) for t, (part, _) in tables.items()}
    with duckdb.connect(path) as database:
        database.execute('SELECT setseed(0.5)')
        for table, (_, keys) in tables.items():
            columns = [KEY.format(table=k, rows=rows[k]) for k in keys]
            time = TIME.format(events=events, rows=rows[table])
            query = TABLE.format(
                table=table,
                keys=''.join(columns),
                time=time if keys else '',
                rows=rows[table],
            )
            database.execute(query)
        query = TASK.format(
            entities=rows[entity],
            entity=entity,
            event=event,
            events=events,
            horizon=events // 40,
            seeds=seeds,
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

    schema, entity, _ = SCHEMAS[args.schema]
    columns = {'number': stype.numerical, 'kind': stype.categorical}
    tables = {}
    with duckdb.connect(path, read_only=True) as source:
        for name, (_, keys) in schema.items():
            frame = source.execute(f'FROM {name} ORDER BY id').df()
            if keys:  # RelBench reads times as nanoseconds
                frame['time'] = frame['time'].astype('datetime64[ns]')
            to = {key: key for key in keys}
            time = 'time' if keys else None
            tables[name] = Table(frame, to, 'id', time)
        row, cutoff, label = read_task(source)
    data, stats = make_pkey_fkey_graph(
        Database(tables), {name: dict(columns) for name in schema}
    )
    loader = NeighborLoader(
        data,
        num_neighbors=args.fanouts,
        time_attr='time',
        input_nodes=(entity, row),
        input_time=cutoff,
        transform=AttachTargetTransform(entity, label),
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

    schema, entity, _ = SCHEMAS[args.schema]
    manifest = {
        name: {'key': 'id', 'foreign_keys': {key: key for key in keys}}
        | ({'time': 'time'} if keys else {})
        for name, (_, keys) in schema.items()
    }
    tables = from_tables(path, {'tables': manifest})
    with duckdb.connect(path, read_only=True) as source:
        row, cutoff, label = read_task(source)
    frames = TensorFrames(tables)
    loader = RelationalLoader(
        tables,
        EntityTask(entity, row, cutoff * 1_000_000, label),
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
        'SELECT entity, epoch(cutoff)::BIGINT AS cutoff, label::INT AS '
        'label FROM task ORDER BY cutoff, entity'
    ).fetchnumpy()
    row, cutoff, label = (
        torch.from_numpy(found[k]) for k in ('entity', 'cutoff', 'label')
    )
    return row.long(), cutoff.long(), label.float()


def read(batch: Any, everything: bool) -> int:
    """Reads what RelBench's model reads of a batch; returns its rows."""
    names = 'tf', 'time', 'batch', 'edge_index', 'seed_time', 'y', 'n_id'
    for store in batch.stores:
        for name in [*store] if everything else names:
            store.get(name)
    return sum(store.n_id.numel() for store in batch.node_stores)


def rows_of(batch: Any) -> set[tuple[str, int, int]]:
    """Returns the rows of each seed's subgraph, by table."""
    return {
        (name, *pair)
        for name, store in batch.node_items()
        for pair in zip(store.batch.tolist(), store.n_id.tolist(), strict=True)
    }


class Model(nn.Module):
    """Sums of the last events and their ages, and the seed's columns."""

    def __init__(self, entity: str, event: str, hidden: int = 32):
        super().__init__()
        self.entity, self.event = entity, event
        self.last = nn.Linear(2, hidden)
        self.out = nn.Sequential(
            nn.Linear(hidden + 2, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, batch: Any, unit: int) -> Tensor:
        import torch_frame

        event, seed = batch[self.event], batch[self.entity]
        numbers = event.tf.feat_dict[torch_frame.numerical]
        cutoff = seed.seed_time
        age = (cutoff[event.batch] - event.time).double() / unit / 86_400
        x = torch.stack([numbers[:, 0], age.float().log1p()], 1)
        size = seed.batch_size
        total = torch.zeros(size, self.last.out_features)
        total.index_add_(0, event.batch, self.last(x).relu())
        count = event.batch.bincount(minlength=size)[:, None].float()
        own = seed.tf.feat_dict[torch_frame.numerical][:size]
        parts = [total / (count + 1), count.log1p(), own]
        return self.out(torch.cat(parts, 1)).view(-1)


def train(loader: Any, schema: str, batches: int, unit: int) -> float:
    """Trains on some batches; returns the AUC of those that follow."""
    from sklearn.metrics import roc_auc_score

    torch.manual_seed(0)
    _, entity, event = SCHEMAS[schema]
    model = Model(entity, event)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    score, label = [], []
    for i, batch in enumerate(islice(loader, batches)):
        y = batch[entity].y
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
    parser.add_argument('--schema', choices=[*SCHEMAS], default='shop')
    parser.add_argument('--events', type=int, default=1_000_000)
    parser.add_argument('--batch-size', type=int, default=512)
    parser.add_argument('--batches', type=int, default=20)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--fanouts', type=int, nargs='+', default=[128, 64])
    parser.add_argument('--strategy', default='uniform')
    parser.add_argument('--read', choices=['model', 'all'], default='model')
    args = parser.parse_args()
    missing = [n for n in NEEDED if importlib.util.find_spec(n) is None]
    if missing:
        print(f'skipped: {missing} must be installed', file=sys.stderr)
        return
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'tables.duckdb')
        seeds = args.batch_size * args.batches
        write(path, args.schema, args.events, seeds)
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
                rows[name] += read(batch, args.read == 'all')
            used[name].append(time.process_time() - start)
    total = args.rounds * args.batches
    print(
        f'{args.schema}, {args.events:,} events, batches of {args.batch_size}'
    )
    print(f'{args.fanouts}, {args.strategy}; load {os.getloadavg()[0]:.1f}')
    print('                  once, s   batches a s   rows a batch     AUC')
    for unit, (name, (once, *rounds)) in zip(
        (1, 1_000_000), used.items(), strict=True
    ):
        auc = train(loaders[name], args.schema, args.batches, unit)
        print(
            f'{name:17} {once:7.2f} {args.batches / min(rounds):13.2f} '
            f'{rows[name] / total:14,.0f} {auc:7.4f}'
        )
    best = [min(rounds) for _, *rounds in used.values()]
    print(f'ratio {best[0] / best[1]:.2f}, of processor time')


if __name__ == '__main__':
    main()
