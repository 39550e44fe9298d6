"""Matrices on a device, in pinned memory, or with values of a dtype."""

import pickle

import pytest
import torch

import torch_gsample as gsample
from tests.sparse_sample.cases import case
from torch_gsample import SparseSample
from torch_gsample.sparse_sample.parts import Parts

TENSORS = 'value', '_edge_id', 'row_ids', 'col_ids'


def matrix() -> SparseSample:
    """One that has all tensors, by column and by row."""
    A = case('random').matrix[torch.arange(6), torch.arange(4)]
    A.csr  # noqa: B018  (made at its first use)
    return A


def tensors(A: Parts) -> list[torch.Tensor]:
    layouts = [x for x in (A._csc, A._csr) if x is not None]
    found = [getattr(A, name) for name in TENSORS]
    found += [t for x in layouts for t in (x.indptr, x.indices, x.edge_id)]
    return [t for t in found if t is not None]


MOVES = {
    'to': lambda A: A.to('meta'),
    'to-device': lambda A: A.to(torch.device('meta')),
    'cuda': lambda A: A.cuda('meta'),
}


@pytest.mark.parametrize('name', MOVES)
def test_all_tensors_move(name):
    A = matrix()
    out = MOVES[name](A)
    assert type(out) is SparseSample
    assert out.device == torch.device('meta')
    assert [t.shape for t in tensors(out)] == [t.shape for t in tensors(A)]
    assert {t.device.type for t in tensors(out)} == {'meta'}
    assert {t.device.type for t in tensors(A)} == {'cpu'}


def test_nothing_is_copied_where_it_is_there_already():
    A = matrix()
    for out in (A.to('cpu'), A.cpu(), A.to(A.dtype), A.to()):
        assert list(map(id, tensors(out))) == list(map(id, tensors(A)))


@pytest.mark.parametrize('value', [True, False])
def test_the_dtype_is_that_of_the_values(value):
    A = matrix() if value else matrix().with_value(None)
    for out in (A.to(torch.float16), A.to('cpu', dtype=torch.float16)):
        assert out.dtype == torch.float16
        assert torch.equal(out.values(), A.values().half())
        assert torch.equal(out.edge_id, A.edge_id)


@pytest.mark.parametrize('compiled', [False, True])
def test_gradients_and_draws_go_through_a_move(compiled):
    A = case('random').matrix
    value = A.value.clone().requires_grad_()

    def program(A):
        return A.cpu().to('cpu', torch.float32).individual_sample(2)

    run = gsample.compile(program) if compiled else program
    torch.manual_seed(1)
    out = run(A.with_value(value))
    torch.manual_seed(1)
    want = A.individual_sample(2)
    assert torch.equal(out.edge_id, want.edge_id)
    assert out.dtype == torch.float32
    out.value.sum().backward()
    chosen = torch.zeros_like(value).index_fill(0, want.edge_id, 1)
    assert torch.equal(value.grad, chosen)


def test_shared_memory_holds_all_tensors():
    A = matrix()
    assert A.share_memory_() is A
    assert all(t.is_shared() for t in tensors(A))


def test_a_matrix_is_pickled_with_all_tensors():
    A = matrix()
    copy = pickle.loads(pickle.dumps(A))
    for x, y in zip(tensors(copy), tensors(A), strict=True):
        assert torch.equal(x, y)


def test_all_tensors_are_copied_to_pinned_memory(monkeypatch):
    monkeypatch.setattr(torch.Tensor, 'pin_memory', lambda tensor: -tensor)
    A = matrix()
    for x, y in zip(tensors(A.pin_memory()), tensors(A), strict=True):
        assert torch.equal(x, -y)
