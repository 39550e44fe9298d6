"""Programs that repeat something until their values say that it is done."""

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import A, tensors
from torch_gsample.rng import make_key, program_scope


def distances(A, seeds, repeat):
    """Hops from the nearest seed to each node, -1 where none leads there."""
    row, col = A.coo()
    distance = torch.full((A.num_rows,), -1).index_fill(0, seeds, 0)

    def goes_on(hops, distance):
        return (distance == hops).any()

    def step(hops, distance):
        near = (distance[col] == hops).long()
        met = torch.zeros_like(distance).index_add(0, row, near) > 0
        return hops + 1, torch.where(met & (distance < 0), hops + 1, distance)

    return repeat(goes_on, step, (torch.tensor(0), distance))[1]


def repeat(goes_on, step, state):
    while goes_on(*state):
        state = step(*state)
    return state


def near(A, seeds, repeat):
    distance = distances(A, seeds, repeat)
    ring = (distance == 1).nonzero().view(-1)
    return A[:, ring].individual_sample(2), distance


def with_draws(A, seeds, repeat):
    """Draws in each step, as often as there are steps."""

    def goes_on(step, nodes):
        return (step < 4) & (nodes > 3).any()

    def walk(step, nodes):
        next_nodes = A.random_walk(nodes, 1).nodes[:, 1]
        return step + 1, torch.where(next_nodes < 0, nodes, next_nodes)

    return repeat(goes_on, walk, (torch.tensor(0), seeds.clone()))[1]


@pytest.mark.parametrize('how', ['gsample.compile', 'torch.compile'])
def test_loops_are_captured_where_shapes_stay(how):
    if how == 'gsample.compile':
        fast = gsample.compile(near)
    else:
        fast = torch.compile(near, backend='gsample', fullgraph=True)
    for size in (3, 5, 0, 1, 9):
        seeds, outs = torch.arange(size) * 7 % 40, []
        for program, loop in ((near, repeat), (fast, torch.while_loop)):
            torch.manual_seed(2)
            outs.append(tensors(program(A, seeds, loop)))
            outs[-1].append(torch.get_rng_state())
        assert len(outs[0]) == len(outs[1])
        assert all(map(torch.equal, *outs))


def branches(A, seeds, choose):
    def walk(nodes):
        return A.random_walk(nodes, 1).nodes[:, 1] * 1

    def stay(nodes):
        return nodes.clone()

    first = choose((seeds > 3).any(), walk, stay, (seeds,))
    return first, A.random_walk(seeds, 2).nodes


def choose(condition, yes, no, operands):
    return yes(*operands) if condition else no(*operands)


@pytest.mark.parametrize(
    ('program', 'eager', 'operator'),
    [
        (with_draws, repeat, torch.while_loop),
        (branches, choose, torch.cond),
    ],
    ids=['while_loop', 'cond'],
)
def test_draws_of_loops_and_branches_are_those_of_eager_code(
    program, eager, operator
):
    fast = gsample.compile(program)
    for size in (9, 3, 12):
        args, outs = (A, torch.arange(size)), []
        for function, how in ((program, eager), (fast, operator)):
            with program_scope(make_key(3)):
                outs.append(tensors(function(*args, how)))
            torch.manual_seed(4)
            outs[-1] += tensors(function(*args, how))
            outs[-1].append(torch.get_rng_state())
        assert len(outs[0]) == len(outs[1])
        assert all(map(torch.equal, *outs))
