import pytest
import torch
from scipy import stats

from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.testing import SMALL_GRAPHS, random_graph, small_graph

QUADRANTS = [0.57, 0.19, 0.19, 0.05]


# Configuration model.


@pytest.mark.parametrize('wide', [False, True])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_matchings_equal_the_reference(name, wide):
    indptr = small_graph(name).indptr
    for seed in (0, -1, 2**40):
        out = assert_equals_reference(
            'configuration_model', indptr, seed, wide
        )
        assert out.dtype == (torch.int64 if wide else torch.int32)


def test_long_matchings_equal_the_reference():
    # More than the 512 swaps that are drawn together, thrice.
    indptr = random_graph(300, 1_400, seed=0).indptr
    assert_equals_reference('configuration_model', indptr, 5, True)


def test_matchings_keep_the_degrees(threads):
    indptr = random_graph(20_000, 100_000, seed=1).indptr
    for dtype in (torch.int32, torch.int64):
        for pointers in (indptr, indptr.int()):
            indices = ops.configuration_model(pointers, 0, dtype)
            assert indices.dtype == dtype
            degree = torch.bincount(indices, minlength=20_000)
            assert torch.equal(degree, indptr.diff())


def test_matchings_do_not_depend_on_the_threads():
    indptr = random_graph(20_000, 100_000, seed=1).indptr
    matchings = []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        matchings.append(ops.configuration_model(indptr, 7))
    assert torch.equal(matchings[0], matchings[1])
    assert torch.equal(matchings[0], matchings[2])


def test_every_matching_is_equally_likely():
    indptr = torch.arange(5)  # 4 stubs: 24 permutations
    seen = torch.zeros(256, dtype=torch.int64)
    for seed in range(6_000):
        a, b, c, d = ops.configuration_model(indptr, seed).tolist()
        seen[64 * a + 16 * b + 4 * c + d] += 1
    counts = seen[seen > 0]
    assert len(counts) == 24
    assert stats.chisquare(counts.numpy()).pvalue > 0.001


# R-MAT.


@pytest.mark.parametrize('scale', [0, 1, 3, 4, 5, 8, 16, 30, 31, 40])
def test_rmat_edges_equal_the_reference(scale):
    for quadrants in (QUADRANTS, [1, 0, 0, 0], [0, 0, 0, 1], [0.25] * 4):
        row, col = assert_equals_reference(
            'rmat_edges', scale, 40, [float(q) for q in quadrants], 3
        )
        want = torch.int32 if scale < 31 else torch.int64
        assert row.dtype == col.dtype == want


def test_rmat_edges_do_not_depend_on_the_threads(threads):
    row, col = ops.rmat_edges(12, 100_000, QUADRANTS, 1)
    for part in (0, 16_384, 50_000, 99_990):
        stop = part + 10
        few = ops.rmat_edges(12, stop, QUADRANTS, 1)
        assert torch.equal(few[0][part:], row[part:stop])
        assert torch.equal(few[1][part:], col[part:stop])


def test_rmat_edges_fall_into_the_quadrants():
    levels = 8
    row, col = ops.rmat_edges(levels, 40_000, QUADRANTS, 2)
    for level in range(levels):
        quadrant = (row >> level & 1) * 2 + (col >> level & 1)
        counts = torch.bincount(quadrant, minlength=4).double()
        expected = torch.tensor(QUADRANTS, dtype=torch.float64) * 40_000
        assert stats.chisquare(counts, expected).pvalue > 0.001


def test_levels_of_an_rmat_edge_are_independent():
    row, col = ops.rmat_edges(5, 40_000, [0.25] * 4, 4)
    cells = (row[:-1] * 32 + col[:-1]).long()
    counts = torch.bincount(cells, minlength=1_024)
    assert stats.chisquare(counts.numpy()).pvalue > 0.001
    near = torch.bincount((row[:-1] % 8 * 8 + row[1:] % 8).long())
    assert stats.chisquare(near.numpy()).pvalue > 0.001


def test_seeds_give_other_graphs():
    assert not torch.equal(
        ops.rmat_edges(10, 50, QUADRANTS, 1)[0],
        ops.rmat_edges(10, 50, QUADRANTS, 2)[0],
    )
    indptr = torch.arange(50)
    assert not torch.equal(
        ops.configuration_model(indptr, 1), ops.configuration_model(indptr, 2)
    )
