"""Functions that call operators, compiled."""

import pytest
import torch

from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import make_graph
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph

G = small_graph('random')
KEY = make_key(3, 1, 4)
SEEDS = torch.tensor([3, 39, 3])


@pytest.fixture
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_samples_compile_without_a_graph_break(backend, fresh_compiler):
    def mean_of_neighbors(x, indptr, indices, seeds, key):
        row, col, node, *_ = torch.ops.gsample.sample_neighbors(
            [indptr, indices], [0, 0], [x.shape[0]], [seeds], [3, 2], key
        )
        out = x.new_zeros(node.shape[0], x.shape[1])
        return out.index_add(0, col, x[node][row]), node

    compiled = torch.compile(
        mean_of_neighbors, fullgraph=True, backend=backend
    )
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    for seed in range(3):
        args = (x, G.indptr, G.indices, SEEDS + seed % 2 * -3, make_key(seed))
        assert_equal_tensors(compiled(*args), mean_of_neighbors(*args))


@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_two_draws_are_not_merged(backend, fresh_compiler):
    def draw_twice(seeds, key):
        return [
            torch.ops.gsample.sample_neighbors(
                [G.indptr, G.indices], [0, 0], [40], [seeds], [3], key, call_id
            )[3]
            for call_id in (0, 1, 0)
        ]

    compiled = torch.compile(draw_twice, fullgraph=True, backend=backend)
    first, second, third = compiled(SEEDS, KEY)
    assert_equal_tensors([first, second, third], draw_twice(SEEDS, KEY))
    assert not torch.equal(first, second)
    assert torch.equal(first, third)


def test_fronts_run_inside_of_compiled_functions(fresh_compiler):
    @torch.compile(backend='eager')  # checks of arguments break the graph
    def sample(seeds, key):
        return ops.sample_neighbors(graph, seeds, [3, 2], key).node

    graph = make_graph([G.indptr], [G.indices], [(0, 0)], [40])
    want = ops.sample_neighbors(graph, SEEDS, [3, 2], KEY)
    assert torch.equal(sample(SEEDS, KEY), want.node)
