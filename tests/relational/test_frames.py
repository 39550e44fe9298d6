"""Batches have the rows of tables as PyTorch Frame, and hidden columns."""

import datetime

import duckdb
import pytest
import torch

from torch_gsample.relational import (
    EntityTask,
    RelationalLoader,
    TensorFrames,
    autocomplete,
    convert_tables,
    from_tables,
)
from torch_gsample.relational.frames import calendar

MANIFEST = {
    'tables': {
        'user': {'key': 'id'},
        'post': {
            'key': 'id',
            'time': 't',
            'foreign_keys': {'who': 'user'},
        },
    }
}


def write(path):
    """Users and their posts, as a database."""
    with duckdb.connect(str(path)) as database:
        database.execute(
            'CREATE TABLE user AS SELECT i AS id FROM range(6) t(i); '
            'CREATE TABLE post AS SELECT i AS id, i % 6 AS who, i AS t, '
            'CASE WHEN i % 5 > 0 THEN i / 4 END AS stars, '
            "CASE WHEN i % 7 > 0 THEN 'c' || (i % 3) END AS kind, "
            "TIMESTAMP '1999-12-30 23:59:58' + i * INTERVAL 31 HOUR AS day "
            'FROM range(40) t(i)'
        )
    return path


@pytest.fixture(scope='module')
def tables(tmp_path_factory):
    path = tmp_path_factory.mktemp('frames') / 'a.duckdb'
    return from_tables(write(path), MANIFEST)


def test_times_are_taken_apart_as_calendars_do():
    generator = torch.Generator().manual_seed(0)
    ends = -60_000_000_000_000_000, 250_000_000_000_000_000
    stamp = torch.randint(*ends, (2000,), generator=generator)
    for time, got in zip(stamp, calendar(stamp), strict=True):
        when = datetime.datetime(1970, 1, 1) + datetime.timedelta(
            microseconds=int(time)
        )
        parts = [when.month - 1, when.day - 1, when.weekday()]
        parts += [when.hour, when.minute, when.second]
        assert got.tolist() == [when.year, *parts]
    assert calendar(torch.tensor(-(1 << 63))).tolist() == [-1] * 7


def test_a_completed_column_is_hidden_in_its_rows_alone(tables):
    values = tables.values['post']
    stars = values.num[:, values.num_names.index('stars')]
    task = autocomplete(tables, 'post', 'stars', also_hidden=('kind',))
    assert task.row.tolist() == [i for i in range(40) if i % 5]
    assert torch.equal(task.label, stars[task.row])
    assert torch.equal(task.time, tables.data['post'].time[task.row])
    loader = RelationalLoader(
        tables, task, [-1, -1], batch_size=8, seed=0, check_times=True
    )
    others = 0
    for batch in loader:
        post, count = batch['post'], batch['post'].batch_size
        rows = post.n_id[:count]
        assert torch.equal(post.y, stars[rows])
        assert post.num[:count].isnan().all()
        assert (post.cat[:count] == -1).all()
        assert torch.equal(post.cat[count:], values.cat[post.n_id[count:]])
        rest = post.num[count:, 0].nan_to_num(-1)
        assert torch.equal(rest, stars[post.n_id[count:]].nan_to_num(-1))
        others += len(rest)
    assert others > 20
    # The contents of the database do not change.
    assert not tables.data['post'].num.isnan().all()


def test_categories_are_completed_by_their_codes(tables):
    task = autocomplete(tables, 'post', 'kind', torch.tensor([0, 8, 9]))
    assert (task.row.tolist(), task.label.tolist()) == ([8, 9], [2, 0])
    for arguments, match in (
        (('post', 'who'), "'post' must have a column 'who', not a key"),
        (('shelf', 'kind'), "there is no table 'shelf'"),
    ):
        with pytest.raises(ValueError, match=match):
            autocomplete(tables, *arguments)
    row = torch.tensor([1])
    with pytest.raises(ValueError, match="must have a column 'none'"):
        RelationalLoader(
            tables, EntityTask('post', row, row, hidden=('none',)), [1]
        )


@pytest.mark.interop
def test_batches_have_frames_that_its_encoders_take(tables):
    """Needs PyTorch Frame, which PyG imports everywhere once it is there."""
    frame = pytest.importorskip('torch_frame')
    from torch_frame.data.stats import compute_col_stats
    from torch_frame.nn import StypeWiseFeatureEncoder, encoder

    frames = TensorFrames(tables)
    task = autocomplete(tables, 'post', 'stars')
    loader = RelationalLoader(
        tables, task, [4, 4], batch_size=8, seed=0, transform=frames
    )
    batch = next(iter(loader))
    tf, rows = batch['post'].tf, batch['post'].n_id
    assert 'num' not in batch['post']
    assert len(batch['user'].tf) == batch['user'].num_nodes
    # RelBench's temporal encoder takes the times of rows by this name.
    assert {*batch.time_dict} == {'post'}
    values = tables.values['post']
    assert torch.equal(tf.feat_dict[frame.categorical], values.cat[rows])
    stamp = tf.feat_dict[frame.timestamp]
    assert torch.equal(stamp, calendar(values.stamp[rows]))
    assert tf.feat_dict[frame.numerical][:8].isnan().all()
    # The statistics of columns are those that the library counts.
    import pandas

    for name, stype, series in (
        ('stars', frame.numerical, values.num[:, 0].numpy()),
        ('day', frame.timestamp, values.stamp[:, 0].numpy()),
    ):
        series = pandas.Series(series)
        if stype == frame.timestamp:
            series = pandas.to_datetime(series, unit='us')
        want = compute_col_stats(series, stype)
        got = frames.col_stats['post'][name]
        assert got.keys() == want.keys()
        for key, value in want.items():
            assert torch.allclose(
                torch.as_tensor(got[key]).double(),
                torch.as_tensor(value).double(),
            )
    encode = StypeWiseFeatureEncoder(
        4,
        frames.col_stats['post'],
        frames.col_names_dict['post'],
        {
            frame.numerical: encoder.LinearEncoder(),
            frame.categorical: encoder.EmbeddingEncoder(),
            frame.timestamp: encoder.TimestampEncoder(),
        },
    )
    tf.feat_dict[frame.numerical].nan_to_num_(0)
    out, names = encode(tf)
    assert out.shape == (len(rows), 3, 4)
    assert names == ['stars', 'kind', 'day']
    assert out.isfinite().all()


@pytest.mark.interop
def test_frames_of_a_folder_are_those_of_memory(tables, tmp_path):
    pytest.importorskip('torch_frame')
    path = write(tmp_path / 'a.duckdb')
    folder = convert_tables(tmp_path / 'graph', path, MANIFEST)
    one, other = TensorFrames(tables), TensorFrames(folder)
    assert repr(one.col_stats) == repr(other.col_stats)
    assert one.col_names_dict == other.col_names_dict
    batches = [
        next(
            iter(
                RelationalLoader(
                    of,
                    autocomplete(of, 'post', 'stars'),
                    [4, 4],
                    batch_size=8,
                    seed=0,
                    transform=frames,
                )
            )
        )
        for of, frames in ((tables, one), (folder, other))
    ]
    for table in ('user', 'post'):
        want, got = (batch[table].tf for batch in batches)
        assert len(want) == len(got) > 0
        assert want.feat_dict.keys() == got.feat_dict.keys()
        for stype, value in want.feat_dict.items():
            same = got.feat_dict[stype]
            assert torch.equal(value.nan_to_num(-7), same.nan_to_num(-7))
    assert len(batches[0]['post'].tf.feat_dict) == 3
