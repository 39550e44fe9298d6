"""Bad input of ProgramSampler, and bad output of programs."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs, programs
from tests.samplers.graphs import RATES
from torch_gsample import ProgramSampler, SparseSample
from torch_gsample.csc import CSC

DATA, TYPED = graphs.homogeneous(), graphs.heterogeneous()


@pytest.mark.parametrize(
    ('options', 'error', 'text'),
    [
        (
            {'program': 'ladies'},
            TypeError,
            r"ProgramSampler: 'program' must be a function .*'ladies'",
        ),
        (
            {'sede': 3},
            TypeError,
            r"ProgramSampler: unknown argument 'sede' .*mean 'seed'\?",
        ),
        (
            {'fanouts': []},
            ValueError,
            r"ProgramSampler: 'fanouts' must not be empty \(got \[\]\)",
        ),
        (
            {'fanouts': 5},
            TypeError,
            r"ProgramSampler: 'fanouts' must be a list of integers.*\(got 5",
        ),
        (
            {'fanouts': [2.5]},
            TypeError,
            r"ProgramSampler: 'fanouts' must hold integers \(got 2.5\)",
        ),
        (
            {'fanouts': [3, -2]},
            ValueError,
            r"ProgramSampler: 'fanouts' must be -1 \(all\).*\(got -2\)",
        ),
        (
            {'fanouts': {RATES: [2]}},
            ValueError,
            r"ProgramSampler: the keys of 'fanouts' must be edge types of",
        ),
        (
            {'weight_attr': 'heaviness'},
            ValueError,
            "ProgramSampler: the weight attribute 'heaviness' is not an edge",
        ),
        (
            {'weight_attr': 'x'},
            ValueError,
            "ProgramSampler: the weight attribute 'x' is not an edge-level",
        ),
        (
            {'rng_scope': 'run'},
            ValueError,
            r"ProgramSampler: 'rng_scope' must be 'batch' or 'epoch'.*'run'",
        ),
        (
            {'exclude_seed_edges': 'both'},
            ValueError,
            r"ProgramSampler: 'exclude_seed_edges' must be one of .*'both'",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_options(options, error, text):
    options = {'program': programs.sage, 'fanouts': [2]} | options
    with pytest.raises(error, match=text):
        ProgramSampler(DATA, **options)


def test_bad_fanouts_of_types():
    with pytest.raises(ValueError, match="'fanouts' must not be empty"):
        ProgramSampler(TYPED, programs.typed_sage, {})
    with pytest.raises(ValueError, match=r"keys of 'fanouts'.*'a', 'b', 'c'"):
        ProgramSampler(TYPED, programs.typed_sage, {('a', 'b', 'c'): [1]})
    with pytest.raises(ValueError, match=r"'fanouts' must be -1.*got -3"):
        ProgramSampler(TYPED, programs.typed_sage, {RATES: [-3]})


def test_fanouts_are_checked_when_they_are_set():
    sampler = ProgramSampler(DATA, programs.sage, [2])
    with pytest.raises(ValueError, match="'fanouts' must not be empty"):
        sampler.fanouts = ()
    sampler.fanouts = (3, 1)
    assert sampler.fanouts == [3, 1]


def new_matrix(A, seeds):
    rows = torch.tensor([5])
    return SparseSample.from_coo(rows, rows, shape=(30, 30))


@pytest.mark.parametrize(
    ('program', 'error', 'text'),
    [
        (
            lambda A, seeds: None,
            TypeError,
            r"'program' must return a SparseSample or a list of them.*NoneT",
        ),
        (lambda A, seeds: [], TypeError, r"'program' must return.*\(got \[\]"),
        (
            lambda A, seeds: [A[:, seeds], seeds],
            TypeError,
            r"'program' must return .*\(got \['Tensor'\]\)",
        ),
        (
            lambda A, seeds: {RATES: A},
            TypeError,
            r"'program' must return .*\(got a dict\)",
        ),
        (
            lambda A, seeds: [A[:, seeds], A[:, [25]]],
            ValueError,
            r'must be seeds or rows of earlier layers \(column 25 of layer 1 ',
        ),
        (
            lambda A, seeds: [A[:, [25]]],
            ValueError,
            r'must be seeds or rows of earlier layers \(column 25 of layer 0 ',
        ),
        (
            new_matrix,
            ValueError,
            r'must be edges of the graph \(edge 0 is not 5 -> 5\).*own_edges',
        ),
        (
            lambda A, seeds: SparseSample.from_coo(
                seeds, seeds, None, (9, 40)
            ),
            ValueError,
            r"without 'col_ids' .* at most 30 cols.*\(got 40\)",
        ),
        (
            lambda A, seeds: ([A[:, seeds]], seeds),
            TypeError,
            r'node attributes .* must be a dictionary by name \(got Tensor\)',
        ),
        (
            lambda A, seeds: ([A[:, seeds]], {'p': seeds}),
            ValueError,
            r"node attribute 'p' .* 30 rows, .*\(got shape \[1\]\)",
        ),
        (
            lambda A, seeds: ([A[:, seeds]], {'p': torch.ones(31, 2)}),
            ValueError,
            r"node attribute 'p' .* 30 rows, .*\(got shape \[31, 2\]\)",
        ),
        (
            lambda A, seeds: [A[:, seeds], A[:, torch.cat([seeds, seeds])]],
            ValueError,
            r'columns of a matrix .* must be distinct nodes \(got 4 repeated',
        ),
        (
            lambda A, seeds: (A[:, seeds], {'p': 0.5}),
            ValueError,
            r"node attribute 'p' .* 30 rows, .*\(got float\)",
        ),
    ],
)
def test_bad_returns(program, error, text):
    sampler = ProgramSampler(DATA, program)
    with pytest.raises(error, match='ProgramSampler: .*' + text):
        sampler.sample_from_nodes(graphs.nodes([4]))


#: Edges 0 to 3 lead to the nodes 4 and 9, edges 4 and 5 elsewhere.
ENDS = torch.tensor([[5, 6, 7, 8, 5, 8], [4, 4, 9, 9, 1, 1]])


@pytest.mark.parametrize(
    ('row', 'edge', 'text'),
    [
        ([5, 6, 7, 8], [1, 1, 2, 3], 'edge 1 is not 5 -> 4'),
        ([5, 6, 7, 8], [4, 1, 2, 3], 'edge 4 is not 5 -> 4'),
        ([6, 6, 7, 8], [0, 1, 2, 3], 'edge 0 is not 6 -> 4'),
        ([5, 6, 7, 8], [0, 1, 2, 2], 'edge 2 is not 8 -> 9'),
        ([5, 6, 7, 8], [0, 1, 2, 5], 'edge 5 is not 8 -> 9'),
        ([5, 6, 7, 7], [0, 1, 2, 3], 'edge 3 is not 7 -> 9'),
        ([5, 6, 7, 8], [0, 1, 2, 3], None),
    ],
)
def test_the_first_and_the_last_edge_are_looked_up(row, edge, text):
    def program(A, seeds):
        layout = CSC(torch.tensor([0, 2, 4]), torch.tensor(row), 10)
        ids = torch.tensor(edge)
        return SparseSample(layout, None, (10, 2), None, ids, None, seeds)

    sampler = ProgramSampler(Data(edge_index=ENDS, num_nodes=10), program)
    if text is None:
        out = sampler.sample_from_nodes(graphs.nodes([4, 9]))
        assert out.edge.tolist() == edge
        return
    with pytest.raises(ValueError, match=text):
        sampler.sample_from_nodes(graphs.nodes([4, 9]))


@pytest.mark.parametrize(
    ('program', 'error', 'text'),
    [
        (
            lambda A, seeds: A[RATES],
            TypeError,
            r'a dictionary of SparseSamples by edge type.*\(got a SparseS',
        ),
        (
            lambda A, seeds: {('a', 'b', 'c'): A[RATES]},
            ValueError,
            r'must be of edge types .*\(got .*a.*b.*c',
        ),
        (
            lambda A, seeds: ([{}], {'p': torch.ones(3)}),
            TypeError,
            r'must be a dictionary by name, of each node type \(got dict\)',
        ),
        (
            lambda A, seeds: ([{}], {'cat': {'p': torch.ones(3)}}),
            ValueError,
            r"must be of node types .*\(got 'cat'\)",
        ),
        (
            lambda A, seeds: [{RATES: A[RATES][:, [3]]}],
            ValueError,
            r'must be seeds or rows of earlier layers \(column 3 of layer 0',
        ),
    ],
)
def test_bad_typed_returns(program, error, text):
    sampler = ProgramSampler(TYPED, program)
    with pytest.raises(error, match='ProgramSampler: .*' + text):
        sampler.sample_from_nodes(graphs.nodes([4], 'item'))


def test_bad_seeds():
    sampler = ProgramSampler(DATA, programs.sage, [2])
    with pytest.raises(
        IndexError, match=r"ProgramSampler: 'seeds' must be in \[0, 30\)"
    ):
        sampler.sample_from_nodes(graphs.nodes([30]))
    with pytest.raises(
        IndexError, match=r"ProgramSampler: 'seeds' must be in \[0, 30\)"
    ):
        sampler.sample_from_edges(graphs.links([(3, -1)]))
    typed = ProgramSampler(TYPED, lambda A, seeds: [{}])
    typed.sample_from_edges(graphs.links([(11, 14)], RATES))
    with pytest.raises(IndexError, match=r"'seeds' must be in \[0, 12\) "):
        typed.sample_from_edges(graphs.links([(12, 14)], RATES))
    with pytest.raises(ValueError, match="has no node type 'cat'"):
        sampler.sample_from_nodes(graphs.nodes([3], 'cat'))


def test_labels_of_triplets():
    sampler = ProgramSampler(DATA, programs.sage, [2])
    with pytest.raises(ValueError, match="ProgramSampler: 'edge_label' must"):
        sampler.sample_from_edges(
            graphs.links([(3, 1)], label=[1]), NegativeSampling('triplet')
        )


def test_errors_of_a_program_come_as_they_are():
    def program(A, seeds):
        raise RuntimeError('out of ink')

    sampler = ProgramSampler(DATA, program)
    with pytest.raises(RuntimeError, match='out of ink'):
        sampler.sample_from_nodes(graphs.nodes([3]))
