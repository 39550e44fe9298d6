"""Natural programs run together: operators without a rule, for each batch."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.utils import scatter, softmax

import torch_gsample as gsample
from tests.compiler.programs import graph
from tests.compiler.test_programs import assert_same
from tests.compiler.test_super_batch import batches
from torch_gsample import super_batch
from torch_gsample.rng import make_key, program_scope

X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).double()
TOGETHER = 'several batches run together'


def without_seeds(A, seeds):
    S = A[:, seeds]
    return S.masked(~torch.isin(S.edges()[0], seeds)).individual_sample(2)


def unvisited(A, seeds):
    layers, seen = [], seeds
    for _ in range(2):
        layers.append(A[:, seeds].individual_sample(2))
        found = layers[-1].row()
        seeds = found[~torch.isin(found, seen)]
        seen = torch.cat([seen, seeds])
    return layers


def ordered(A, seeds):
    seeds, order = seeds.sort(descending=True)
    return A[:, seeds].individual_sample(2), order


def greatest(A, seeds):
    S = A[:, seeds]
    rows = S.sum(dim=1).topk(5).indices
    return A[:, rows].individual_sample(2), rows


def similar(A, seeds):
    S = A[:, seeds]
    source, target = S.edges()
    return S.individual_sample(
        2, F.cosine_similarity(X[source], X[target]).abs()
    )


def projected(A, seeds):
    S = A[:, seeds]
    score = S.sddmm(X @ X.T, X[seeds] @ X.T) ** 2
    return S.individual_sample(2, score.div(score.sum(dim=0)))


def mixed(A, seeds):
    S = A[:, seeds]
    share = S / S.sum(dim=0)[None] + 0.5 / S.degree(dim=0)
    return S.individual_sample(2, share)


def normalized(A, seeds):
    S = A[:, seeds]
    probs = S.degree(dim=1).double()
    return S.collective_sample(4, probs / probs.sum().clamp(min=1e-9))


def counted(A, seeds):
    S = A[:, seeds]
    counts = torch.bincount(S.coo()[0], minlength=S.num_rows)
    return S.collective_sample(4, counts.double())


def of_walks(A, seeds):
    walks = [A.random_walk(seeds, 3).nodes for _ in range(2)]
    nodes = torch.cat(walks).flatten()
    return A.induce(nodes[nodes >= 0].unique())


def halves(A, seeds):
    half = len(seeds) // 2
    first, rest = A[:, seeds[:half]], A[:, seeds[half:]]
    return first.individual_sample(2), rest.individual_sample(3), half


def pairs(A, seeds):
    S = A[:, seeds]
    both = torch.stack([S, S**2], dim=-1) @ torch.tensor([0.3, 0.7]).double()
    return S.individual_sample(2, both)


def relabeled(A, seeds):
    source, target = A[:, seeds].individual_sample(2).coo()
    node, local, count = torch.cat([seeds, source]).unique(
        return_inverse=True, return_counts=True
    )
    return node, local[len(seeds) :], count[local[target]], local.clone()


def attention(A, seeds):
    S = A[:, seeds]
    row, col = S.coo()
    mean = scatter(X[row], col, dim_size=len(seeds), reduce='mean')
    score = (X[row] * mean[col]).sum(dim=-1)
    return S.individual_sample(2, softmax(score, col, num_nodes=len(seeds)))


def rare_labels(A, seeds):
    S = A[:, seeds]
    row, col = S.coo()
    label = row % 3
    count = torch.zeros(len(seeds), 3).index_put(
        (col, label), torch.ones(len(row)), accumulate=True
    )
    return S.individual_sample(2, 1 / count[col, label])


def every_second(A, seeds):
    return A[:, seeds[::2]].individual_sample(2)


def running(A, seeds):
    S = A[:, seeds]
    total = S.values().cumsum(0)
    return S.with_value(total), total.median(), total.view(-1, 1)


PROGRAMS = {
    without_seeds: None,
    unvisited: None,
    ordered: 'sort',
    greatest: 'topk',
    similar: 'cosine_similarity',
    projected: 'matmul',
    mixed: None,
    normalized: 'sum',
    counted: None,
    of_walks: 'random_walk, flatten',
    halves: 'slice',
    pairs: 'stack, matmul',
    relabeled: None,
    attention: 'scatter_add',
    rare_labels: 'index_put, index',
    every_second: 'slice',
    running: 'cumsum, median',
}


@pytest.mark.filterwarnings('error:super_batch')
@pytest.mark.parametrize('program', PROGRAMS, ids=lambda f: f.__name__)
def test_batches_are_those_of_single_runs(program):
    torch._dynamo.reset()
    together, A = super_batch(program, 8, options={'strict': True}), graph()
    for sizes in ([5, 9, 6], [7], [8, 8, 8, 8]):
        key = torch.cat([make_key(i, 2, i) for i in range(len(sizes))])
        with program_scope(key):
            found = together(A, batches(sizes))
        for i, seeds in enumerate(batches(sizes)):
            with program_scope(key[i : i + 1]):
                assert_same(found[i], program(A, seeds))
    note, *each = together.notes
    assert note == TOGETHER
    called = PROGRAMS[program]
    assert each == ([f'called for each batch: {called}'] if called else [])


def test_probabilities_of_another_length_are_an_error():
    def counted(A, seeds):
        counts = torch.bincount(seeds, minlength=3)
        return A[:, seeds].collective_sample(2, counts.double())

    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match='invalid for input of size 5'):
        gsample.compile(counted)(graph(), torch.arange(5))


def test_draws_of_torch_are_not_repeated_for_several_batches():
    def dropped(A, seeds):
        S = A[:, seeds]
        return S.masked(torch.rand(S.num_edges) < 0.5)

    torch._dynamo.reset()
    together, A, seeds = super_batch(dropped, 4), graph(), batches([5, 3])
    torch.manual_seed(1)
    want = [dropped(A, s) for s in seeds]
    torch.manual_seed(1)
    found = together(A, seeds)
    assert_same(found, want)
    [note] = together.notes
    assert 'aten.rand' in note
    assert note.endswith('batches run one by one')
