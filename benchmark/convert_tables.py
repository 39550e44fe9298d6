"""Rows a second from a DuckDB file to a folder, in bounded memory.

`python benchmark/convert_tables.py` answers one question: how fast does
`convert_tables` write a table of sales with two foreign keys and their times,
and how much memory does it take? The most that the process had is printed
next to the limit that it was given.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from relational import MANIFEST, write

from torch_gsample.memory import bytes_of
from torch_gsample.relational import append_tables, convert_tables


def peak() -> float:
    """Returns the most memory of this process until now, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sales', type=int, default=1_000_000)
    parser.add_argument('--memory', default='1GiB')
    parser.add_argument('--folder', help='where; a temporary one if not given')
    args = parser.parse_args()
    limit = bytes_of(args.memory, '--memory')
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = str(Path(folder) / 'shop.duckdb')
        write(path, args.sales)
        before = peak()
        start = time.perf_counter()
        made = convert_tables(
            f'{folder}/graph', path, MANIFEST, memory_limit=limit
        )
        spent = time.perf_counter() - start
        size = sum(f.stat().st_size for f in made.path.iterdir())
        print(f'{args.sales:,} sales, 4 relations, at most {args.memory}')
        print(f'{spent:.1f} s, {args.sales / spent:,.0f} rows a second')
        print(f'{peak():,.0f} MiB at most ({before:,.0f} before)')
        print(f'{size / 2**20:,.0f} MiB on disk')
        new = Path(folder) / 'new.duckdb'
        import duckdb

        with duckdb.connect(str(new)) as database:
            database.execute(
                f'CREATE TABLE sale AS SELECT {args.sales} + range AS id, '
                f'0::BIGINT AS customer, 0::BIGINT AS item, {args.sales} + '
                'range AS time FROM range(1000)'
            )
        start = time.perf_counter()
        append_tables(f'{folder}/graph', new, memory_limit=limit)
        print(f'{time.perf_counter() - start:.1f} s to append 1,000 rows')


if __name__ == '__main__':
    main()
