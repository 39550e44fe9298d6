"""Saved normalisations: used again, told apart, checked, written whole."""

import pytest
import torch

from tests.loader.test_graph_saint import KINDS, cyclic, loader_of
from torch_gsample.loader import norm_file


def files(path):
    return sorted(p.name for p in path.iterdir())


def make(path, kind=KINDS[0], data=None, **options):
    options = {'sample_coverage': 2} | options
    return loader_of(kind, data, save_dir=str(path), **options)


def test_a_saved_normalisation_is_used_again(tmp_path, monkeypatch):
    first = make(tmp_path / 'new' / 'folder')
    monkeypatch.setattr(KINDS[0], '_estimate', None)
    second = make(tmp_path / 'new' / 'folder', seed=5)
    assert torch.equal(first.node_norm, second.node_norm)
    assert torch.equal(first.edge_norm, second.edge_norm)


def test_graphs_and_arguments_have_files_of_their_own(tmp_path):
    other = cyclic()
    other.edge_index = other.edge_index.flip(1)  # edges in another order
    count = 0
    for options in (
        *({}, {'num_draws': 7}, {'sample_coverage': 3}, {'data': other}),
        *({'data': cyclic(num_nodes=31)}, {'kind': KINDS[1]}),
        {'kind': KINDS[2]},
    ):
        make(tmp_path, **options)
        count += 1
        assert len(files(tmp_path)) == count, options
    make(tmp_path, num_steps=9, seed=3)  # matter for no factor
    assert len(files(tmp_path)) == count
    for length in (3, 4):
        KINDS[2](
            cyclic(),
            6,
            length,
            sample_coverage=2,
            save_dir=str(tmp_path),
            log=False,
        )
    assert len(files(tmp_path)) == count + 2


def changed(**values):
    return lambda saved: saved | values


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        (lambda saved: [1, 2], 'a dictionary of'),
        (lambda saved: {'node': saved['node']}, 'a dictionary of'),
        (changed(fingerprint='0'), 'of this graph and these arguments'),
        (changed(node=torch.ones(29)), r"with 'node' as float32 \[30\]"),
        (changed(edge=torch.ones(150).long()), "with 'edge' as float32"),
        (changed(edge='edge'), "with 'edge' as float32"),
        (changed(node=torch.zeros(30)), "with 'node' positive and finite"),
        (changed(edge=torch.full((150,), torch.nan)), "'edge' positive and"),
    ],
)
def test_other_files_are_refused(tmp_path, change, text):
    make(tmp_path)
    path = tmp_path / files(tmp_path)[0]
    torch.save(change(torch.load(path)), path)
    with pytest.raises(ValueError, match=f'the saved normalis.*{text}'):
        make(tmp_path)


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return print, ('harm',)


def test_no_code_of_a_file_runs(tmp_path, capsys):
    make(tmp_path)
    path = tmp_path / files(tmp_path)[0]
    torch.save({'node': Evil()}, path)
    with pytest.raises(ValueError, match=r'must be a file of torch\.save'):
        make(tmp_path)
    path.write_bytes(b'garbage')
    with pytest.raises(ValueError, match=r'must be a file of torch\.save'):
        make(tmp_path)
    assert 'harm' not in capsys.readouterr().out


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    def fail(value, file):
        file.write(b'half')
        raise OSError('disk full')

    monkeypatch.setattr(norm_file.torch, 'save', fail)
    with pytest.raises(OSError, match='disk full'):
        make(tmp_path)
    assert files(tmp_path) == []
