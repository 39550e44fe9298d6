"""Graphs with few vertices, which PyG computes: Python takes longest."""

import copy
import sys

import pytest
import torch
from torch_geometric import nn as pyg

import torch_gsample
from torch_gsample import fuse
from torch_gsample.vertex import program

NODES, IN, OUT = 50, 8, 4
PACKAGE = torch_gsample.__path__[0]
PROGRAMS = program.__file__


def given():
    make = torch.Generator().manual_seed(3)
    edges = torch.randint(NODES, (2, 100), generator=make)
    return torch.randn(NODES, IN, generator=make), edges


def functions_of(call, path=PACKAGE):
    """The names of the Python functions of files that a call runs."""
    names = []

    def see(frame, event, _):
        if event == 'call' and frame.f_code.co_filename.startswith(path):
            names.append(frame.f_code.co_name)

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize('kind', [pyg.SAGEConv, pyg.GATConv, pyg.GATv2Conv])
def test_a_model_of_one_layer_runs_few_functions(kind):
    theirs = kind(IN, OUT)
    ours = copy.deepcopy(theirs)
    fuse(ours, verbose=False)
    x, edges = given()
    ours(x, edges)  # the first call finds the method of the model
    names = functions_of(lambda: ours(x, edges))
    assert len(names) <= 8, names
    torch.testing.assert_close(ours(x, edges), theirs(x, edges))


@pytest.mark.parametrize('pair', [True, False])
def test_pairs_of_features_have_results_of_pyg(pair):
    theirs = pyg.SAGEConv(IN, OUT)
    ours = copy.deepcopy(theirs)
    fuse(ours, verbose=False)
    x, edges = given()
    ends = (x, x[:40] if pair else None)
    edges[1] %= 40
    for _ in range(2):
        found = ours(ends, edges, (NODES, 40))
        torch.testing.assert_close(found, theirs(ends, edges, (NODES, 40)))


def test_kernels_run_a_larger_graph_after_a_small_one():
    theirs = pyg.SAGEConv(IN, OUT)
    ours = copy.deepcopy(theirs)
    fuse(ours, min_nodes=NODES, verbose=False)
    x, edges = given()
    small = x[: NODES - 1], edges.clamp(max=NODES - 2)
    for call in (small, small, (x, edges)):
        torch.testing.assert_close(ours(*call), theirs(*call))
    assert functions_of(lambda: ours(x, edges), PROGRAMS)
    assert not functions_of(lambda: ours(*small), PROGRAMS)
