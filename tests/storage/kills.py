"""Kills writers and readers at random moments, and checks their files.

    python -m tests.storage.kills [KILLS] [KIND ...]

A process works in a folder and is killed (SIGKILL) at a moment that is drawn
from the time that it takes. The next one must find a complete result or none,
return what it would in an empty folder, and leave nothing else.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch_geometric.nn import GraphSAGE
from torch_geometric.sampler import NodeSamplerInput

from torch_gsample.owned_folder import remove_leftovers
from torch_gsample.relational import (
    TableFolder,
    append_tables,
    convert_tables,
)
from torch_gsample.storage import (
    ChunkedGraph,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
    infer,
)

NODES = 2_000
EDGES = torch.arange(80_000).mul(7_919).remainder(NODES).view(2, -1)
SEEDS = torch.arange(0, NODES, 3)


def write_graph(folder: Path) -> torch.Tensor:
    """Writes a graph to two directories, unless it is there."""
    path, more = folder / 'out', folder / 'more'
    if path.exists():
        graph = ChunkedGraph(path)
    else:
        options = {'chunk_bytes': 1 << 14, 'directories': [more]}
        graph = ChunkedGraph.write(path, EDGES, **options)
    graph.verify()
    sampler = RandomReadSampler(graph, [-1], seed=0)
    return sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS)).row


def write_features(folder: Path) -> torch.Tensor:
    """Writes a feature file, unless it is there."""
    path = folder / 'out'
    if path.exists():
        file = FeatureFile(path)
    else:
        x = torch.arange(400_000.0).view(-1, 20)
        file = FeatureFile.write(path, [*x.split(1_000)])
    file.verify()
    return file[:]


def sample_epoch(folder: Path) -> torch.Tensor:
    """Prepares an epoch with results on disk."""
    graph = ChunkedGraph(folder.parent / 'graph')
    options = {'seed': 0, 'memory_limit': 1 << 18, 'spill_dir': folder}
    sampler = StreamingSampler(graph, [20, 20], **options)
    sampler.prepare_epoch(SEEDS, 0)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS[:50]))
    sampler.close()
    return out.node


def compute_sums(folder: Path) -> torch.Tensor:
    """Computes the values stored next to a graph."""
    path = folder / 'out'
    if not path.is_symlink():
        path.symlink_to(folder.parent / 'graph')
    graph = ChunkedGraph(path)
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # no file is damaged
        A = graph.matrix()
        return torch.cat([A.sum(dim=1), (A * 2).max(dim=0)])


def run_inference(folder: Path) -> torch.Tensor:
    """Computes a model for all nodes, unless it is there."""
    path = folder / 'out'
    if not path.exists() or (folder / '.out.infer').exists():
        torch.manual_seed(0)
        model = GraphSAGE(16, 16, 2).eval()
        x = torch.arange(16.0 * NODES).view(-1, 16) / NODES
        graph = ChunkedGraph(folder.parent / 'graph')
        infer(model, graph, x, out=path, memory='20MiB', num_threads=1)
    file = FeatureFile(path)
    file.verify()
    return file[:]


TABLES = {
    'user': {'key': 'name'},
    'post': {
        'key': 'id',
        'foreign_keys': [{'columns': 'who', 'table': 'user'}],
    },
}


def make_tables(top: Path) -> None:
    """Writes users and posts, and further ones; some users come late."""
    for part, users, posts in (
        ('first', range(50), range(3_000)),
        ('second', range(50, 60), range(3_000, 4_000)),
    ):
        (folder := top / part).mkdir()
        post = {'id': posts, 'who': [i % 57 for i in posts]}
        pq.write_table(pa.table({'name': users}), folder / 'user.parquet')
        pq.write_table(pa.table(post), folder / 'post.parquet')


def write_tables(folder: Path) -> torch.Tensor:
    """Converts tables and appends rows, unless they are there."""
    path, top = folder / 'out', folder.parent
    options = {'memory_limit': '128MiB', 'chunk_bytes': 4096}
    if not path.exists():
        convert_tables(path, top / 'first', {'tables': TABLES}, **options)
    if TableFolder(path).version == 0:
        append_tables(path, top / 'second', memory_limit='128MiB')
    found = TableFolder(path)
    found.graph.verify()
    sampler = RandomReadSampler(found.graph, [-1], seed=0)
    seeds = NodeSamplerInput(None, torch.arange(60), input_type='user')
    out = sampler.sample_from_nodes(seeds)
    return torch.cat([*out.row.values(), *out.edge.values()])


#: Processes to kill, and their files after a complete run.
KINDS: dict[str, tuple[Callable[[Path], torch.Tensor], set[str]]] = {
    'graph': (write_graph, {'out', 'more'}),
    'features': (write_features, {'out'}),
    'sampler': (sample_epoch, set()),
    'sums': (compute_sums, {'out', 'out.derived'}),
    'inference': (run_inference, {'out'}),
    'tables': (write_tables, {'out'}),
}
#: Those that are killed when they are done leave a folder to the next one.
WRITERS = 'graph', 'features', 'sums', 'tables'


def kill(kind: str, times: int, seed: int = 0) -> int:
    """Kills a process some times; returns how many were still at work.

    Raises:
        AssertionError: If what is left is wrong.
    """
    work, left = KINDS[kind]
    draws, killed = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as top:
        options = {'chunk_bytes': 1 << 14}
        ChunkedGraph.write(f'{top}/graph', EDGES, **options).write_rows()
        make_tables(Path(top))
        (whole := Path(top, 'whole')).mkdir()
        start = time.perf_counter()
        want = work(whole)
        seconds = time.perf_counter() - start
        for i in range(times):
            (folder := Path(top, f'{i}')).mkdir()
            pid = os.fork()
            if pid == 0:
                torch.set_num_threads(1)
                try:
                    work(folder)
                finally:
                    os._exit(0)
            time.sleep(draws.random() * seconds)
            os.kill(pid, signal.SIGKILL)
            if os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
                killed += 1
            elif not killed:  # the first run, which was timed, took longer
                seconds /= 2
            assert torch.equal(work(folder), want), f'{kind}, kill {i}'
            if kind in WRITERS:
                for path in [folder, *folder.rglob('*.derived/*')]:
                    remove_leftovers(path)
            found = {path.name for path in folder.iterdir()}
            assert found == left, f'{kind}, kill {i}: {found} are left'
            hidden = [p for p in folder.rglob('.*') if p.is_dir()]
            assert hidden == [], f'{kind}, kill {i}: {hidden} are left'
            shutil.rmtree(folder)
    return killed


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for kind in sys.argv[2:] or KINDS:
        start = time.perf_counter()
        killed = kill(kind, times)
        seconds = time.perf_counter() - start
        print(f'{kind}: {killed} of {times} killed at work, {seconds:.0f} s')


if __name__ == '__main__':
    main()
