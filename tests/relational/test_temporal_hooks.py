"""Neighbours and negatives of batches of events, against plain loops."""

from types import SimpleNamespace

import pytest
import torch
from scipy.stats import chisquare

from torch_gsample.relational import (
    RecentNeighborHook,
    TemporalNegatives,
    TemporalNegativesHook,
)
from torch_gsample.rng import hash_ids

NODES = 12


def events(count=90, width=60):
    generator = torch.Generator().manual_seed(1)
    src = torch.randint(4, (count,), generator=generator)
    dst = torch.randint(4, NODES, (count,), generator=generator)
    time = torch.randint(width, (count,), generator=generator).sort().values
    return src, dst, time


def batch_of(log, first, last):
    src, dst, time = (part[first:last] for part in log)
    return SimpleNamespace(edge_src=src, edge_dst=dst, edge_time=time)


def last_of(log, node, until, k, directed):
    """The events of a node before a time, the latest last."""
    found = []
    for i, (u, v, t) in enumerate(
        zip(*(p.tolist() for p in log), strict=True)
    ):
        if t < until and u == node:
            found.append((v, t, i))
        if t < until and v == node and not directed:
            found.append((u, t, i))
    found = found[-k:]
    return [(-1, 0, None)] * (k - len(found)) + found


@pytest.mark.parametrize('directed', [False, True])
def test_neighbours_are_the_last_before_the_batch(directed):
    src, dst, time = events()
    log = src, dst, time - 20  # padded seeds have the time 0
    x = torch.arange(1.0, 91)[:, None]
    hook = RecentNeighborHook(
        *log, NODES, [3, 2], ['edge_src', 'edge_dst', 'edge_time'][:2],
        ['edge_time'] * 2, directed=directed, edge_x=x,
    )  # fmt: skip
    real = 0
    for first in (60, 0, 30):  # in any order
        batch = hook(None, batch_of(log, first, first + 10))
        start = int(batch.edge_time[0])
        mask = batch.seed_node_nbr_mask['edge_dst']
        assert torch.equal(batch.seed_nids[0][mask].long(), batch.edge_dst)
        for hop, k in enumerate((3, 2)):
            seeds = batch.seed_nids[hop].tolist()
            times = batch.seed_times[hop].tolist()
            for i, (node, time) in enumerate(zip(seeds, times, strict=True)):
                want = last_of(log, node, min(time, start), k, directed)
                if node < 0:
                    want = [(-1, 0, None)] * k
                got = zip(
                    batch.nbr_nids[hop][i].tolist(),
                    batch.nbr_edge_time[hop][i].tolist(),
                    batch.nbr_edge_x[hop][i, :, 0].tolist(),
                    strict=True,
                )
                assert list(got) == [
                    (v, t, 0.0 if e is None else e + 1.0) for v, t, e in want
                ]
                real += sum(v >= 0 for v, _, _ in want)
    assert real > 50
    assert not hook.has_state


def negatives(log, **options):
    return TemporalNegatives(
        *log, NODES, 5, **({'num_historical': 3, 'seed': 4} | options)
    )


def test_historical_negatives_are_earlier_edges_and_random_ones_no_edges():
    log = events()
    draw = negatives(log)
    src, dst, time = log
    seen = 0
    out = draw(*log)
    for i, (u, v, t) in enumerate(
        zip(*(p.tolist() for p in log), strict=True)
    ):
        same = (src == u) & (time == t)
        now = {v, *dst[same].tolist()}
        past = set(dst[(src == u) & (time < t)].tolist()) - now
        row = out[i].tolist()
        count = min(len(past), 3)
        assert len(set(row[:count])) == count
        assert set(row[:count]) <= past
        assert all(4 <= w < NODES and w not in now for w in row)
        seen += count
    assert seen > 150


def test_history_ends_where_it_is_told_to_and_has_no_positive():
    src, dst = torch.zeros(3).long(), torch.tensor([5, 6, 7])
    draw = TemporalNegatives(
        src, dst, torch.tensor([1, 2, 3]), NODES, 1, num_historical=1,
        destinations=(4, NODES), until=3,
    )  # fmt: skip
    # An event that is not in the log.
    event = torch.tensor([0]), torch.tensor([5]), torch.tensor([9])
    assert {int(draw(*event, batch)) for batch in range(40)} == {6}


def test_negatives_are_a_function_of_seed_epoch_and_batch():
    log = events()
    one, other = negatives(log), negatives(log)
    want = one(*log, 3, 1)
    one(*log)
    assert torch.equal(one(*log, 3, 1), want)
    assert torch.equal(other(*log, 3, 1), want)
    for changed in (one(*log, 4, 1), one(*log, 3, 2)):
        assert not torch.equal(changed, want)
    assert not torch.equal(negatives(log, seed=5)(*log, 3, 1), want)
    assert hash_ids(want) == GOLDEN


GOLDEN = 198794321751240445


def test_negatives_are_uniform():
    """Chi-square of both kinds, over batches."""
    # Node 0 had 4 to 8; now it has 4 and 10, and 8 to 11 were not seen.
    src = torch.zeros(7, dtype=torch.int64)
    dst = torch.tensor([4, 5, 6, 7, 8, 4, 10])
    time = torch.tensor([1, 2, 3, 4, 5, 9, 9])
    draw = TemporalNegatives(src, dst, time, NODES, 3, num_historical=2)
    rows = torch.cat(
        [draw(src[5:6], dst[5:6], time[5:6], b) for b in range(1500)]
    )
    count = rows[:, :2].flatten().bincount(minlength=NODES)
    assert count.nonzero().flatten().tolist() == [5, 6, 7, 8]
    assert chisquare(count[5:9].tolist()).pvalue > 0.001
    count = rows[:, 2].bincount(minlength=NODES)
    free = [5, 6, 7, 8, 9]
    assert count.nonzero().flatten().tolist() == free
    assert chisquare(count[free].tolist()).pvalue > 0.001


def test_hooks_have_the_draws_of_a_batch_whatever_came_before():
    log = events()
    hook = TemporalNegativesHook(negatives(log))
    want = hook(None, batch_of(log, 40, 50))
    hook(None, batch_of(log, 0, 10))
    again = hook(None, batch_of(log, 40, 50))
    assert torch.equal(again.neg, want.neg)
    assert want.neg.shape == (50,)
    assert torch.equal(want.neg_time.view(10, 5)[:, 2], want.edge_time)
    assert torch.equal(torch.stack(want.neg_batch_list).flatten(), want.neg)
    hook.epoch = 1
    assert not torch.equal(hook(None, batch_of(log, 40, 50)).neg, want.neg)


def test_wrong_arguments_are_named():
    log = events()
    keys = ['edge_src'], ['edge_time']
    for make, error, match in (
        (lambda: RecentNeighborHook(*log, 5, [2], *keys), IndexError, "'dst'"),
        (lambda: RecentNeighborHook(*log, NODES, [], *keys), ValueError,
         "'num_nbrs' must be positive"),
        (lambda: RecentNeighborHook(*log, NODES, [2], keys[0], []),
         ValueError, "'seed_times_keys' must have one key"),
        (lambda: TemporalNegatives(log[0].float(), *log[1:], NODES, 2),
         TypeError, "'src' must hold integers"),
        (lambda: TemporalNegatives(log[0][1:], *log[1:], NODES, 2),
         ValueError, "'dst' must have the shape"),
        (lambda: negatives(log, num_historical=6), ValueError,
         "'num_historical' must be in"),
        (lambda: negatives(log, destinations=(3, 13)), ValueError,
         "'destinations' must be in"),
        (lambda: negatives(log, destinations=(4, 5))(
            log[0][:1], torch.tensor([4]), log[2][:1]), ValueError,
         'event 0 must have a destination in'),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            make()
