"""What all algorithms on walks and subgraphs have in common."""

import pytest
import torch

from tests.algorithms.checks import body_lines, random_graph, run, same
from torch_gsample import algorithms as alg

SEEDS = torch.tensor([3, 17, 30])
PROGRAMS = {
    'deepwalk': lambda A: alg.deepwalk(A, SEEDS, 8),
    'node2vec': lambda A: alg.node2vec(A, SEEDS, 8, 2.0, 0.5),
    'pinsage': lambda A: alg.pinsage(A, SEEDS, 4, 5, 6),
    'hetgnn': lambda A: alg.hetgnn(
        A, SEEDS, torch.arange(60) % 2, [3, 3], 5, 6
    ),
    'saint_node': lambda A: alg.saint_node(A, 12),
    'saint_edge': lambda A: alg.saint_edge(A, 9),
    'saint_walk': lambda A: alg.saint_walk(A, SEEDS, 4),
    'shadow': lambda A: alg.shadow(A, SEEDS, [2, 2]),
    'hgt': lambda A: list(
        alg.hgt({('v', 'to', 'v'): A}, {'v': SEEDS}, [5, 5]).values()
    ),
    'forest_fire': lambda A: alg.forest_fire(A, SEEDS, 0.4),
}
LINES = {
    'deepwalk': 2,
    'node2vec': 2,
    'saint_node': 6,
    'saint_edge': 6,
    'saint_walk': 6,
    'shadow': 8,
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_a_key_gives_one_sample_whatever_the_threads(name):
    A = random_graph(60, 6)
    outs = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        outs.append(run(lambda: PROGRAMS[name](A), seed=5))
    assert same(*outs)
    others = [run(lambda: PROGRAMS[name](A), seed=s) for s in range(6, 10)]
    assert not all(same(outs[0], other) for other in others)


@pytest.mark.parametrize('name', LINES)
def test_a_body_is_as_short_as_in_the_paper(name):
    assert body_lines(getattr(alg, name)) <= LINES[name]
