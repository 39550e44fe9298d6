"""Rows per second from a DuckDB file to a folder, in bounded memory.

`python benchmark/convert_tables.py` measures the time and memory of
`convert_tables` for a table of sales with two foreign keys and their times.
The peak memory of the process is printed next to its limit. With `--whole` the
limit applies to the whole process, which runs under RLIMIT_DATA: the system
refuses memory beyond it plus `--spare`, which is for reserved, unused
addresses.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from relational import MANIFEST, write

from torch_gsample.memory import bytes_of
from torch_gsample.relational import (
    append_tables,
    compact_tables,
    convert_tables,
)


def peak() -> float:
    """Returns the most memory of this process since the reset, in MiB."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith('VmHWM:'):
            return int(line.split()[1]) / 1024
    raise OSError('/proc/self/status must have VmHWM')


def reset_peak() -> None:
    """Makes the current memory the most until now."""
    Path('/proc/self/clear_refs').write_text('5')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sales', type=int, default=1_000_000)
    parser.add_argument('--memory', default='1GiB')
    parser.add_argument('--folder', help='where; a temporary one if not given')
    parser.add_argument('--source', help='a database that is there already')
    parser.add_argument('--whole', action='store_true')
    parser.add_argument('--spare', default='512MiB')
    args = parser.parse_args()
    limit = bytes_of(args.memory, '--memory')
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = args.source or str(Path(folder) / 'shop.duckdb')
        if args.source is None:
            write(path, args.sales)
        allowed = resource.getrlimit(resource.RLIMIT_DATA)
        if args.whole:
            most = limit + bytes_of(args.spare, '--spare')
            resource.setrlimit(resource.RLIMIT_DATA, (most, allowed[1]))
        before, load = peak(), os.getloadavg()[0]
        start, used = time.perf_counter(), time.process_time()
        made = convert_tables(
            f'{folder}/graph',
            path,
            MANIFEST,
            memory_limit=limit,
            whole_process=args.whole,
        )
        spent = time.perf_counter() - start
        used = time.process_time() - used
        resource.setrlimit(resource.RLIMIT_DATA, allowed)
        print(f'load {load:.1f} to {os.getloadavg()[0]:.1f}')
        size = sum(f.stat().st_size for f in made.path.iterdir())
        del made  # has the times of rows in memory
        print(f'{args.sales:,} sales, 4 relations, at most {args.memory}')
        print(f'{spent:.1f} s, {args.sales / spent:,.0f} rows a second')
        print(f'{used:.1f} s of processors, {args.sales / used:,.0f} rows a s')
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
        print(f'{peak():,.0f} MiB at most, until then')
        reset_peak()
        start, used = time.perf_counter(), time.process_time()
        compact_tables(
            f'{folder}/graph', memory_limit=limit, whole_process=args.whole
        )
        spent, used = time.perf_counter() - start, time.process_time() - used
        print(f'{spent:.1f} s to compact, {used:.1f} s of processors')
        print(f'{peak():,.0f} MiB at most, while compacting')


if __name__ == '__main__':
    main()
