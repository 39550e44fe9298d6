"""Sequences of rows around a row, against a breadth-first search."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import HeteroData

from tests.relational.test_loader import forum, task
from torch_gsample.relational import (
    ContextSampler,
    EntityTask,
    RelationalData,
    TableSchema,
    Values,
)

CELLS = {'user': 2, 'post': 3, 'tag': 1}


def with_cells(seed=0):
    tables = forum(seed)
    none = torch.empty(0, 0)
    for table, cells in CELLS.items():
        names = [f'c{i}' for i in range(cells)] if cells > 1 else []
        tables.values[table] = Values(none, none, none, num_names=names)
    return tables


def search(tables, table, row, time, budget, num_hops):
    """All rows to a depth, hop by hop, parents first: (table, row, hop)."""
    data = tables.data
    relations = sorted(
        data.edge_types, key=lambda t: not t[1].startswith('rev_')
    )
    found, frontier = {(table, row): 0}, [(table, row)]
    for hop in range(1, num_hops + 1):
        # Relation by relation, and of each the nodes in their order.
        new = []
        for t in relations:
            index, times = data[t].edge_index, data[t].time
            for node in sorted(frontier, key=frontier.index):
                if node[0] != t[2]:
                    continue
                edges = (index[1] == node[1]).nonzero()[:, 0].tolist()
                for e in sorted(edges, key=lambda e: (int(times[e]), e)):
                    other = t[0], int(index[0, e])
                    if times[e] <= time and other not in found:
                        found[other] = hop
                        new.append(other)
        frontier = new
    out, cells = [], 0
    for (t, i), hop in found.items():
        cells += CELLS[t]
        if cells > budget and out:
            break
        out.append((t, i, hop))
    return out


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 5),
    budget=st.integers(1, 60),
    num_hops=st.integers(1, 3),
)
def test_sequences_are_those_of_a_search(seed, budget, num_hops):
    """Where all rows that refer to one are taken."""
    tables = with_cells(seed)
    todo = task(tables, n=6, seed=seed)
    todo = EntityTask('user', todo.row, todo.time % 30 + 5)
    sampler = ContextSampler(
        tables, budget, width=10**6, num_hops=num_hops, seed=0
    )
    out = sampler(todo)
    for i in range(6):
        args = int(todo.row[i]), int(todo.time[i]), budget, num_hops
        want = search(tables, 'user', *args)
        length = int(out.mask[i].sum())
        got = [
            (out.tables[t], r, h)
            for t, r, h in zip(
                out.table[i, :length].tolist(),
                out.row[i, :length].tolist(),
                out.hop[i, :length].tolist(),
                strict=True,
            )
        ]
        # Hops, their parents and their length agree; within these, rows are
        # in the order of the sample.
        assert got[0] == want[0]
        assert [x[2] for x in got] == [x[2] for x in want]
        whole = got[-1][2] if len(got) > 1 else 0
        for hop in range(whole):
            assert sorted(x for x in got if x[2] == hop) == sorted(
                x for x in want if x[2] == hop
            )
        assert (out.row[i, length:] == -1).all()
        via = out.via[i, :length].tolist()
        assert via[0] == -1
        for j in range(1, length):
            assert 0 <= via[j] < j
            assert got[via[j]][2] == got[j][2] - 1
        assert sum(CELLS[t] for t, _, _ in got[1:]) <= budget


def test_parents_come_before_rows_that_refer():
    tables = with_cells()
    posts = torch.arange(5)
    time = torch.full((5,), 99)
    out = ContextSampler(tables, 30, width=5, num_hops=2, seed=0)(
        EntityTask('post', posts, time)
    )
    names = [[out.tables[t] for t in row if t >= 0] for row in out.table]
    for row, hops in zip(names, out.hop.tolist(), strict=True):
        assert row[:3] in (['post', 'user', 'tag'], ['post', 'tag', 'user'])
        assert hops[:3] == [0, 1, 1]
        assert set(row[3:]) == {'post'}


def test_a_row_with_both_is_followed_by_its_parent_first():
    data = HeteroData()
    for table in 'abc':
        data[table].num_nodes = 3
    edges = torch.tensor([[0, 1, 2], [1, 1, 1]])
    data['c', 'of', 'b'].edge_index = edges
    data['b', 'rev_of', 'c'].edge_index = edges.flip(0)
    data['b', 'of', 'a'].edge_index = edges.flip(0)[:, :1]
    data['a', 'rev_of', 'b'].edge_index = edges[:, :1]
    schema = {table: TableSchema() for table in 'abc'}
    tables = RelationalData(data, schema, {}, {}, None)
    todo = EntityTask('b', torch.tensor([1]), torch.tensor([0]))
    out = ContextSampler(tables, 3, num_hops=1, seed=0)(todo)
    assert [out.tables[t] for t in out.table[0]] == ['b', 'a', 'c']
    assert out.row.tolist() == [[1, 0, 0]]


def test_sequences_are_those_of_the_seed_and_of_no_later_row():
    tables = with_cells()
    todo = task(tables)
    options = {'width': 3, 'num_hops': 3, 'seed': 5}
    options['temporal_strategy'] = 'last'
    one, two = (ContextSampler(tables, 40, **options)(todo) for _ in range(2))
    assert all(map(torch.equal, one[:5], two[:5]))
    options['temporal_strategy'] = 'uniform'
    sampler = ContextSampler(tables, 40, **options)
    assert torch.equal(sampler(todo, 1).row, sampler(todo, 1).row)
    assert not torch.equal(sampler(todo, 1).row, sampler(todo, 2).row)
    post = one.table == one.tables.index('post')
    time = tables.data['post'].time[one.row[post]]
    assert (time <= todo.time[:, None].expand(post.shape)[post]).all()
    for row, table, mask in zip(one.row, one.table, one.mask, strict=True):
        pairs = list(
            zip(table[mask].tolist(), row[mask].tolist(), strict=True)
        )
        assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize(
    ('arguments', 'error', 'match'),
    [
        ({'tables': None}, TypeError, "'tables' must be a RelationalData"),
        ({'num_cells': 0}, ValueError, "'num_cells' must be positive"),
        ({'width': 2.5}, TypeError, "'width' must be an integer"),
        ({'num_hops': -1}, ValueError, "'num_hops' must be positive"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, match):
    with pytest.raises(error, match=f'ContextSampler: {match}'):
        ContextSampler(**{'tables': forum(), 'num_cells': 9, **arguments})
