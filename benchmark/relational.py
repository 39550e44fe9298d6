"""Contexts per second from one DuckDB file: our sampler compared with SQL.

`python benchmark/relational.py` measures the time to find the last k rows that
refer to a row, before a time, two hops deep, for a batch of seeds. The SQL
uses one join per hop: the seeds in a table, a lateral join ranked by time for
each hop, indexes on both keys, DuckDB on as many threads as ours. Both read
the same file and must return the same rows.

One-time work is shown, too: ours reads the graph from the file, SQL copies the
table to memory (faster for it than the file) and creates its indexes.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import torch

from torch_gsample import NeighborSampler
from torch_gsample.relational import from_tables

MANIFEST = {
    'tables': {
        'customer': {'key': 'id'},
        'item': {'key': 'id'},
        'sale': {
            'key': 'id',
            'time': 'time',
            'foreign_keys': {'customer': 'customer', 'item': 'item'},
        },
    }
}
#: Sales of a customer, then of their items, before the seed's time.
FIRST = """
CREATE OR REPLACE TEMP TABLE hop AS
SELECT s.seed, s.cutoff, u.id, u.item FROM seeds AS s, LATERAL (
    SELECT id, item FROM sale WHERE customer = s.row AND time < s.cutoff
    ORDER BY time DESC, id DESC LIMIT {k}
) AS u
"""
SECOND = """
SELECT h.seed, u.id FROM (SELECT DISTINCT seed, cutoff, item FROM hop) AS h,
LATERAL (
    SELECT id FROM sale WHERE item = h.item AND time < h.cutoff
    ORDER BY time DESC, id DESC LIMIT {k}
) AS u
UNION SELECT seed, id FROM hop
"""


def write(path: str, sales: int) -> None:
    """Writes customers, items and their sales: both degrees are skewed."""
    with duckdb.connect(path) as database:
        database.execute('SELECT setseed(0.5)')
        customers, items = max(sales // 50, 1), max(sales // 200, 1)
        for table, count in (('customer', customers), ('item', items)):
            database.execute(
                f'CREATE TABLE {table} AS SELECT range AS id FROM '
                f'range({count})'
            )
        database.execute(
            'CREATE TABLE sale AS SELECT range AS id, '
            f'floor(pow(random(), 2) * {customers})::BIGINT AS customer, '
            f'floor(pow(random(), 2) * {items})::BIGINT AS item, '
            f'range AS time FROM range({sales})'
        )


def run(batches: list, find: Callable, rows: Callable, compared: int) -> tuple:
    """Returns the time of batches, and the rows of the first ones.

    The rest of the batches is dropped, as a training loop drops them.
    """
    spent, sets = 0.0, list[set[tuple[int, int]]]()
    for customer, at in batches:
        start = time.perf_counter()
        found = find(customer, at)
        spent += time.perf_counter() - start
        if len(sets) < compared:
            sets.append(set(zip(*rows(found), strict=True)))
    return spent, sets


def by_sql(path: str, batches: list, k: int, threads: int) -> tuple:
    """Returns the time of indexes, the time of batches, and their rows."""
    database = duckdb.connect(config={'threads': threads})
    database.execute(f"ATTACH '{path}' AS source (READ_ONLY)")
    start = time.perf_counter()
    database.execute('CREATE TABLE sale AS FROM source.sale ORDER BY id')
    for key in ('customer', 'item'):
        database.execute(f'CREATE INDEX by_{key} ON sale ({key})')
    ready = time.perf_counter() - start

    def find(customer: torch.Tensor, at: torch.Tensor) -> dict:
        values = enumerate(zip(customer.tolist(), at.tolist(), strict=True))
        values_sql = ', '.join(f'({i}, {c}, {t})' for i, (c, t) in values)
        database.execute(
            'CREATE OR REPLACE TEMP TABLE seeds(seed BIGINT, row BIGINT, '
            f'cutoff BIGINT); INSERT INTO seeds VALUES {values_sql}'
        )
        database.execute(FIRST.format(k=k))
        return database.execute(SECOND.format(k=k)).fetchnumpy()

    def rows(found: dict) -> tuple:
        return found['seed'].tolist(), found['id'].tolist()

    spent, sets = run(batches, find, rows, len(batches))
    database.close()
    return ready, spent, sets


def by_sampler(
    path: str, batches: list, k: int, threads: int, compared: int
) -> tuple:
    """Returns the time of reading, the time of batches, and their rows."""
    start = time.perf_counter()
    tables = from_tables(path, MANIFEST)
    sales = ('sale', 'customer', 'customer'), ('sale', 'item', 'item')
    fanouts = {t: [0, 0, 0] for t in tables.data.edge_types}
    fanouts[sales[0]] = [k, 0, 0]
    fanouts['item', 'rev_item', 'sale'] = [0, 1, 0]
    fanouts[sales[1]] = [0, 0, k]
    sampler = NeighborSampler(
        tables.data,
        fanouts,
        time_attr='time',
        temporal_strategy='last',
        time_inclusive='left',
        num_threads=threads,
        seed=0,
    )
    ready = time.perf_counter() - start

    def find(customer: torch.Tensor, at: torch.Tensor) -> Any:
        return sampler.tensors({'customer': customer}, {'customer': at})

    def rows(found: Any) -> tuple:
        return found.batch['sale'].tolist(), found.node['sale'].tolist()

    return ready, *run(batches, find, rows, compared)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sales', type=int, default=1_000_000)
    parser.add_argument('--batch-size', type=int, default=512)
    parser.add_argument('--batches', type=int, default=4)
    parser.add_argument('--ours', type=int, default=100, help='batches')
    parser.add_argument('--k', type=int, default=16)
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    generator = torch.Generator().manual_seed(0)
    customers = max(args.sales // 50, 1)
    batches = [
        (
            torch.randint(customers, (args.batch_size,), generator=generator),
            torch.randint(args.sales, (args.batch_size,), generator=generator),
        )
        for _ in range(max(args.ours, args.batches))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'shop.duckdb')
        write(path, args.sales)
        sql = by_sql(path, batches[: args.batches], args.k, args.threads)
        ours = by_sampler(
            path,
            batches[: args.ours],
            args.k,
            args.threads,
            compared=args.batches,
        )
    pairs = zip(sql[2], ours[2], strict=False)
    assert all(a == b for a, b in pairs), 'both must return the same rows'
    rates = [
        args.batch_size * args.batches / sql[1],
        args.batch_size * args.ours / ours[1],
    ]
    print(f'{args.sales:,} sales, batches of {args.batch_size}, last {args.k}')
    print('                  once, s   contexts a second')
    for name, ready, rate in zip(
        ('SQL, a join a hop', 'torch_gsample'),
        (sql[0], ours[0]),
        rates,
        strict=True,
    ):
        print(f'{name:17} {ready:8.2f} {rate:19,.0f}')
    print(f'ratio {rates[1] / rates[0]:.0f}, the same rows in all batches')


if __name__ == '__main__':
    main()
