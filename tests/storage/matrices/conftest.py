"""Graphs that are written once for all tests of this folder."""

import pytest

from tests.storage.matrices import programs


@pytest.fixture(scope='session')
def stored(tmp_path_factory):
    """For each kind of weights, a matrix in memory and a graph on disk."""
    data, out = programs.make_data(), {}
    for weighted in (False, True):
        path = tmp_path_factory.mktemp('matrices') / 'graph'
        graph = programs.on_disk(path, data, weighted)
        out[weighted] = programs.in_memory(data, weighted), graph
    return out
