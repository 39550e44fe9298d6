"""Blocks of layers that take all node types, or several node arguments."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg

from tests.fusion.models import (
    CLASSES,
    EDGE_TYPES,
    METADATA,
    WIDTH,
    batches,
    graph,
)
from tests.fusion.models import typed_graph as typed
from tests.fusion.test_exact import (
    assert_same,
    homogeneous,
    seeds,
    typed_seeds,
    unmarked,
)
from tests.fusion.test_exact import typed as of_types
from torch_gsample import fuse
from torch_gsample.fusion import cells
from torch_gsample.fusion.forms import edges_of

pytestmark = pytest.mark.usefixtures('double')


class Captured(pyg.HGTConv):
    """A layer of a user: its messages alone are fused."""

    propagate_type = {
        name: torch.Tensor for name in ('k', 'q', 'v', 'edge_attr')
    }


class Transformer(nn.Module):
    """A stack of layers that take all types in dicts."""

    def __init__(self, conv=pyg.HGTConv, layers=3):
        super().__init__()
        self.convs = nn.ModuleList(
            conv(WIDTH, WIDTH, METADATA, heads=2) for _ in range(layers)
        )

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = {k: v.tanh() for k, v in conv(x, edge_index).items()}
        return x


class Skipping(Transformer):
    """One type of the first layer is read again behind the last one."""

    def forward(self, x, edge_index):
        first = self.convs[0](x, edge_index)
        x = self.convs[2](self.convs[1](first, edge_index), edge_index)
        return {'a': x['a'] * first['a'] + first['a']}


class OneType(Transformer):
    """Only one relation of the last layer reaches the rows that are read."""

    def forward(self, x, edge_index):
        x = self.convs[1](self.convs[0](x, edge_index), edge_index)
        few = {('b', 'of', 'a'): edge_index['b', 'of', 'a']}
        return self.convs[2](x, few)


class Recomputed(Transformer):
    """Layers without kept activations."""

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = checkpoint(conv, x, edge_index, use_reentrant=False)
        return x


class Repeated(Transformer):
    """One layer three times, without kept activations."""

    def __init__(self):
        super().__init__(layers=1)

    def forward(self, x, edge_index):
        for _ in range(3):
            x = checkpoint(self.convs[0], x, edge_index, use_reentrant=False)
        return x


class Weighted(pyg.MessagePassing):
    """A layer of dicts that has features of the edges of each type."""

    def __init__(self, *_, **__):
        super().__init__('mean')
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x_dict, edge_index_dict, weights=None, scale=None):
        out = {key: x @ self.lin.weight for key, x in x_dict.items()}
        for key, edges in edge_index_dict.items():
            size = len(x_dict[key[0]]), len(x_dict[key[2]])
            x = self.lin(x_dict[key[0]])
            w = x.new_ones(edges.shape[1]) if weights is None else weights[key]
            out[key[2]] = out[key[2]] + scale * self.propagate(
                edges, x=(x, None), w=w, size=size
            )
        return out

    def message(self, x_j, w):
        return x_j * w.view(-1, 1)


class WithWeights(Transformer):
    """Passes a dict of weights, and a scalar tensor."""

    def __init__(self):
        super().__init__(Weighted)

    def forward(self, x, edge_index):
        make = torch.Generator().manual_seed(3)
        weights = {
            key: torch.rand(x.shape[1], generator=make)
            for key, x in edge_index.items()
        }
        for conv in self.convs:
            x = conv(x, edge_index, weights, torch.tensor(0.5))
        return x


DICTS = {
    'transformer': Transformer,
    'of a user': lambda: Transformer(Captured),
    'skipping': Skipping,
    'one relation': OneType,
    'recomputed': Recomputed,
    'weights of edges': WithWeights,
}


@pytest.mark.parametrize('kind', DICTS)
@pytest.mark.filterwarnings('error:fuse')
def test_layers_of_dicts_compute_blocks(kind):
    model = DICTS[kind]()
    fusion = assert_same(model, of_types, typed_seeds, batches(typed()))
    lines = fusion.report().splitlines()
    assert ['whole batch' in line for line in lines] == 4 * [False]
    depth = ['of 2 hops', 'of 1 hop', 'the seeds']
    for line, level in zip(lines[1:], depth, strict=True):
        assert level in line


@pytest.mark.filterwarnings('error:fuse')
def test_a_checkpoint_of_a_repeated_layer_recomputes_its_own_block():
    assert_same(Repeated(), of_types, typed_seeds, batches(typed()))


def test_layers_of_dicts_read_fewer_rows():
    batch, rows = batches(typed())[0], []
    model = Transformer(Captured)
    fuse(model, min_nodes=0, verbose=False)
    model(batch.x_dict, batch.edge_index_dict)
    for conv in model.convs:
        conv.kqv_lin.register_forward_pre_hook(
            lambda _, args: rows.append(sum(map(len, args[0].values())))
        )
    model(batch.x_dict, batch.edge_index_dict)
    blocks = list(batch.blocks)
    assert rows == [sum(block.num_src.values()) for block in blocks]
    assert rows[0] > rows[1] > rows[2]


def test_dicts_of_edges_are_those_of_one_batch_by_relation():
    first, second = (batch.edge_index_dict for batch in batches(typed()))
    known = {'edge_index_dict': first}
    assert edges_of(known) is first
    one, other = EDGE_TYPES[:2]
    assert edges_of({'edge_index_dict': {**first, one: second[one]}}) is None
    assert edges_of({'edge_index_dict': {one: first[other]}}) is None
    assert edges_of({'edge_index_dict': {one: first[one].plain}}) is None
    assert edges_of({'edge_index_dict': {}}) is None


def test_a_dict_with_other_edges_runs_on_whole_batches():
    batch = batches(typed())[0]
    model = Transformer()
    want = copy.deepcopy(model)
    fuse(model, min_nodes=0, verbose=False)
    edges = dict(batch.edge_index_dict)
    edges['a', 'cites', 'a'] = edges['a', 'cites', 'a'][:, ::2]
    with pytest.warns(UserWarning, match='edges are not those of a batch'):
        out = model(batch.x_dict, edges)['a']
    assert torch.allclose(out, want(batch.x_dict, edges)['a'])


def test_means_over_all_nodes_of_a_type_run_on_whole_batches():
    model = Transformer(pyg.HANConv, layers=1)
    with pytest.warns(UserWarning, match='depends on edges beyond'):
        assert_same(model, of_types, typed_seeds, batches(typed()))


# Several arguments of nodes ##################################################


class Several(nn.Module):
    """Layers that take more than features and edges."""

    def __init__(self, conv, call):
        super().__init__()
        self.convs = nn.ModuleList(conv() for _ in range(3))
        self.lin, self.call = nn.Linear(WIDTH, CLASSES), call

    def forward(self, x, edge_index):
        make = torch.Generator().manual_seed(5)
        first = x
        nodes = {
            'pos': torch.rand(len(x), 3, generator=make),
            'kind': torch.randint(3, (len(x),), generator=make),
        }
        edge_type = torch.randint(4, edge_index.shape[1:], generator=make)
        for conv in self.convs:
            x = self.call(conv, x, first, edge_index, nodes, edge_type).relu()
        return self.lin(x)


class Resting(pyg.MessagePassing):
    """Takes features under another name, and the input of the model."""

    def __init__(self):
        super().__init__('mean')
        self.lin = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, h, h_0, edge_index):
        out = self.propagate(edge_index, h=h)
        return self.lin(torch.cat([out, h_0[: len(out)]], dim=-1))

    def message(self, h_j):
        return h_j


class Weighing(pyg.MessagePassing):
    """Takes a feature of edges under an arbitrary name."""

    def __init__(self):
        super().__init__('mean')
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, edge_index, strength):
        return self.lin(self.propagate(edge_index, x=x, w=strength))

    def message(self, x_j, w):
        return x_j * w.view(-1, 1)


MLP = lambda n: nn.Sequential(nn.Linear(n, WIDTH), nn.Tanh())  # noqa: E731
SEVERAL = {
    'HEATConv': (
        lambda: pyg.HEATConv(WIDTH, WIDTH, 3, 4, 3, 3, 4),
        lambda c, x, x0, e, n, t: c(x, e, n['kind'], t, x.new_ones(len(t), 3)),
    ),
    'PointNetConv': (
        lambda: pyg.PointNetConv(MLP(WIDTH + 3)),
        lambda c, x, x0, e, n, t: c(x, n['pos'], e),
    ),
    'PointTransformerConv': (
        lambda: pyg.PointTransformerConv(WIDTH, WIDTH),
        lambda c, x, x0, e, n, t: c(x, n['pos'], e),
    ),
    'GCN2Conv': (
        lambda: pyg.GCN2Conv(WIDTH, 0.1, normalize=False),
        lambda c, x, x0, e, n, t: c(x, x0, e),
    ),
    'FAConv': (
        lambda: pyg.FAConv(WIDTH, normalize=False, add_self_loops=False),
        lambda c, x, x0, e, n, t: c(x, x0, e, 1.0 * t),
    ),
    'other names': (
        Resting,
        lambda c, x, x0, e, n, t: c(x, x0, e),
    ),
    'weights of edges': (
        Weighing,
        lambda c, x, x0, e, n, t: c(x, e, 1.0 + t),
    ),
    'computed rows': (
        Resting,
        lambda c, x, x0, e, n, t: c(x, x.tanh(), e),
    ),
}


@pytest.mark.parametrize('kind', SEVERAL)
@pytest.mark.filterwarnings('error:fuse')
def test_arguments_of_nodes_are_narrowed(kind):
    model = Several(*SEVERAL[kind])
    report = assert_same(model, homogeneous, seeds, batches(graph())).report()
    assert 'the seeds' in report
    assert 'whole batch' not in report


def test_arguments_of_other_rows_run_on_whole_batches():
    model = Several(
        Resting, lambda c, x, x0, e, n, t: c(x, torch.cat([x0, x0]), e)
    )
    report = assert_same(model, homogeneous, seeds, batches(graph())).report()
    assert report.count("'h_0' has no row for each edge or node") == 3


# Products by type ############################################################


def typed_rows():
    make = torch.Generator().manual_seed(0)
    types = torch.tensor([0, 0, 2, 2, 2, 4])  # 1 and 3 have no rows
    return torch.randn(6, WIDTH, generator=make, requires_grad=True), types


@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('is_sorted', [True, False])
def test_typed_products_equal_those_of_pyg(bias, is_sorted):
    x, types = typed_rows()
    types = types if is_sorted else types.flip(0)
    model = Holding(pyg.HeteroLinear(WIDTH, 3, 5, is_sorted, bias=bias))
    want = grads(model.product(x, types), [x, *model.product.parameters()])
    fuse(model, min_nodes=0, verbose=False)
    assert isinstance(model.product, cells.TypedProduct)
    got = grads(model.product(x, types), [x, *model.product.parameters()])
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b) or torch.allclose(a, b, rtol=1e-12)


def test_typed_products_under_autocast_have_the_dtype_of_their_rows():
    x, types = typed_rows()
    model = Holding(pyg.HeteroLinear(WIDTH, 3, 5)).float()
    x = x.detach().float()
    with torch.autocast('cpu', torch.bfloat16):
        want = model.product(x, types)
        fuse(model, min_nodes=0, verbose=False)
        got = model.product(x, types)
    assert got.dtype == want.dtype == torch.float32
    assert torch.equal(got, want)


class Holding(nn.Module):
    """A model that has a product by type next to a layer."""

    def __init__(self, product):
        super().__init__()
        self.product, self.conv = product, pyg.SAGEConv(WIDTH, WIDTH)


def grads(out, inputs):
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
    return [out, *torch.autograd.grad((out * weights).sum(), inputs)]


def test_copies_of_a_fused_transformer_compute_the_same():
    batch = batches(typed())[0]
    model = Transformer()
    want = model(unmarked(batch).x_dict, unmarked(batch).edge_index_dict)
    fuse(model, min_nodes=0, verbose=False)
    out = copy.deepcopy(model)(batch.x_dict, batch.edge_index_dict)
    rows = batch['a'].batch_size
    assert torch.allclose(out['a'][:rows], want['a'][:rows])
