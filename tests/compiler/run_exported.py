"""Loads exported programs in a process of its own, and runs them.

``python -m tests.compiler.run_exported folder`` writes what they return to
``results.pt`` in the folder, and prints what it saw.
"""

import json
import pickle
import sys
import time
from pathlib import Path

import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.algorithms.graphs import skewed_graph
from torch_gsample import SparseSample, load_program, samplers
from torch_gsample.rng import make_key, program_scope

SIZES = 9, 0, 1, 2, 1000


def ids(size: int) -> torch.Tensor:
    return (torch.arange(size) * 7 + size) % 40


def run(program, A, size: int, scope: bool):
    torch.manual_seed(size)
    if not scope:
        return program(A, ids(size))
    with program_scope(make_key(size)):
        program(A, ids(size))  # later draws have other numbers
        return program(A, ids(size))


def runs(program, A, sizes=SIZES) -> list:
    return [
        run(program, A, size, scope)
        for size in sizes
        for scope in (False, True)
    ]


def plain(value):
    """Tensors of a result, which any version of the package can read."""
    if isinstance(value, SparseSample):
        kept = [x for x in (value.row_ids, value.col_ids) if x is not None]
        return [*value.coo(), value.edge_id, value.values(), *kept]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def sizes_of(name: str) -> tuple[int, ...]:
    if name == 'as_gcn':  # its probabilities would be 0 / 0
        return tuple(size for size in SIZES if size)
    return SIZES if name not in ('saint_node', 'saint_edge') else (9,)


def main(folder: Path) -> None:
    before, out, seconds = set(sys.modules), {}, {}
    A = skewed_graph()
    torch.compile = None  # nobody needs it
    for path in sorted(folder.glob('*.gsp')):
        start = time.process_time()  # not what other programs take
        program = load_program(path)
        seconds[path.stem] = time.process_time() - start
        out[path.stem] = plain(runs(program, A, sizes_of(path.stem)))
    start = time.process_time()
    sampler = pickle.loads((folder / 'sampler.pkl').read_bytes())
    assert isinstance(sampler, samplers.ProgramSampler)
    unpickled = time.process_time() - start
    batch = sampler.sample_from_nodes(NodeSamplerInput(None, ids(5)))
    out['sampler'] = [batch.node, batch.row, batch.col, batch.edge]
    torch.save(out, folder / 'results.pt')
    found = {
        'seconds': seconds,
        'unpickled': unpickled,
        'frames': sum(torch._dynamo.utils.counters['frames'].values()),
        'modules': [m for m in set(sys.modules) - before if 'dynamo' in m],
    }
    print(json.dumps(found))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
