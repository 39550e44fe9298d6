import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.ops.compare import assert_equals_reference
from torch_gsample import SparseSample, explain, ops, super_batch
from torch_gsample.rng import make_key, program_scope
from torch_gsample.testing import SMALL_GRAPHS, random_graph, small_graph

BIG = random_graph(20_000, 200_000, num_rows=500, seed=1)


def masked(indptr, mask):
    out = assert_equals_reference(
        'mask_columns', indptr, mask, operator=ops.mask_columns
    )
    assert [t.dtype for t in out] == [indptr.dtype, torch.int64]
    return out


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_masks_equal_the_reference(name, dtype):
    graph = small_graph(name)
    indptr, size = graph.indptr.to(dtype), graph.indices.numel()
    for share in (0.0, 0.1, 0.9, 1.0):
        generator = torch.Generator().manual_seed(size)
        masked(indptr, torch.rand(size, generator=generator) < share)


def test_an_empty_matrix_has_no_masked_edges():
    out = masked(torch.tensor([0]), torch.zeros(0, dtype=torch.bool))
    assert [t.tolist() for t in out] == [[0], []]


@pytest.mark.parametrize('share', [0.01, 0.5, 1.0])
def test_large_masks_are_equal_for_any_threads(share):
    mask = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    mask = mask < share
    edge = mask.nonzero().view(-1)
    indptr = torch.searchsorted(edge, BIG.indptr.long())
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            out = ops.mask_columns(BIG.indptr, mask)
            assert torch.equal(out[0].long(), indptr)
            assert torch.equal(out[1], edge)
    finally:
        torch.set_num_threads(before)


def test_a_view_of_other_bytes_is_a_mask():
    mask = torch.tensor([0, 2, 255, 0, 7], dtype=torch.uint8).view(torch.bool)
    indptr, edge = ops.mask_columns(torch.tensor([0, 2, 5]), mask)
    assert indptr.tolist() == [0, 1, 3]
    assert edge.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    'indptr', [[1, 2, 3], [0, 4, 3], [0, 2, 2], [0, -1, 3], [0, 2, 1 << 40]]
)
def test_malformed_pointers_are_refused(indptr):
    mask = torch.ones(3, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="'indptr' must ascend from 0 to"):
        ops.mask_columns(torch.tensor(indptr), mask)


def dropped(A, seeds):
    S = A[:, seeds]
    S = S.masked(S > 0.5)
    return S.csc.indptr, S.edges(), S.individual_sample(2).edges()


def test_compiled_masks_are_one_operator_and_equal():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(100, (2, 2_000), generator=generator)
    weight = torch.rand(2_000, generator=generator)
    A = SparseSample.from_edge_index(edges, weight)
    batches = [torch.arange(0, 100, step) for step in (3, 7, 50)]
    with program_scope(make_key(0)):
        text = str(explain(dropped, A, batches[0]))
    assert 'gsample.mask_columns' in text
    assert 'nonzero' not in text
    assert 'cumsum' not in text
    keys = [make_key(0, 0, i) for i in range(3)]
    want = []
    for key, seeds in zip(keys, batches, strict=True):
        with program_scope(key):
            want.append(dropped(A, seeds))
    together = super_batch(dropped, 3)
    with program_scope(torch.cat(keys)):
        found = together(A, batches)
    assert together.notes[0] == 'several batches run together'
    for x, y in zip(found, want, strict=True):
        assert all(map(torch.equal, tree_leaves(x), tree_leaves(y)))
