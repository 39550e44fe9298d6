r"""Time of inference for all nodes, from disk and in memory.

.. code-block:: sh

    python benchmark/inference.py                       # 12 M edges
    python benchmark/inference.py --nodes 10_000_000 --edges 124_000_000 \
        --channels 256 --memory 2GiB

Rows are: ``infer`` with graph, features and result on disk; PyG's
``BasicGNN.inference`` with everything in memory, with our loader of all
in-edges; and a hand-written loop over ``np.memmap``. Each row runs in a
separate process with a limited data segment (``RLIMIT_DATA``: the heap and
private maps, not the page cache and maps of files), except the one in memory.
Sources of edges follow a power law; a part of them is near their destination.
"""

import argparse
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE

from torch_gsample.loader import NeighborLoader
from torch_gsample.memory import bytes_of
from torch_gsample.storage import ChunkedGraph, FeatureFile, infer

MODELS = {'sage': GraphSAGE, 'gcn': GCN, 'gat': GAT}
#: Memory of an interpreter with torch before any computation.
BASE = 768 << 20
BATCH = 1024


def random_edges(nodes: int, edges: int, local: float) -> torch.Tensor:
    rng = np.random.default_rng(0)
    dst = rng.integers(0, nodes, edges)
    src = (nodes * rng.random(edges) ** 3).astype(np.int64)
    near = rng.random(edges) < local
    src[near] = (dst[near] + rng.integers(-500, 500, near.sum())) % nodes
    return torch.from_numpy(np.stack([src, dst]))


def prepare(folder: Path, args: argparse.Namespace) -> None:
    """Writes the graph and its features, in files of both kinds."""
    edge_index = random_edges(args.nodes, args.edges, args.local)
    np.save(folder / 'edges.npy', edge_index.numpy())
    ChunkedGraph.write(
        folder / 'graph',
        edge_index,
        num_nodes=args.nodes,
        chunk_bytes=16 << 20,
    )
    shape = args.nodes, args.channels
    x = np.lib.format.open_memmap(folder / 'x.npy', 'w+', np.float32, shape)
    rng = np.random.default_rng(0)
    for at in range(0, args.nodes, 1 << 16):
        part = x[at : at + (1 << 16)]
        part[:] = rng.random(part.shape, np.float32)
    x.flush()
    FeatureFile.write(folder / 'x.gsf', folder / 'x.npy')


def make_model(args: argparse.Namespace) -> torch.nn.Module:
    torch.manual_seed(0)
    channels = args.channels
    return MODELS[args.model](channels, channels, 2, channels).eval()


def disk(folder: Path, args: argparse.Namespace) -> int:
    out = folder / 'out.gsf'
    memory = bytes_of(args.memory, '--memory')
    graph = ChunkedGraph(folder / 'graph')
    x = FeatureFile(folder / 'x.gsf', direct=args.direct)
    infer(
        make_model(args), graph, x, out=out, memory=memory,
        num_threads=args.threads, direct=args.direct,
    )  # fmt: skip
    out.unlink()
    return x.stats()['bytes_read']


def memory(folder: Path, args: argparse.Namespace) -> int:
    data = Data(
        torch.from_numpy(np.load(folder / 'x.npy')),
        torch.from_numpy(np.load(folder / 'edges.npy')),
    )
    loader = NeighborLoader(data, [-1], batch_size=BATCH)
    global started
    started = time.perf_counter()
    make_model(args).inference(loader)
    return 0


def memmap(folder: Path, args: argparse.Namespace) -> int:
    """The hand-written loop: edges in memory, rows in mapped files."""
    model = make_model(args)
    edges = torch.from_numpy(np.load(folder / 'edges.npy'))
    loader = NeighborLoader(
        Data(edge_index=edges, num_nodes=args.nodes), [-1], batch_size=BATCH
    )
    del edges
    global started
    started = time.perf_counter()
    x, touched = np.load(folder / 'x.npy', mmap_mode='r'), 0
    x._mmap.madvise(mmap.MADV_RANDOM)
    drop(x.filename)
    for layer in range(model.num_layers):
        path = folder / f'memmap-{layer}.npy'
        shape = args.nodes, args.channels
        out = np.lib.format.open_memmap(path, 'w+', np.float32, shape)
        for i, batch in enumerate(loader):
            if i == args.batches:
                break
            rows = torch.from_numpy(x[batch.n_id.numpy()])
            touched += len(rows) * mmap.PAGESIZE
            if touched > bytes_of(args.memory, '--memory'):
                x._mmap.madvise(mmap.MADV_DONTNEED)
                drop(x.filename)
                touched = 0
            with torch.no_grad():
                rows = model.inference_per_layer(
                    layer, rows, batch.edge_index, batch.batch_size
                )
            out[i * BATCH : i * BATCH + len(rows)] = rows.numpy()
        out.flush()
        x = np.load(path, mmap_mode='r')
        x._mmap.madvise(mmap.MADV_RANDOM)
        drop(path)
    return 0


def drop(path: Path) -> None:
    """Drops a file from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


class Peak:
    """Samples the written memory (RssAnon) 50 times per second."""

    def __init__(self) -> None:
        self._first = self._most = self._now()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _now(self) -> int:
        status = Path('/proc/self/status').read_text()
        return int(status.split('RssAnon:')[1].split()[0]) << 10

    def _work(self) -> None:
        while not self._ended.wait(0.02):
            self._most = max(self._most, self._now())

    def grown(self) -> int:
        self._ended.set()
        self._thread.join()
        return self._most - self._first


ROWS = {'disk': disk, 'memory': memory, 'memmap': memmap}
started = 0.0


def measure(name: str, folder: Path, args: argparse.Namespace) -> None:
    """Runs a row in this process, and prints its time and memory."""
    global started
    torch.set_num_threads(args.threads)
    if name != 'memory':
        limit = bytes_of(args.memory, '--memory') + BASE
        if name == 'memmap':  # the graph is in memory
            limit += 40 * args.edges
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    started, peak = time.perf_counter(), Peak()
    busy = time.process_time()
    read = ROWS[name](folder, args)
    seconds = time.perf_counter() - started
    busy = time.process_time() - busy
    if name == 'memmap' and args.batches:
        whole = max(args.nodes / (args.batches * BATCH), 1)
        seconds, busy = seconds * whole, busy * whole
    facts = {
        'seconds': seconds,
        'busy': busy,
        'grown': peak.grown(),
        'read': read,
    }
    print(json.dumps(facts))


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--nodes', type=int, default=1_000_000)
    add('--edges', type=int, default=12_000_000)
    add('--channels', type=int, default=64)
    add('--local', type=float, default=0.5, help='edges from near nodes')
    add('--memory', default='256MiB')
    add('--model', choices=MODELS, default='sage')
    add('--threads', type=int, default=torch.get_num_threads())
    add('--rounds', type=int, default=1)
    add('--batches', type=int, default=0, help='of the memmap loop; all if 0')
    add('--direct', action='store_true', help='read past the page cache')
    add('--rows', default='disk,memory,memmap')
    add('--folder', type=Path, help='where files are kept')
    add('--row', choices=ROWS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        return measure(args.row, args.folder, args)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not (folder / 'x.gsf').exists():
            prepare(folder, args)
        command = [sys.executable, __file__, *sys.argv[1:]]
        command += ['--folder', str(folder), '--row']
        print('row      seconds  CPU sec. grown MiB  GB of features read')
        for _ in range(args.rounds):
            for row in args.rows.split(','):
                done = subprocess.run(
                    [*command, row], stdout=subprocess.PIPE, check=True
                )
                facts = json.loads(done.stdout.splitlines()[-1])
                print(
                    f'{row:8}{facts["seconds"]:8.1f}{facts["busy"]:10.1f}'
                    f'{facts["grown"] / 2**20:10.0f}'
                    f'{facts["read"] / 1e9:21.1f}',
                    flush=True,
                )


if __name__ == '__main__':
    main()
