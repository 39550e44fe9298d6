"""Loaders of tasks from a folder on disk have the batches of memory."""

import shutil

import pytest
import torch

from tests.relational.test_folders import MANIFEST, base, whole
from torch_gsample.relational import (
    EntityTask,
    LinkTask,
    RelationalLinkLoader,
    RelationalLoader,
    append_tables,
    autocomplete,
    from_tables,
)
from torch_gsample.relational.inputs import read_column

__all__ = ['base', 'whole']  # fixtures


@pytest.fixture(scope='module')
def both(whole, base, tmp_path_factory):
    """The tables in memory, and a folder with two appended segments."""
    path = tmp_path_factory.mktemp('both') / 'graph'
    shutil.copytree(base[0], path)
    for part in base[1]:
        folder = append_tables(path, part)
    assert folder.version == 2
    return from_tables(whole[0], MANIFEST), folder


def tensors(batch):
    """All tensors of a batch, by type and name."""
    out = {}
    for of, store in [*batch.node_items(), *batch.edge_items()]:
        for name, value in store.items():
            if isinstance(value, torch.Tensor):
                out[of, name] = value
    return out


def assert_equal(memory, disk):
    """Asserts that both loaders have equal batches, some of them full."""
    count = 0
    for one, other in zip(memory, disk, strict=True):
        want, got = tensors(one), tensors(other)
        assert want.keys() == got.keys()
        for name, value in want.items():
            assert value.dtype == got[name].dtype, name
            same = torch.equal(value.nan_to_num(-7), got[name].nan_to_num(-7))
            assert same, name
        count += sum(value.numel() for value in got.values())
    assert count > 500


def entities(count=60):
    row = torch.arange(count)
    return EntityTask('user', row, row * 7 % 90, row * 2.5)


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'temporal_strategy': 'last', 'batch_size': 7},
        {'shuffle': True, 'batch_size': 20},
        {'replace': True, 'drop_last': True, 'batch_size': 16},
        {'num_workers': 1, 'batch_size': 30},
        {'time_window': 30},
        {'time_inclusive': 'left', 'temporal_strategy': 'last'},
        {'time_inclusive': 'right', 'time_window': 30},
        {'time_inclusive': 'neither', 'time_window': 40, 'replace': True},
        {'time_bound': 'batch', 'time_inclusive': 'left'},
        {'time_bound': 'edge'},
        {'time_bound': 'edge', 'time_inclusive': 'left', 'time_window': 50},
        {'time_bound': 'edge', 'temporal_strategy': 'last', 'num_workers': 1},
        {'time_bound': 'edge', 'rng_scope': 'epoch', 'replace': True},
    ],
)
def test_batches_of_entities_are_those_of_memory(both, options):
    options = {'seed': 5, 'batch_size': 16, 'check_times': True} | options
    assert_equal(
        *(RelationalLoader(t, entities(), [4, 3], **options) for t in both)
    )


@pytest.mark.parametrize(
    'options', [{'time_bound': 'edge'}, {'time_inclusive': 'left'}]
)
def test_batches_without_segments_are_those_of_memory(whole, both, options):
    options = {'seed': 5, 'batch_size': 16, 'check_times': True} | options
    assert not whole[1].graph.segments.entries
    assert_equal(
        *(
            RelationalLoader(t, entities(), [4, 3], **options)
            for t in (both[0], whole[1])
        )
    )


@pytest.mark.parametrize('shapes', [True, 2])
def test_static_shapes_are_those_of_memory(both, shapes):
    options = {'seed': 5, 'batch_size': 16, 'drop_last': True}
    loaders = [
        RelationalLoader(
            t, entities(), [4, 3], static_shapes=shapes, check_times=True,
            **options,
        )
        for t in both
    ]  # fmt: skip
    assert_equal(*loaders)
    sizes = {
        tuple(batch[t].num_nodes for t in batch.node_types)
        for batch in loaders[1]
    }
    assert len(sizes) <= int(shapes) < len(loaders[1])


def test_batches_of_links_are_those_of_memory(both):
    src = torch.arange(60)
    task = LinkTask(
        ('user', 'post'), src, src * 5, torch.full((60,), 90), num_negatives=2
    )
    assert_equal(
        *(
            RelationalLinkLoader(
                t, task, [3, 3], seed=1, batch_size=16, check_times=True
            )
            for t in both
        )
    )


@pytest.mark.parametrize('column', ['size', 'kind', 'day'])
def test_autocomplete_is_that_of_memory(both, column):
    one, other = (autocomplete(t, 'post', column) for t in both)
    for name in ('row', 'time', 'label'):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert len(one.row) == 300
    assert_equal(
        *(
            RelationalLoader(t, task, [3], seed=2, batch_size=50)
            for t, task in zip(both, (one, other), strict=True)
        )
    )


def test_a_column_of_many_rows_is_read_in_pieces():
    part = torch.arange(400_000).view(-1, 2)
    rows = torch.arange(200_000).flip(0)
    assert torch.equal(read_column(part, 1, rows), part[rows][:, 1])
    assert read_column(part, 1, rows[:0]).shape == (0,)


def test_an_epoch_on_disk_resumes(both):
    def loader():
        return RelationalLoader(
            both[1], entities(), [3, 3], batch_size=16, shuffle=True, seed=4
        )

    want = [tensors(batch) for batch in loader()]
    first = loader()
    batches = iter(first)
    next(batches)
    again = loader()
    again.load_state_dict(first.state_dict())
    rest = [tensors(batch) for batch in again]
    assert len(rest) == len(want) - 1
    for one, other in zip(want[1:], rest, strict=True):
        key = 'post', 'n_id'
        assert torch.equal(one[key], other[key])


def test_wrong_tasks_and_options_are_named(both):
    folder = both[1]
    late = EntityTask('post', torch.tensor([299]), torch.tensor([-1]))
    for error, match, make in (
        (ValueError, "'row' must not be later than 'time' .row 299",
         lambda: RelationalLoader(folder, late, [1])),
        (IndexError, r"'row' must be in \[0, 60\)",
         lambda: RelationalLoader(folder, entities(61), [1])),
        (ValueError, "'device' must not be given for a TableFolder",
         lambda: RelationalLoader(folder, entities(), [1], device='cpu')),
        (ValueError, "'time_bound' must be one of",
         lambda: RelationalLoader(folder, entities(), [1], time_bound='x')),
        (ValueError, "'time_window' must be at least 2 with",
         lambda: RelationalLoader(
             folder, entities(), [1], time_window=1,
             time_inclusive='neither')),
        (ValueError, "'time_bound' and 'time_inclusive' need a graph with",
         lambda: RelationalLoader(
             folder, entities(), [1], time_bound='edge', use_times=False)),
        (TypeError, "'tables' must be a RelationalData or a TableFolder",
         lambda: RelationalLoader.__init__(
             RelationalLoader.__new__(RelationalLoader), {}, entities(), [1])),
        (ValueError, "must have a column 'age2'",
         lambda: autocomplete(folder, 'user', 'age2')),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            make()
