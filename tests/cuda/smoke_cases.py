"""Cases of `on_gpu.py smoke`: a device draws the samples of the CPU.

    python -m tests.cuda.smoke_cases [--device cuda] [case ...]

Prints how each case ended, a line a case; without cases it lists them.
"""

import argparse
import json
import os
import sys
import warnings
from functools import partial

import torch
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from tests.ops.layers import sample_plain_layers, sample_typed_layers
from tests.ops.neighbors import make_graph, sample_one
from tests.ops.test_device import CALLS, Operands
from torch_gsample import SparseSample, algorithms, ops, placement
from torch_gsample.compiler.backend import backend
from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import make_key, program_scope
from torch_gsample.vertex import nn

#: (nodes, edges, largest degree)
SIZES = {'tiny': (2_000, 20_000, 300), 'small': (169_000, 1_200_000, 13_000)}


def graph(size='small'):
    """Returns pointers, neighbours, seeds, and weights with zeros."""
    csc = power_law(*SIZES[size])
    generator = torch.Generator().manual_seed(5)
    seeds = torch.randint(csc.num_cols, (1024,), generator=generator)
    weight = torch.rand(csc.num_edges, generator=generator)
    weight[::7] = 0
    return csc.indptr, csc.indices, seeds, weight


def key(i):
    return make_key(1, 2, i)


def assert_same(out, want):
    """The same bits of all tensors, wherever they are."""
    outs, wants = (
        [y.cpu() for y in tree_leaves(x) if isinstance(y, torch.Tensor)]
        for x in (out, want)
    )
    for i, (x, y) in enumerate(zip(outs, wants, strict=True)):
        assert x.shape == y.shape, f'tensor {i}: {x.shape}, not {y.shape}'
        wrong = (x != y).flatten().nonzero()
        assert not len(wrong), (
            f'tensor {i}: {len(wrong)} of {x.numel()} differ, first at '
            f'{int(wrong[0])}'
        )


def weighted(p, x, s, w, k):
    cum_weight = ops.cumulate_weights(p, w)
    out = sample_one(p, x, s, [40, 10], key=k, cum_weight=cum_weight)
    return [cum_weight, *out]


def typed_hops(p, x, s, _, k):
    return list(
        sample_typed_layers(
            *([p] * 2, [x] * 2, [(0, 0)] * 2, [p.numel() - 1], [s]),
            [[8, 5]] * 2,
            key=[k] * 2,
            disjoint=int(k[0, 2]) == 1,
        )
    )


def layers(p, x, s, _, k, frontier):
    options = {'key': [k] * 3, 'frontier': frontier}
    return list(sample_plain_layers(p, x, s, [15, 10, 5], **options))


def walks(p, x, s, _, k):
    return [
        ops.random_walk(p, x, s.repeat(200), 80, key=k),
        ops.node2vec_walk(p, x, s, 40, 2.0, 0.5, key=k),
    ]


def matrix(p, x, s, _, k):
    nodes, size = s.unique(), p.numel() - 1
    return [
        ops.slice_cols(p, x, s),
        ops.slice_rows(p, x, size, nodes),
        ops.induce_subgraph(p, x, size, nodes, nodes),
        ops.sample_columns(p, 20, key=k),
        ops.sample_nodes(size, 4000, key=k, device=p.device),
        ops.negative_sample(s, size, key=k),
    ]


def neighbors(p, x, s, _, k, **options):
    return sample_one(p, x, s, [15, 10, 5], key=k, **options)


def batches(p, x, s, _, k):
    graph = make_graph([p], [x], [(0, 0)], [p.numel() - 1])
    keys = torch.cat([k + torch.tensor([[0, 0, b]]) for b in range(8)])
    starts = [[part] for part in s.split(128)]
    return [
        list(out[:6])
        for out in ops.sample_batches(graph, starts, [[15, 10, 5]], keys)
    ]


#: Calls on a graph of 1.2 M edges with hubs of 13,000 neighbours.
LARGE = {
    'neighbor_uniform': neighbors,
    'neighbor_replace': partial(neighbors, replace=True),
    'neighbor_disjoint': partial(neighbors, disjoint=True),
    'neighbor_weighted': weighted,
    'neighbor_batches': batches,
    'neighbor_all': lambda p, x, s, _, k: sample_one(
        p, x, s[:64], [-1, 700], key=k
    ),
    **{
        f'hops_{frontier}': partial(layers, frontier=frontier)
        for frontier in ('row', 'nodes', 'new', 'unseen')
    },
    'hops_typed': typed_hops,
    'walks': walks,
    'fire': lambda p, x, s, _, k: ops.forest_fire(p, x, s, 0.3, key=k),
    'matrix': matrix,
}


def on_both(call, device):
    """A call on the device as on the CPU, several times."""
    host = graph()
    there = [x.to(device) for x in host]
    for i in range(3):
        assert_same(call(*there, key(i)), call(*host, key(i)))


def once(call, device):
    """A call of a graph with two edges."""
    there = call(Operands(lambda x: x.to(device)))
    assert_same(there, call(Operands(lambda x: x)))


def program(name, compiled, device):
    p, x, s, _ = graph()
    outs = []
    for place in (device, 'cpu'):
        A = SparseSample.from_csc(p.to(place), x.to(place))
        run = getattr(algorithms, name)
        run = torch.compile(run, backend=backend) if compiled else run
        for i in range(2):
            with program_scope(key(i)):
                drawn = run(A, s.to(place), [400] * 2)
            outs.append([[*S.coo()[:2], S.row_ids] for S in drawn])
    assert_same(outs[:2], outs[2:])


def pinned_in_place(device):
    """cudaHostRegister: tensors that are neighbours on the heap, too."""
    p, x, s, _ = graph('tiny')
    seeds = s[:99] % 2000
    want = sample_one(p, x, seeds, [5, 5], key=key(0))
    if device == 'cpu':
        return
    held = [placement.pin(t) for t in (p, x)]
    small = [placement.pin(torch.arange(7 + i)) for i in range(50)]
    assert all(t.is_pinned() for t in held + small)
    out = sample_one(*held, seeds.to(device), [5, 5], key=key(0))
    assert_same(out, want)
    index = torch.arange(5, device=device)
    for t in small:
        assert_same(ops.gather_rows(t, index), t[:5])


def cuda_graph(device):
    p, x, s, _ = graph()
    most = 1024 * (10 + 50)
    there, k = [t.to(device) for t in (p, x, s)], key(0).to(device)

    def run(p, x, s, k):
        graph = make_graph([p], [x], [(0, 0)], [p.numel() - 1])
        return ops.sample_neighbors(graph, s, [10, 5], k, max_edges=[most])

    out = run(*there, k)
    if device != 'cpu':
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            out = run(*there, k)
    for i in range(3):
        k.copy_(key(i))
        if device == 'cpu':
            out = run(*there, k)
        else:
            captured.replay()
        out.check()
        assert_same(list(out[:6]), list(run(p, x, s, key(i))[:6]))


def loader(kind, device):
    p, x, *_ = graph('tiny')
    col = torch.repeat_interleave(torch.arange(2000), p.diff().long())
    edge_index = torch.stack([x.long(), col])
    data = Data(x=torch.randn(2000, 33), edge_index=edge_index)
    options = {'batch_size': 128, 'seed': 3, 'shuffle': False}
    there = {'device': device, 'graph_placement': kind}
    ours = NeighborLoader(
        data, [5, 5], **options, **({} if device == 'cpu' else there)
    )
    theirs = NeighborLoader(data, [5, 5], **options)
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            assert_same(
                [a.x, a.edge_index, a.n_id], [b.x, b.edge_index, b.n_id]
            )


def generated(device):
    """NVRTC, the driver, and a fused layer with its backward."""
    # Without NVRTC torch takes over, with a warning.
    warnings.simplefilter('error')
    p, x, *_ = graph('tiny')
    torch.manual_seed(0)
    layer = nn.GATConv(64, 8, 8, add_self_loops=False)
    features, outs = torch.rand(2000, 64), []
    for place in (device, 'cpu'):
        A = SparseSample.from_csc(p.to(place), x.to(place))
        h = features.to(place).requires_grad_()
        out = layer.to(place)(h, A)
        out.square().sum().backward()
        outs.append([out.detach().cpu(), h.grad.cpu()])
    for a, b in zip(*outs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def errors(device):
    """A fault is an exception, and the next call works."""
    p, x, *_ = (t.to(device) for t in graph('tiny'))
    seeds = torch.tensor([0, 10**6], device=device)
    for _ in range(3):
        try:
            sample_one(p, x, seeds, [3], key=key(0))
        except IndexError:
            continue
        raise AssertionError('no IndexError')
    sample_one(p, x, seeds[:1], [3], key=key(0))


CASES = {
    **{f'op:{name}': partial(once, call) for name, call in CALLS.items()},
    **{name: partial(on_both, call) for name, call in LARGE.items()},
    **{
        name + '_compiled' * compiled: partial(program, name, compiled)
        for name in ('graphsage', 'ladies', 'fastgcn')
        for compiled in (False, True)
    },
    'pinned_in_place': pinned_in_place,
    'cuda_graph': cuda_graph,
    'loader_gpu': partial(loader, 'gpu'),
    'loader_uva': partial(loader, 'uva'),
    'generated': generated,
    'errors': errors,
}


def outcome(name, device):
    """How a case ended: a wrong sample is no other error."""
    try:
        CASES[name](device)
    except Exception as error:
        first = (str(error).splitlines() or [''])[0][:200]
        if isinstance(error, AssertionError):
            return f'WRONG: {first}'
        return f'ERROR: {type(error).__name__}: {first}'
    return 'ok'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('cases', nargs='*')
    parser.add_argument('--device', default='cuda')
    args = parser.parse_args()
    if not args.cases:
        print('\n'.join(CASES))
    failed = False
    for name in args.cases:
        said = outcome(name, args.device)
        print(json.dumps({'said': said}))
        failed |= said != 'ok'
    # No destructor runs, as one would crash on a broken device.
    sys.stdout.flush()
    os._exit(failed)


if __name__ == '__main__':
    main()
