"""Several batches of a program on disk run together, and equal single ones."""

import pytest
import torch

from tests.storage.matrices.programs import assert_same, flat
from torch_gsample import algorithms, super_batch
from torch_gsample.rng import EPOCH_SCOPE, make_key, program_scope
from torch_gsample.storage.matrices.trees import sample_trees

#: A run that fails is a warning, and its batches run one by one.
pytestmark = pytest.mark.filterwarnings('error:super_batch')

PROGRAMS = {
    'ladies': lambda A, s: algorithms.ladies(A, s, [16]),
    'labor': lambda A, s: algorithms.labor(A, s, [4]),
    'columns': lambda A, s: [A[:, s]],
    'induced': lambda A, s: [A.induce(s)],
    'shadow': lambda A, s: algorithms.shadow(A, s, [3, 2]),
    'shadow_replace': lambda A, s: algorithms.shadow(A, s, [3], True),
    'deepwalk': lambda A, s: algorithms.deepwalk(A, s, 5),
    'restarts': lambda A, s: A.random_walk(s, 5, 0.3, A),
    'walks_back': lambda A, s: A.T.random_walk(s, 5),
    'node2vec': lambda A, s: algorithms.node2vec(A, s, 4, 2.0, 0.5, A),
    'saint_walk': lambda A, s: algorithms.saint_walk(A, s, 3),
}
KEYS = [make_key(0, 0, i) for i in range(4)]


def run_alone(program, A, seeds):
    out = []
    for ids, key in zip(seeds, KEYS, strict=True):
        with program_scope(key):
            out.append(program(A, ids))
    return out


@pytest.mark.parametrize('name', PROGRAMS)
def test_batches_together_equal_single_ones(stored, name):
    A = stored[True][1].matrix(cache_bytes=0)
    # Seeds of one batch are in others, and one batch has none.
    seeds = [(torch.arange(size) * 7 + size) % 300 for size in (9, 0, 5, 60)]
    together = super_batch(PROGRAMS[name], 4)
    with program_scope(torch.cat(KEYS)):
        found = together(A, seeds)
    assert together.notes[0] == 'several batches run together'
    want = run_alone(PROGRAMS[name], A, seeds)
    for x, y in zip(flat(found), flat(want), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-6, atol=0)


def test_batches_together_read_a_block_once(stored):
    A, seeds = stored[False][1].matrix(cache_bytes=0), [torch.arange(20)] * 4
    together = super_batch(lambda A, s: A[:, s].edges(), 4)

    def bytes_of(run):
        before = A.stats()['bytes']
        run()
        return A.stats()['bytes'] - before

    def read_together():
        with program_scope(torch.cat(KEYS)):
            together(A, seeds)

    read_together()  # compiles
    alone = bytes_of(lambda: [A[:, s].edges() for s in seeds])
    assert 0 < bytes_of(read_together) == alone / 4


@pytest.mark.parametrize('name', ['shadow', 'deepwalk', 'saint_walk'])
def test_draws_of_an_epoch_are_those_of_single_batches(stored, name):
    A, program = stored[False][1].matrix(), PROGRAMS[name]
    seeds = [torch.arange(6 * i, 6 * i + 9) for i in range(4)]
    key = make_key(5, 2, EPOCH_SCOPE)
    together = super_batch(program, 4)
    with program_scope(key.repeat(4, 1)):
        found = together(A, seeds)
    assert together.notes[0] == 'several batches run together'
    for got, ids in zip(found, seeds, strict=True):
        with program_scope(key):
            want = program(A, ids)
        assert_same(flat(got), flat(want))


def test_walks_together_read_a_block_once(stored):
    A, seeds = stored[False][1].matrix(cache_bytes=0), [torch.arange(20)] * 4
    step = lambda A, s: A.random_walk(s, 1).nodes  # noqa: E731
    together = super_batch(step, 4)

    def requests_of(run):
        before = A.stats()['requests']
        with program_scope(torch.cat(KEYS)):
            run()
        return A.stats()['requests'] - before

    requests_of(lambda: together(A, seeds))  # compiles
    assert requests_of(lambda: together(A, seeds)) == 1


def test_trees_of_several_batches_are_those_of_each(stored):
    edges = stored[False][1].matrix()._cols
    seeds = [torch.arange(0), torch.tensor([3, 3, 9]), torch.arange(7)]
    sizes = torch.tensor([len(ids) for ids in seeds])
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    key = torch.cat(KEYS[:3])
    node, tree = sample_trees(
        edges, torch.cat(seeds), [4, 2], key, 1, False, ptr
    )
    wants = [
        sample_trees(edges, ids, [4, 2], key[i : i + 1], 1, False)
        for i, ids in enumerate(seeds)
    ]
    assert torch.equal(node, torch.cat([want[0] for want in wants]))
    trees = [want[1] + begin for want, begin in zip(wants, ptr, strict=False)]
    assert torch.equal(tree, torch.cat(trees))
