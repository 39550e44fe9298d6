"""Neighbours that are multiplied by the matrix of a relation as they are added
up: operators, gradients, and what they hold."""

import pytest
import torch
from torch_geometric import nn as pyg

from tests import reference
from tests.vertex.programs import features, graph
from torch_gsample.codegen import loaded
from torch_gsample.codegen.build import BuildError
from torch_gsample.vertex import nn, vertex_program
from torch_gsample.vertex.kernels import projection, relations

GSAMPLE = torch.ops.gsample
TYPES = 4
#: Rows of less than a vector, of some and of a rest.
WIDTHS = [(3, 2), (64, 64), (70, 33), (1, 20)]


def example(left, right, dtype=torch.float64, rows=(150, 200), edges=1200):
    """Vertices of several tiles, without edges and with many of a type."""
    generator = torch.Generator().manual_seed(7)
    row = torch.randint(rows[0] - 1, (edges,), generator=generator)
    col = torch.randint(rows[1] - 1, (edges,), generator=generator)
    row[: edges // 3] = 5
    col[edges // 2 :] //= 40
    types = torch.randint(TYPES - 1, (edges,), generator=generator)
    x, y, weight = (
        torch.randn(shape, dtype=dtype, generator=generator)
        for shape in (
            *((rows[0], left), (rows[1], right)),
            (TYPES, left, right),
        )
    )
    edges = [torch.stack([row, col])], types, list(rows), 0
    return edges, x, y, weight


def as_lists(edges):
    [edge_index], types, *rest = edges
    return [edge_index.tolist()], types.tolist(), *rest


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('mean', [False, True])
@pytest.mark.parametrize(('left', 'right'), WIDTHS)
def test_operators_are_those_of_the_reference(left, right, mean, dtype):
    edges, x, y, weight = example(left, right, dtype)
    for reverse, rows in ((False, x), (True, y)):
        matrices = weight.transpose(1, 2) if reverse else weight
        got = GSAMPLE.project_edges(*edges, mean, reverse, rows, matrices)
        want = reference.project_edges(
            *as_lists(edges), mean, reverse, rows.tolist(), matrices.tolist()
        )
        want = torch.tensor(want, dtype=dtype)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    got = GSAMPLE.sum_outer_edges(*edges, mean, x, y, TYPES)
    want = reference.sum_outer_edges(
        *as_lists(edges), mean, x.tolist(), y.tolist(), TYPES
    )
    want = torch.tensor(want, dtype=dtype)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-3)


def test_weights_add_up_the_side_with_fewer_groups():
    edges, x, y, _ = example(8, 4)
    got = GSAMPLE.sum_outer_edges(*edges, True, x, y, TYPES)
    tiles = relations.tiles_at(*edges[:3], 0)
    sides = [tiles.incoming.num_groups, tiles.outgoing.num_groups]
    [edge_index], types, *_ = edges
    for ends, groups in zip(edge_index.flip(0), sides, strict=True):
        assert groups == len(
            set(zip(ends.tolist(), types.tolist(), strict=True))
        )
    assert tiles.blocks[0].num_groups == min(sides)
    turned = [edge_index.flip(0)], types, edges[2][::-1], 0
    other = GSAMPLE.sum_outer_edges(*turned, False, y, x, TYPES)
    assert relations.tiles_at(*turned[:3], 0).blocks[1] != tiles.blocks[1]
    want = GSAMPLE.sum_outer_edges(*edges, False, x, y, TYPES)
    torch.testing.assert_close(other, want.transpose(1, 2))
    assert not torch.allclose(got, want)


@pytest.mark.parametrize('mean', [False, True])
def test_gradients_and_gradients_of_these(mean):
    edges, x, _, weight = example(3, 2, rows=(9, 6), edges=24)
    leaves = x.requires_grad_(), weight.requires_grad_()

    def project(x, weight):
        return GSAMPLE.project_edges(*edges, mean, False, x, weight)

    assert torch.autograd.gradcheck(project, leaves)
    assert torch.autograd.gradgradcheck(project, leaves)


@pytest.mark.parametrize('aggr', ['mean', 'add'])
def test_a_layer_is_that_of_pyg_on_many_tiles(aggr):
    edges, x, *_ = example(70, 33, torch.float32, rows=(300, 300))
    edge_index, types = edges[0][0], edges[1]
    theirs = pyg.RGCNConv(70, 33, TYPES, aggr=aggr)
    ours = nn.RGCNConv(70, 33, TYPES, aggr=aggr)
    ours.load_state_dict(theirs.state_dict())
    x.requires_grad_()
    found = []
    for layer in (theirs, ours):
        out = layer(x, edge_index, types)
        given = torch.arange(out.numel()).cos().view_as(out)
        leaves = [x, *layer.parameters()]
        grads = torch.autograd.grad(out, leaves, given)
        found.append([out, *grads])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_results_do_not_depend_on_threads():
    edges, x, y, weight = example(
        *(64, 64, torch.float32), rows=(3000, 3000), edges=40_000
    )
    found = []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        out = GSAMPLE.project_edges(*edges, True, False, x, weight)
        outer = GSAMPLE.sum_outer_edges(*edges, True, x, y, TYPES)
        found.append((out, outer))
    for out, outer in found[1:]:
        assert torch.equal(out, found[0][0])
        assert torch.equal(outer, found[0][1])


@pytest.mark.parametrize('mean', [False, True])
def test_without_a_compiler_torch_computes_the_same(mean, monkeypatch):
    edges, x, y, weight = example(5, 3)
    turned = weight.transpose(1, 2)

    def run():
        return (
            GSAMPLE.project_edges(*edges, mean, False, x, weight),
            GSAMPLE.project_edges(*edges, mean, True, y, turned),
            GSAMPLE.sum_outer_edges(*edges, mean, x, y, TYPES),
        )

    def fail(*args):
        raise BuildError(f'nothing builds: {mean}')

    want = run()
    projection._projecting.cache_clear()
    projection._adding.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(loaded, 'build', fail)
        patch.setattr(loaded, '_loaded', {})
        with pytest.warns(UserWarning, match=f'nothing builds: {mean}'):
            got = run()
    projection._projecting.cache_clear()
    projection._adding.cache_clear()
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize('edges', [0, 1])
def test_few_edges(edges):
    edges, x, y, weight = example(4, 3, edges=edges)
    out = GSAMPLE.project_edges(*edges, True, False, x, weight)
    assert out.shape == (200, 3)
    assert int((out != 0).any(1).sum()) == edges[1].numel()
    outer = GSAMPLE.sum_outer_edges(*edges, True, x, y, TYPES)
    assert int((outer != 0).any(2).any(1).sum()) == edges[1].numel()


def test_bad_arguments_are_errors():
    edges, x, y, weight = example(4, 3)
    project, outer = GSAMPLE.project_edges, GSAMPLE.sum_outer_edges
    with pytest.raises(ValueError, match=r"'x' must have 150 rows \(got 149"):
        project(*edges, True, False, x[1:], weight)
    with pytest.raises(ValueError, match=r"'x' must have 200 rows \(got 150"):
        project(*edges, True, True, x, weight)
    with pytest.raises(ValueError, match=r"'y' must have 200 rows \(got 199"):
        outer(*edges, True, x, y[1:], TYPES)
    with pytest.raises(ValueError, match=r'must be in \[0, 2\) \(got 2\)'):
        project(*edges, True, False, x, weight[:2])
    with pytest.raises(ValueError, match=r'must be in \[0, 1\) \(got 2\)'):
        outer(*edges, True, x, y, 1)
    with pytest.raises(RuntimeError, match='operand 0 must have'):
        project(*edges, True, False, x[:, :2].contiguous(), weight)


def test_only_sums_of_neighbours_are_one_operator():
    @vertex_program
    def own(v, weight):
        return sum(
            sum(e.src.h * v.h for e in es) @ weight[es.type]
            for es in v.inedges.by_type
        )

    @vertex_program
    def plain(v, weight):
        return sum(
            sum(e.src.h for e in es) @ weight[es.type]
            for es in v.inedges.by_type
        )

    given = features('rgcn')
    kinds = {}
    for program in (own, plain):
        found = program.plan(**given).projections.values()
        kinds[program.function.__name__] = [x for x in found if x is not None]
    assert kinds['own'] == []
    assert len(kinds['plain']) == 1
    wide = {**given, 'h': torch.zeros(7, 1025)}
    wide['weight'] = torch.zeros(4, 1025, 2)
    wide.pop('type')
    types = torch.zeros(graph().shape[1], dtype=torch.int64)
    assert not any(plain.plan(**wide, type=types).projections.values())
