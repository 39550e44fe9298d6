"""Nested aggregation over the types of edges: operators, and compiled."""

import pytest
import torch
import torch.nn.functional as F

from tests import reference
from tests.ops.vertex_map_errors import UNIT, by_type_arguments
from tests.vertex.programs import PROGRAMS, E, N, expected, features, graph
from torch_gsample.vertex import Loops, mean, nn, vertex_program
from torch_gsample.vertex.kernels import relations
from torch_gsample.vertex.kernels.relations import Level

GSAMPLE = torch.ops.gsample
ROWS = torch.randn(6, 4, dtype=torch.float64)
MATRICES = torch.randn(5, 4, 3, dtype=torch.float64)
TYPE = torch.tensor([0, 0, 1, 3, 3, 3])


@vertex_program
def attending(v, weight, bias):
    """Values of the vertex inside, a product of two heads, and a bias."""
    return sum(
        F.linear(
            torch.tanh(mean(e.src.h * (e.w - v.h) for e in es)),
            weight[es.type],
        )
        + bias[es.type]
        for es in v.inedges.by_type
    )


def attended(seed=0, e=E):
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        **{'h': (N, 2, 3), 'w': (e, 2, 1)},
        **{'weight': (4, 5, 3), 'bias': (4, 5)},
    }
    given = {
        name: torch.randn(
            shape, dtype=torch.float64, generator=generator
        ).requires_grad_()
        for name, shape in shapes.items()
    }
    given['type'] = torch.randint(4, (e,), generator=generator)
    return torch.randint(N, (2, e), generator=generator), given


def by_hand(edge_index, given):
    out = torch.zeros(N, 2, 5, dtype=torch.float64)
    for v in range(N):
        for t in range(4):
            of = (edge_index[1] == v) & (given['type'] == t)
            if of.any():
                h = given['h'][edge_index[0][of]]
                x = (h * (given['w'][of] - given['h'][v])).mean(0)
                x = torch.tanh(x) @ given['weight'][t].t()
                out[v] = out[v] + x + given['bias'][t]
    return out


def gradients(out, given):
    leaves = [x for x in given.values() if x.requires_grad]
    return torch.autograd.grad(out.sin().sum(), leaves)


@pytest.fixture
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def compiled(function):
    return torch.compile(function, fullgraph=True, backend='aot_eager')


def test_a_compiled_program_is_that_of_eager_for_any_edges(fresh_compiler):
    run = compiled(lambda edges, given: attending(edges, **given))
    for seed, e in enumerate((E, E + 7, 3)):
        edge_index, given = attended(seed, e)
        want, got = attending(edge_index, **given), run(edge_index, given)
        torch.testing.assert_close(want, by_hand(edge_index, given))
        assert torch.equal(got, want)
        pairs = gradients(got, given), gradients(want, given)
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_compiled_layer_takes_another_number_of_edges(fresh_compiler):
    conv = nn.RGCNConv(3, 2, 4).double()
    run = compiled(conv)
    for seed, e in enumerate((E, E + 7, 0)):
        edge_index, given = attended(seed, e)
        x = given['h'][:, 0].detach().requires_grad_()
        found = []
        for layer in (conv, run):
            out = layer(x, edge_index, given['type'])
            leaves = [x, *conv.parameters()]
            grads = torch.autograd.grad(
                out.sin().sum(), leaves, allow_unused=True
            )
            found.append([out, *grads])
        torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)


def test_pairs_and_layouts_are_made_once(fresh_compiler, monkeypatch):
    made = []
    make = relations._make
    monkeypatch.setattr(
        relations, '_make', lambda *args: made.append(0) or make(*args)
    )
    edge_index, given = attended(3)
    run = compiled(lambda edges, given: attending(edges, **given))
    for _ in range(2):
        gradients(attending(edge_index, **given), given)
        gradients(run(edge_index, given), given)
    assert len(made) == 1
    given['type'][0] = 3 - given['type'][0]
    run(edge_index, given)
    assert len(made) == 2


def test_types_that_changed_without_a_version_are_others():
    edge_index, given = attended()
    given = {name: value.detach() for name, value in given.items()}
    before = attending(edge_index, **given)
    given['type'].data.copy_(given['type'].roll(7))
    after = attending(edge_index, **given)
    assert not torch.equal(after, before)
    torch.testing.assert_close(after, by_hand(edge_index, given))


def test_results_share_no_memory_with_the_cache():
    edge_index, given = attended()
    args = [edge_index], given['type'], N, N, 0
    want = [x.tolist() for x in GSAMPLE.vertex_relations(*args)]
    for x in GSAMPLE.vertex_relations(*args):
        x.zero_()
    assert [x.tolist() for x in GSAMPLE.vertex_relations(*args)] == want


def test_pairs_are_those_of_the_reference():
    edge_index, given = attended()
    types = given['type']
    want = reference.vertex_relations(
        [edge_index.tolist()], types.tolist(), N, N, 0
    )
    for kind in (torch.int64, torch.int32, torch.uint8):
        got = GSAMPLE.vertex_relations([edge_index], types.to(kind), N, N, 0)
        assert tuple(x.tolist() for x in got) == want


@pytest.mark.parametrize('level', [Level.INNER, Level.OUTER])
def test_a_unit_at_a_level_is_that_of_the_reference(level):
    number, graphs, types, sizes, *rest, given = by_type_arguments(
        False, level
    )
    given[1] = torch.arange(1.0, 4)
    [got] = GSAMPLE.vertex_unit(number, graphs, types, sizes, *rest, given)
    want, *_ = reference.vertex_unit(
        *(UNIT, [graphs[0].tolist()], types.tolist(), sizes, *rest),
        [x.view(x.shape[0], -1).tolist() for x in given],
    )
    assert got.tolist() == want


def test_products_are_those_of_the_reference():
    want = reference.product_by_type(*map(torch.Tensor.tolist, arguments()))
    got = GSAMPLE.product_by_type(*arguments())
    torch.testing.assert_close(got, ROWS.new_tensor(want))
    x, y = ROWS, got
    want = reference.sum_outer_by_type(
        x.tolist(), y.tolist(), TYPE.tolist(), 5
    )
    got = GSAMPLE.sum_outer_by_type(x, y, TYPE, 5)
    torch.testing.assert_close(got, ROWS.new_tensor(want))


def arguments():
    return ROWS, MATRICES, TYPE


@pytest.mark.parametrize(('turned', 'heads'), [(False, ()), (True, (2,))])
def test_gradients_of_products(turned, heads):
    x = torch.randn(6, *heads, 4, dtype=torch.float64).requires_grad_()
    weight = torch.randn(4, 3, 4) if turned else torch.randn(4, 4, 3)
    weight = weight.double().requires_grad_()

    def product(x, weight):
        matrices = weight.transpose(1, 2) if turned else weight
        return GSAMPLE.product_by_type(x, matrices, TYPE)

    assert torch.autograd.gradcheck(product, (x, weight))
    assert torch.autograd.gradgradcheck(product, (x, weight))


def test_products_of_no_rows_and_of_no_types():
    none = TYPE[:0]
    out = GSAMPLE.product_by_type(ROWS[:0], MATRICES[:0], none)
    assert out.shape == (0, 3)
    out = GSAMPLE.sum_outer_by_type(ROWS[:0], ROWS[:0], none, 2)
    assert out.tolist() == torch.zeros(2, 4, 4).tolist()


def test_loops_can_be_removed():
    f = features('rgcn')
    edge_index = graph()
    kept = edge_index[0] != edge_index[1]
    assert not kept.all()
    got = PROGRAMS['rgcn'](edge_index, loops=Loops.REMOVE, **f)
    f['type'] = torch.where(kept, f['type'], 3)
    f['weight'] = torch.cat([f['weight'][:3], f['weight'][:1] * 0])
    torch.testing.assert_close(got, expected('rgcn', edge_index, f))


def test_tensors_of_inference_mode():
    f = {name: x.detach() for name, x in features('rgcn').items()}
    want = PROGRAMS['rgcn'](graph(), **f)
    with torch.inference_mode():
        f['type'] = f['type'].clone()
        assert torch.equal(PROGRAMS['rgcn'](graph().clone(), **f), want)


BAD_TYPES = [
    (TypeError, lambda t: t.double(), 'must hold integers'),
    (TypeError, lambda t: t > 0, 'must hold integers'),
    (ValueError, lambda t: t[1:], f'must have {E} elements'),
    (ValueError, lambda t: t[:, None], f'must have {E} elements'),
    (ValueError, lambda t: t - 3, 'must not be negative'),
    (ValueError, lambda t: t + 4, r'must be in \[0, 4\) \(got 6\)'),
]


@pytest.mark.parametrize('run', [lambda function: function, compiled])
def test_bad_types_are_errors(run, fresh_compiler):
    f = {name: x.detach() for name, x in features('rgcn').items()}
    call = run(lambda edges, f: PROGRAMS['rgcn'](edges, **f))
    for error, change, message in BAD_TYPES:
        with pytest.raises(error, match=f"vertex_program: 'type' {message}"):
            call(graph(), {**f, 'type': change(f['type'])})


@vertex_program
def scaled(v, weight):
    return sum(
        sum(e.src.h for e in es) @ weight[es.type] * v.s
        for es in v.inedges.by_type
    )


@vertex_program
def biased(v, weight):
    return sum(
        sum(e.src.h * weight[es.type] for e in es) for es in v.inedges.by_type
    )


@pytest.mark.parametrize(
    ('program', 'shape'), [(scaled, (4, 3, 2)), (biased, (4, 3))]
)
def test_values_of_types_go_with_parameters_only(program, shape):
    h, types = torch.ones(N, 3), torch.zeros(E, dtype=torch.int64)
    with pytest.raises(ValueError, match='values of a type combine only with'):
        program(graph(), h=h, s=h[:, :1], weight=torch.ones(shape), type=types)


def test_types_must_be_given():
    f = features('rgcn')
    del f['type']
    with pytest.raises(ValueError, match="'type' must be given for by_type"):
        PROGRAMS['rgcn'](graph(), **f)


@pytest.mark.parametrize(
    ('types', 'message'),
    [
        (TYPE.flip(0), 'must ascend'),
        (TYPE - 1, r'must be in \[0, 5\) \(got -1\)'),
        (TYPE + 2, r'must be in \[0, 5\) \(got 5\)'),
    ],
)
def test_products_check_their_types(types, message):
    with pytest.raises(ValueError, match=message):
        GSAMPLE.product_by_type(ROWS, MATRICES, types)
    with pytest.raises(ValueError, match=message):
        GSAMPLE.sum_outer_by_type(ROWS, ROWS, types, 5)
    with pytest.raises(RuntimeError, match='split_sizes'):
        GSAMPLE.product_by_type(ROWS, MATRICES, TYPE[:3])
