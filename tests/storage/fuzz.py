"""Feeds damaged graphs to all that reads them: a program, and a function.

    python tests/storage/fuzz.py [libFuzzer's options] corpus/

An input is a list of decisions: which small graph is damaged, how its
description and its chunks are, and whether checksums are set right again, so
that what lies behind them is reached. With Atheris, new code that an input
reaches leads to the next one; ``--random SECONDS`` draws inputs instead, which
an extension that is built with sanitizers needs.
"""

import contextlib
import copy
import json
import random
import resource
import sys
import tempfile
import time
import zlib
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.crc32c import block_checksums
from torch_gsample.storage.format import BLOCKS_OF_FILE, GraphMeta, seal

NUMBERS = (0, 1, -1, 2, 7, 63, 255, 512, 4096, 2**31 - 1, 2**31, 2**32)
NUMBERS += (2**47, 2**48 - 1, 2**48, 2**62, 2**63 - 1, -(2**63), -(2**31))
VALUES = (*NUMBERS, 2**64, 1e300, 0.5, True, None, '', 'x', '../x', '\0', '/')
VALUES += ('edges-0.bin', 'time-0.bin', 'meta.json', [], {}, [0], [None])


class Decisions:
    """Takes numbers from bytes; zeros when there are no more."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def number(self, below: int, size: int = 2) -> int:
        part = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(part, 'little') % max(below, 1)

    def rest(self) -> bytes:
        return self._data[self._at :]


@cache
def bases() -> list[dict[str, bytes]]:
    """The files of small graphs, in version 2 and 1 of the format."""
    small = graphs.homogeneous(12, 150)
    torch.manual_seed(0)
    kinds = [
        (small, {}),
        (disk.timed(small), {'weighted': True, 'temporal': True}),
        (disk.heterogeneous(), {'chunk_bytes': 2_000}),
    ]
    out = []
    for data, options in kinds:
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch('secrets.randbits', return_value=7),
        ):
            path = Path(folder) / 'g'
            disk.write(path, data, **{'chunk_bytes': 512, **options})
            out.append({p.name: p.read_bytes() for p in path.iterdir()})
            disk.make_first(path)
            out.append({p.name: p.read_bytes() for p in path.iterdir()})
    return out


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The paths of all values in a JSON object."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    found = [path] if path else []
    for key, item in items:
        found += places(item, (*path, key))
    return found


def damage_meta(meta: dict, decide: Decisions) -> None:
    found = places(meta)
    *way, last = found[decide.number(len(found))]
    parent = meta
    for key in way:
        parent = parent[key]
    kind = decide.number(4, 1)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[last]))
    elif kind == 2 and type(parent[last]) is int:
        parent[last] += decide.number(64, 1) - 32
    else:
        parent[last] = VALUES[decide.number(len(VALUES), 1)]


def damage_bytes(data: bytearray, decide: Decisions) -> None:
    if not data:
        return
    kind, at = decide.number(8, 1), decide.number(len(data), 3)
    if kind == 0:
        del data[at:]
    elif kind == 1:
        data += bytes(decide.number(5000))
    elif kind < 4:
        data[at] = decide.number(256, 1)
    else:
        size = 8 if kind < 6 else 4
        at -= at % size
        number = NUMBERS[decide.number(len(NUMBERS), 1)] % 2 ** (8 * size)
        data[at : at + size] = number.to_bytes(size, 'little')


def set_checksums(meta: dict, files: dict[str, bytearray]) -> None:
    """Makes checksums right, where there are any."""
    second = meta.get('version') == 2
    graph = GraphMeta([], [], [], [], [])
    with contextlib.suppress(TypeError, ValueError):
        graph.generation = int(meta.get('generation', '0'), 16) % 2**64
    with contextlib.suppress(LookupError, TypeError):
        for i, name in enumerate(meta['node_times']):
            if meta['time_checksums'][i] is not None:
                data = files[name]
                meta['time_checksums'][i] = (
                    graph.file_checksum(name, data)
                    if second
                    else zlib.crc32(data)
                )
    with contextlib.suppress(LookupError, TypeError):
        for i, relation in enumerate(meta['relations']):
            data = files[relation['file']]
            if second:
                size = 512  # that of disk.write's alignment
                data = data[: len(data) // size * size]
                table = block_checksums(
                    np.frombuffer(data, np.uint8),
                    i * BLOCKS_OF_FILE,
                    graph.generation,
                    size,
                ).tobytes()
                name = f'edges-{i}.crc'
                files[name] = bytearray(table)
                relation['checksum'] = graph.file_checksum(name, table)
                continue
            for row in relation['chunks']:
                row[6] = zlib.crc32(data[row[4] : row[4] + row[5]])


def damaged(data: bytes) -> dict[str, bytes]:
    """The files that an input stands for."""
    decide = Decisions(data)
    base = bases()[decide.number(len(bases()), 1)]
    files = {name: bytearray(text) for name, text in base.items()}
    raw, meta = decide.number(64, 1), json.loads(files.pop('meta.json'))
    if raw == 1:
        return {**files, 'meta.json': decide.rest()}
    for _ in range(decide.number(3, 1)):
        damage_meta(meta, decide)
    names = sorted(files)
    for _ in range(decide.number(6, 1)):
        damage_bytes(files[names[decide.number(len(names), 1)]], decide)
    if decide.number(4, 1) > 0 and isinstance(meta.get('relations'), list):
        set_checksums(meta, files)
    sealed = meta.pop('checksum', None) is not None
    text = seal(meta) if sealed else json.dumps(meta)
    return {**files, 'meta.json': text.encode()}


def read(path: Path) -> str:
    """Reads a graph in all ways; its errors are good ones.

    If all of it is right, samplers take it, and agree.

    Returns:
        str: ``'refused'`` when it was opened, ``'damaged'`` or ``'whole'``.
    """
    whole = True

    def may_fail(function):
        nonlocal whole
        try:
            return function()
        except (ValueError, OSError) as error:
            # An accident, as a UnicodeError, is another one of its own.
            if isinstance(error, UnicodeError) or str(path) not in str(error):
                raise AssertionError('it names no file') from error
            whole = False

    graph = may_fail(lambda: ChunkedGraph(path))
    if graph is None:
        return 'refused'
    may_fail(graph.verify)
    for relation in graph.meta.relations:
        may_fail(lambda r=relation: graph.degree_histogram(r))
    for edge_type in graph.num_edges:
        target = edge_type and edge_type[2]
        seeds = torch.arange(min(graph.num_nodes[target], 9))
        may_fail(lambda t=edge_type, s=seeds: read_matrix(graph, t, s))
        for timed in {False, any(graph.meta.node_times)}:
            time = torch.full_like(seeds, 12) if timed else None
            inputs = graphs.nodes(seeds, target, time)
            outs = [
                may_fail(
                    lambda k=kind, t=timed, i=inputs: sample(k, graph, i, t)
                )
                for kind in (RandomReadSampler, StreamingSampler)
            ]
            if whole:
                types = graph.num_edges
                permutation = None if None in types else dict.fromkeys(types)
                disk.assert_same(*outs, permutation)
    return 'whole' if whole else 'damaged'


def read_matrix(graph, edge_type, seeds):
    matrix = graph.matrix(edge_type)
    part = matrix[:, seeds]
    part.coo(), part.values(), part.edge_id
    matrix[:, seeds].individual_sample(2).coo()
    matrix.sum(dim=1)


def sample(kind, graph, inputs, timed):
    options = {'seed': 3, 'rng_scope': 'epoch', 'use_times': timed}
    sampler = kind(graph, [3, -1], **options)
    if kind is RandomReadSampler:
        return sampler.sample_from_nodes(inputs)
    try:
        sampler.prepare_epoch(inputs, 0)
        return sampler.sample_from_nodes(inputs)
    finally:
        sampler.close()


def one_input(data: bytes) -> str:
    """Reads the graph that an input stands for; see :func:`read`."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        path = Path(folder) / 'g'
        path.mkdir()
        for name, text in damaged(data).items():
            (path / name).write_bytes(text)
        return read(path)


def read_randomly(seconds: float) -> None:
    generator, end, count = random.Random(time.time_ns()), 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = generator.randbytes(generator.randrange(4, 60))
        try:
            one_input(data)
        except BaseException:
            print('input:', data.hex(), flush=True)
            raise
        count += 1
    print(count, 'inputs')


def main() -> None:
    torch.set_num_threads(1)
    bases()
    if '--random' in sys.argv:
        read_randomly(float(sys.argv[-1]))
        return
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    import atheris

    prefix = 'torch_gsample.storage'
    for name in [n for n in sys.modules if n.startswith(prefix)]:
        for item in vars(sys.modules[name]).values():
            if getattr(item, '__module__', None) == name:
                instrument(atheris, item)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


def instrument(atheris, item) -> None:
    """Makes a function, or the methods of a class, report reached lines."""
    methods = vars(item).values() if isinstance(item, type) else [item]
    for method in methods:
        if hasattr(method, '__code__'):
            method.__code__ = atheris.instrument_func(method).__code__


if __name__ == '__main__':
    main()
