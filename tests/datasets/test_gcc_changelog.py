import numpy as np
import pytest
import torch

from torch_gsample.datasets import GccChangelog
from torch_gsample.datasets.debian_packages import open_bundled

CHANGED = ('person', 'changed', 'file')


@pytest.fixture(scope='module')
def dataset():
    return GccChangelog()


def test_counts_are_those_of_the_release(dataset):
    data = dataset[0]
    data.validate()
    assert data.edge_types == [CHANGED]
    assert data['person'].num_nodes == 3_810
    assert data['file'].num_nodes == len(dataset.file_names) == 113_559
    assert data[CHANGED].num_edges == 615_096
    assert data[CHANGED].edge_index.dtype == torch.int64


def test_events_are_sorted_by_time(dataset):
    time = dataset[0][CHANGED].time
    assert time.dtype == torch.int64
    assert (time.diff() >= 0).all()
    first, last = np.datetime64('1970-01-01') + time[[0, -1]].numpy()
    assert (str(first), str(last)) == ('1990-12-06', '2022-08-17')


def test_repeated_events_are_kept(dataset):
    person, file = dataset[0][CHANGED].edge_index
    pairs = person * dataset[0]['file'].num_nodes + file
    assert pairs.unique().numel() == 311_501


def test_time_belongs_to_its_edge(dataset):
    with open_bundled('gcc_changelog.npz') as arrays:
        edges = arrays['edge/person__changed__file']
        time = arrays['time/person__changed__file']
    assert np.array_equal(dataset[0][CHANGED].edge_index, edges)
    assert np.array_equal(dataset[0][CHANGED].time, time)


def test_labels_are_directories(dataset):
    y = dataset[0]['file'].y
    assert y.dtype == torch.int64
    assert dataset.num_classes == len(dataset.class_names) == 13
    labelled = (y >= 0).nonzero().view(-1)
    assert len(labelled) == 113_559 - 4_247
    for i in labelled.tolist():
        folder = dataset.class_names[y[i]]
        assert dataset.file_names[i].startswith(folder + '/')


def test_root_keeps_the_processed_graph(dataset, tmp_path, monkeypatch):
    GccChangelog(str(tmp_path))
    monkeypatch.delattr(GccChangelog, '_build')
    again = GccChangelog(str(tmp_path))[0]
    expected = dataset[0]
    assert str(again) == str(expected)
    assert torch.equal(again[CHANGED].time, expected[CHANGED].time)
    assert torch.equal(again[CHANGED].edge_index, expected[CHANGED].edge_index)


def test_nothing_is_written_without_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    GccChangelog()
    assert not list(tmp_path.iterdir())
