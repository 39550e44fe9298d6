"""Batches of tasks: nothing later than its seed, labels, negatives, resume."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import HeteroData

from torch_gsample.relational import (
    EntityTask,
    LinkTask,
    RelationalData,
    RelationalLinkLoader,
    RelationalLoader,
    TableSchema,
    check_batch,
)


def forum(seed=0, users=20, posts=200):
    """Users, their posts, and comments of users on posts, all with times."""
    generator = torch.Generator().manual_seed(seed)

    def draw(high, *shape):
        return torch.randint(high, shape, generator=generator)

    data = HeteroData()
    data['user'].time = draw(5, users)
    data['post'].time = draw(90, posts) + 5
    data['tag'].num_nodes = 4
    for table in ('user', 'post'):
        data[table].num_nodes = len(data[table].time)
        data[table].num = torch.arange(data[table].num_nodes).view(-1, 1)
    for name, other, count in (('by', 'user', users), ('of', 'tag', 4)):
        edges = torch.stack([torch.arange(posts), draw(count, posts)])
        for t, e in (
            (('post', name, other), edges),
            ((other, f'rev_{name}', 'post'), edges.flip(0)),
        ):
            data[t].edge_index = e
            data[t].time = data['post'].time
    schema = {t: TableSchema() for t in data.node_types}
    return RelationalData(data, schema, {}, {}, 'integer')


def task(tables, n=60, seed=1):
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(20, (n,), generator=generator)
    time = torch.randint(10, 90, (n,), generator=generator)
    return EntityTask('user', row, time, row * 100 + time)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 9),
    inclusive=st.sampled_from(['both', 'left']),
    bound=st.sampled_from(['seed', 'edge', 'batch']),
    strategy=st.sampled_from(['uniform', 'last']),
)
def test_no_row_of_a_batch_is_later_than_its_seed(
    seed, inclusive, bound, strategy
):
    tables = forum(seed)
    todo = task(tables)
    loader = RelationalLoader(
        tables, todo, [4, 4], batch_size=16, seed=seed, check_times=True,
        time_inclusive=inclusive, time_bound=bound,
        temporal_strategy=strategy,
    )  # fmt: skip
    seen, rows = [], 0
    for batch in loader:
        ids = batch['user'].input_id
        seen += ids.tolist()
        assert torch.equal(batch['user'].y, todo.label[ids])
        time, post = todo.time[ids], batch['post']
        assert (post.time < time[post.batch] + (inclusive == 'both')).all()
        rows += len(post.time)
    assert seen == list(range(60))
    assert rows > 20


def test_a_row_that_leaks_is_found():
    tables = forum()
    todo = task(tables)
    loader = RelationalLoader(tables, todo, [4, 4], batch_size=16, seed=0)
    batch = next(iter(loader))
    time = todo.time[batch['user'].input_id]
    check_batch(batch, time)
    i = len(batch['post'].time) - 1
    tree = int(batch['post'].batch[i])
    batch['post'].time[i] = time[tree] + 1
    match = rf"1 rows of 'post' are, the first at {int(time[tree]) + 1} for"
    with pytest.raises(RuntimeError, match=match):
        check_batch(batch, time)
    batch['post'].time[i] = 0
    store = batch['post', 'by', 'user']
    store.time[-1] = 1000
    with pytest.raises(
        RuntimeError, match=r'1 edges .*by.* the first at 1000'
    ):
        check_batch(batch, time)


def test_batches_are_checked_on_request_only(monkeypatch):
    calls = []
    monkeypatch.setattr(
        'torch_gsample.relational.loader.check_batch',
        lambda *args: calls.append(args),
    )
    tables = forum()
    for check in (False, True):
        list(
            RelationalLoader(
                tables, task(tables), [2], batch_size=30, seed=0,
                check_times=check,
            )
        )  # fmt: skip
        assert len(calls) == (2 if check else 0)


def test_an_epoch_resumes_in_its_middle():
    tables = forum()

    def loader():
        return RelationalLoader(
            tables, task(tables), [3, 3], batch_size=16, shuffle=True, seed=4
        )

    whole = [batch['post'].n_id for batch in loader()]
    first = loader()
    batches = iter(first)
    next(batches)
    next(batches)
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    rest = [batch['post'].n_id for batch in second]
    assert len(rest) == 2
    assert all(map(torch.equal, rest, whole[2:]))


def test_workers_and_static_shapes_work():
    tables = forum()
    plain, workers = (
        RelationalLoader(
            tables, task(tables), [3], batch_size=20, seed=0, num_workers=n,
            check_times=True,
        )
        for n in (0, 1)
    )  # fmt: skip
    for one, two in zip(plain, workers, strict=True):
        assert torch.equal(one['post'].n_id, two['post'].n_id)
        assert torch.equal(one['user'].y, two['user'].y)
    static = RelationalLoader(
        tables, task(tables), [3], batch_size=20, seed=0, static_shapes=True,
        check_times=True,
    )  # fmt: skip
    assert len({batch['post'].num_nodes for batch in static}) == 1


def test_negatives_of_each_anchor_are_there_at_its_time():
    tables = forum()
    generator = torch.Generator().manual_seed(2)
    dst = torch.randint(200, (40,), generator=generator)
    src = torch.randint(20, (40,), generator=generator)
    time = tables.data['post'].time[dst] + 3
    todo = LinkTask(('user', 'post'), src, dst, time, num_negatives=3)
    loader = RelationalLinkLoader(
        tables, todo, [2, 2], batch_size=10, seed=0, check_times=True,
        time_inclusive='left',
    )  # fmt: skip
    seen = 0
    for batch in loader:
        ids = batch['user', 'task', 'post'].input_id
        user, post = batch['user'], batch['post']
        assert torch.equal(user.n_id[user.src_index], src[ids])
        assert torch.equal(post.n_id[post.dst_pos_index], dst[ids])
        negative = post.n_id[post.dst_neg_index]
        assert negative.shape == (10, 3)
        late = tables.data['post'].time[negative] > time[ids][:, None]
        assert not late.any()
        seen += len(ids)
    assert seen == 40


@pytest.mark.parametrize(
    ('change', 'error', 'match'),
    [
        ({'table': 'person'}, ValueError, "there is no table 'person'"),
        ({'row': torch.tensor([20])}, IndexError, r"'row' must be in \[0, 20"),
        ({'row': torch.tensor([1.0])}, TypeError, "'row' must be int64"),
        ({'time': torch.tensor([1, 2])}, ValueError, "'time' must have 1 "),
        ({'time': ['2020-01-01']}, TypeError, "'time' must be a tensor"),
        ({'time': torch.tensor([-1])}, ValueError, "later than 'time' .row 3"),
        ({'label': torch.tensor([])}, ValueError, "'label' must have 1 items"),
    ],
)
def test_a_wrong_task_is_named(change, error, match):
    todo = {
        'table': 'user',
        'row': torch.tensor([3]),
        'time': torch.tensor([50]),
        'label': torch.tensor([1]),
    }
    with pytest.raises(error, match=match):
        RelationalLoader(forum(), EntityTask(**{**todo, **change}), [2])


def test_times_in_another_unit_are_warned_of():
    tables = forum()
    del tables.data['user'].time  # otherwise, it is an error
    first = int(tables.data['post'].time.min())
    for time, warned in ((first - 1, True), (first, False)):
        task = EntityTask('user', torch.tensor([3]), torch.tensor([time]))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter('always')
            RelationalLoader(tables, task, [2])
        assert warned == any('batches have none' in str(w) for w in found)
