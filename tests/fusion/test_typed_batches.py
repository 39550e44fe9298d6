"""Batches of types and induced subgraphs."""

import copy
import itertools

import pytest
import torch
from torch_geometric import nn as pyg

from tests.fusion.models import (
    EDGE_TYPES,
    WIDTH,
    Hand,
    Typed,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_arguments_of_nodes import Transformer, Weighted
from tests.fusion.test_exact import (
    assert_same,
    homogeneous,
    seeds,
    typed_seeds,
)
from tests.fusion.test_exact import typed as of_types
from torch_gsample import fuse
from torch_gsample.loader import HGTLoader
from torch_gsample.loader.batch_edge_index import reading_marks

pytestmark = pytest.mark.usefixtures('double')


class Scaled(Weighted):
    """Reads all of a short table of each edge type."""

    def forward(self, x_dict, edge_index_dict, tables):
        scale = sum(x.mean() for x in tables.values())
        return super().forward(x_dict, edge_index_dict, scale=scale)


class WithTables(Transformer):
    """Passes a dict of tables: no more rows than any block has edges."""

    def __init__(self):
        super().__init__(Scaled)

    def forward(self, x, edge_index):
        tables = {key: torch.arange(3.0) for key in edge_index}
        for conv in self.convs:
            x = conv(x, edge_index, tables)
        return x


def test_tables_of_an_edge_type_are_not_cut():
    """A later batch may have fewer edges than a table has rows."""
    why = "a tensor of edge type '.*' has no row for each edge"
    with pytest.warns(UserWarning, match=why):
        assert_same(
            WithTables(), of_types, typed_seeds, batches(typed_graph())
        )


def test_a_fused_hgt_conv_runs_pygs_code_without_edges():
    batch, model = batches(typed_graph(), count=1)[0], Transformer()
    none = {key: torch.empty(2, 0).long() for key in EDGE_TYPES}
    want = copy.deepcopy(model)(batch.x_dict, none)
    fuse(model, min_nodes=0, verbose=False)
    out = model(batch.x_dict, none)
    for key, value in want.items():
        torch.testing.assert_close(out[key], value)


@pytest.mark.filterwarnings('error:fuse')
def test_a_batch_of_types_serves_inference_and_then_training():
    first, batch = batches(typed_graph(), [2, 2], 2, size=6)
    model = Transformer()
    fuse(model, min_nodes=0, verbose=False)
    model(first.x_dict, first.edge_index_dict)
    with torch.inference_mode():
        model(batch.x_dict, batch.edge_index_dict)
    out = model(batch.x_dict, batch.edge_index_dict)['a']
    out[: batch['a'].batch_size].sum().backward()


class OneType(Typed):
    """The last layer also computes types that nobody reads."""

    def __init__(self, norm=torch.nn.Identity, read=None):
        super().__init__()
        self.norms = torch.nn.ModuleDict(
            {kind: norm(WIDTH) for kind in ('a', 'b', 'c')}
        )
        self.read = read

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = conv(x, edge_index)
            x = {key: self.norms[key](y).relu() for key, y in x.items()}
        if self.read is not None:  # autograd does not see it
            x['a'] = x['a'] + self.read(x['b'].detach())
        return {'a': x['a']}


def one_type(*args):
    model = OneType(*args)
    return assert_same(model, of_types, typed_seeds, batches(typed_graph()))


@pytest.mark.filterwarnings('error:fuse')
@pytest.mark.parametrize('norm', [torch.nn.Identity, torch.nn.LayerNorm])
def test_types_that_nobody_reads_are_not_computed(norm):
    report = one_type(norm).report()
    assert 'all nodes' not in report
    assert report.count('the seeds') == len(EDGE_TYPES)


@pytest.mark.filterwarnings('error:fuse')
def test_types_that_autograd_does_not_see_are_computed():
    report = one_type(torch.nn.Identity, lambda x: x.mean()).report()
    assert report.count('all nodes') > len(EDGE_TYPES)
    assert 'the seeds' in report


@pytest.mark.filterwarnings('error:fuse')
def test_norms_of_no_rows_keep_their_statistics():
    model = OneType(torch.nn.BatchNorm1d)
    fuse(model, min_nodes=0, statistics='computed', verbose=False)
    for batch in batches(typed_graph()):
        out = model(batch.x_dict, batch.edge_index_dict)['a']
    assert not out[: batch['a'].batch_size].isnan().any()
    calls = [norm.num_batches_tracked for norm in model.norms.values()]
    assert calls[0] == 6
    assert calls[1] == 4  # not in the last layer


@pytest.mark.filterwarnings('error:fuse')
def test_the_last_layer_of_an_hgt_batch_computes_seeds():
    nodes = 'a', torch.arange(100)
    with reading_marks():
        loader = HGTLoader(typed_graph(), [20, 20], nodes, batch_size=12)
        samples = list(itertools.islice(loader, 2))
    assert len(samples[0].blocks) == 2
    report = assert_same(
        Transformer(), of_types, typed_seeds, samples
    ).report()
    assert report.count('computes the seeds') == 1
    assert report.count('exact block') == 3


@pytest.mark.filterwarnings('error:fuse')
def test_the_last_layer_of_an_induced_subgraph_computes_seeds():
    samples = batches(graph(), subgraph_type='induced')
    model = Hand('', 3, pyg.GCNConv)
    report = assert_same(model, homogeneous, seeds, samples).report()
    assert report.count('computes the seeds') == 1
    assert report.count('exact block') == 3
