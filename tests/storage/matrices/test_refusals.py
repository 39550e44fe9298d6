"""Errors of a matrix on disk name a supported alternative."""

import pickle

import pytest
import torch

from tests.storage.matrices import programs
from torch_gsample import SparseSample
from torch_gsample.sparse_sample.old_names import OLD_NAMES
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.matrices import operators
from torch_gsample.storage.matrices.deferred import Deferred
from torch_gsample.storage.matrices.matrix import StoredMatrix

ONES = torch.ones(programs.NODES)
REFUSED = {
    'individual_sample': lambda A: A.individual_sample(2),
    'labor_sample': lambda A: A.labor_sample(2),
    'coo': lambda A: A.coo(),
    'values': lambda A: A.values(),
    'value': lambda A: A.value,
    'csc': lambda A: A.csc,
    'csr': lambda A: A.csr,
    'edge_id': lambda A: A.edge_id,
    'to_dense': lambda A: A.to_dense(),
    'to_data': lambda A: A.to_data(),
    'compact': lambda A: A.compact(),
    'matmul': lambda A: A @ ONES,
    'values ': lambda A: ONES @ A,
    'softmax': lambda A: A.softmax(dim=0),
    'row': lambda A: A.row(),
    'masked': lambda A: A.masked(ONES > 0),
    'with_value': lambda A: A.with_value(ONES),
    'cuda': lambda A: A.cuda(),
    'top': lambda A: A.top(2),
}


@pytest.mark.parametrize('name', REFUSED)
def test_operations_on_all_edges_raise(stored, name):
    A = stored[False][1].matrix()
    with pytest.raises(ValueError, match=rf'{name}.*on disk.*use'):
        REFUSED[name](A)


def test_every_method_works_or_is_refused():
    """No method of a matrix is left that would fail in another way."""
    own = {**vars(Deferred), **vars(StoredMatrix)}
    inherited = {
        name
        for name in dir(SparseSample)
        if not (name in own or name in OLD_NAMES or name.startswith('_'))
    }
    assert inherited == {
        *('collective_sample', 'col_ids', 'from_coo', 'from_csc', 'from_csr'),
        *('from_data', 'from_edge_index', 'num_cols', 'num_rows', 'row_ids'),
        *('shape', 'visit_count'),
    }


def test_rows_that_are_not_stored_are_named(tmp_path):
    data = programs.make_data()
    A = programs.on_disk(tmp_path / 'g', data, False, rows=False).matrix()
    for name in programs.BY_ROW:
        with pytest.raises(ValueError, match=r"stored .*'graph\.write"):
            programs.run(programs.PROGRAMS[name], A)
    for name in set(programs.PROGRAMS) - programs.BY_ROW:
        programs.run(programs.PROGRAMS[name], A)


@pytest.mark.parametrize(
    ('call', 'error', 'match'),
    [
        (lambda A: A[:, [300]], IndexError, 'cols'),
        (lambda A: A[:, [-301]], IndexError, 'cols'),
        (lambda A: A[[300], :], IndexError, 'rows'),
        (lambda A: A[0], IndexError, 'pair'),
        (lambda A: A.sum(), ValueError, "'dim'"),
        (lambda A: A.sum(dim=2), IndexError, "'dim'"),
        (lambda A: A * A, TypeError, '__mul__'),
        (lambda A: A.div(ONES[1:], dim=0), ValueError, 'div.*300'),
        (lambda A: A.random_walk(torch.tensor([300]), 2), IndexError, 'seed'),
        (lambda A: A.random_walk(torch.tensor([0]), -1), ValueError, 'length'),
        (
            lambda A: A.random_walk(torch.tensor([0]), 2, 1.5),
            ValueError,
            'restart',
        ),
        (
            lambda A: A.random_walk(torch.tensor([0]), 2, probs=ONES),
            ValueError,
            'probs',
        ),
        (
            lambda A: A.node2vec_walk(torch.tensor([0]), 2, 0.0, 1.0),
            ValueError,
            "'p'",
        ),
        (
            lambda A: A.mul(ONES.clone().requires_grad_(), dim=0).sum(dim=0),
            ValueError,
            'gradient',
        ),
    ],
)
def test_bad_arguments_are_named(stored, call, error, match):
    with pytest.raises(error, match=match):
        call(stored[True][1].matrix())


@pytest.mark.parametrize(
    ('options', 'match'),
    [
        ({'cache_bytes': -1}, 'cache_bytes'),
        ({'engine': 'mmap'}, 'engine'),
    ],
)
def test_bad_options_are_named(stored, options, match):
    with pytest.raises(ValueError, match=match):
        stored[False][1].matrix(**options)


def test_a_relation_that_is_not_there_is_named(stored):
    with pytest.raises(KeyError, match='must be one of'):
        stored[False][1].matrix(('a', 'to', 'b'))


def test_a_handle_that_names_nothing_is_an_error():
    with pytest.raises(RuntimeError, match='is closed'):
        operators.read_edges(
            torch.tensor([1 << 40]), torch.tensor([0]), 0, torch.int32
        )


def test_a_pickled_matrix_opens_the_files_again(stored):
    A, graph = stored[True]
    B = pickle.loads(pickle.dumps(graph.matrix(cache_bytes=4096)))
    program = programs.PROGRAMS['walks']
    want = programs.run(program, A, True)
    programs.assert_same(programs.run(program, B, True), want)


def test_pickled_extracts_contain_their_edges(stored):
    _A, graph = stored[True]
    part = graph.matrix()[:, programs.SEEDS]  # it keeps the files open
    for made in (part, part.compact(), graph.matrix()[programs.SEEDS, :]):
        copy = pickle.loads(pickle.dumps(made))
        assert type(copy) is SparseSample
        programs.assert_same(programs.flat(copy), programs.flat(made))


def test_a_matrix_says_where_its_edges_are(stored):
    graph = stored[False][1]
    A = graph.matrix()
    assert str(graph.path) in repr(A)
    assert 'num_edges=4000' in repr(A)
    assert A.num_edges == 4000
    assert A.shape == (300, 300)
    assert A.dtype == torch.float32
    assert A.device.type == 'cpu'
    assert isinstance(graph, ChunkedGraph)
    assert A.cpu() is A
