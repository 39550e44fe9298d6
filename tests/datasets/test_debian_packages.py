import gzip
import io
import lzma

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data, HeteroData

from tools.make_debian_packages import main as make
from torch_gsample.datasets import DebianPackages, debian_packages
from torch_gsample.datasets.debian_packages import open_bundled

FILE = 'debian_packages.npz'
NUM_NODES = {'package': 63_436, 'source': 34_169, 'tag': 598}
NUM_EDGES = {
    ('package', 'depends', 'package'): 274_536,
    ('package', 'pre_depends', 'package'): 995,
    ('package', 'recommends', 'package'): 34_196,
    ('package', 'suggests', 'package'): 30_724,
    ('package', 'enhances', 'package'): 1_873,
    ('package', 'breaks', 'package'): 5_928,
    ('package', 'conflicts', 'package'): 2_269,
    ('package', 'replaces', 'package'): 4_230,
    ('source', 'builds', 'package'): 63_436,
    ('source', 'build_depends', 'package'): 271_941,
    ('package', 'has_tag', 'tag'): 112_118,
}

# The virtual package `virtual` is provided by `beta` and by `gamma`; the
# second stanza of `alpha` and the first of the source `one` do not count.
PACKAGES = """\
Package: gamma
Source: two (2.0)
Architecture: all
Section: net
Installed-Size: 3
Size: 20
Provides: virtual, other-virtual (= 1)
Breaks: alpha (<< 1), virtual
Depends: gamma, missing
Description: C++ library for Foo
 foo long

Package: alpha
Source: one
Architecture: amd64
Section: contrib/libs
Installed-Size: 7
Size: 10
Homepage: https://alpha.example
Pre-Depends: beta:any (>= 1~)
Depends: gamma (>= 2) | virtual, delta [amd64],
 beta
Tag: role::library, made-of::data:xml,
 suite::gnu
Description: library of foo, 3d

Package: beta
Source: one
Architecture: amd64
Section: libs
Size: 30
Provides: virtual
Depends: virtual
Enhances: other-virtual
Tag: role::library
Description: foo

Package: alpha
Source: one
Architecture: amd64
Section: libs
Size: 11
Depends: beta

Package: delta
Architecture: amd64
Section: net
Size: 40
"""
SOURCES = """\
Package: one
Build-Depends: delta

Package: two
Binary: gamma
Build-Depends: alpha, virtual <!nocheck>
Build-Depends-Indep: delta

Package: one
Build-Depends-Arch: alpha | beta

Package: unbuilt
Build-Depends: alpha
"""
MALFORMED = """
 continues: nothing

Package: no-size

Package: bad name
Size: 1

Package: twice
Package: twice
Size: 1

Package: no-field
Size: 1
this line has no colon
"""


@pytest.fixture(scope='module')
def dataset():
    return DebianPackages()


@pytest.fixture(scope='module')
def homogeneous():
    return DebianPackages(homogeneous=True)


def make_file(folder, packages=PACKAGES, sources=SOURCES):
    (folder / 'Packages').write_text(packages)
    (folder / 'Sources').write_text(sources)
    out = folder / 'out.npz'
    make([str(folder / 'Packages'), str(folder / 'Sources'), str(out)])
    return out


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Makes DebianPackages read a tiny graph."""
    folder = tmp_path / 'small'
    folder.mkdir()
    content = make_file(folder).read_bytes()
    monkeypatch.setattr(
        debian_packages, 'bundled_file', lambda name: io.BytesIO(content)
    )


def test_counts_are_those_of_the_release(dataset):
    data = dataset[0]
    data.validate()
    assert {t: data[t].num_nodes for t in data.node_types} == NUM_NODES
    assert {t: data[t].num_edges for t in data.edge_types} == NUM_EDGES
    assert all(e.dtype == torch.int64 for e in data.edge_index_dict.values())
    in_degree = data['depends'].edge_index[1].bincount()
    assert in_degree.max() == 21_784
    assert dataset.package_names[in_degree.argmax()] == 'libc6'


def test_names_have_one_entry_a_node_class_and_feature(dataset):
    assert len(dataset) == 1
    assert len(dataset.package_names) == NUM_NODES['package']
    assert len(dataset.source_names) == NUM_NODES['source']
    assert len(dataset.tag_names) == NUM_NODES['tag']
    assert len(dataset.class_names) == dataset.num_classes == 58
    assert len(dataset.feature_names) == 1004
    assert dataset.num_features == {'package': 1004, 'source': 0, 'tag': 0}


def test_labels_are_sections(dataset):
    y = dataset[0]['package'].y
    assert y.dtype == torch.int64
    assert (y.min(), y.max()) == (0, 57)
    count = y.bincount()
    assert count.max() / count.sum() == pytest.approx(0.106, abs=5e-4)
    name = dict(zip(dataset.package_names, y.tolist(), strict=True))
    assert dataset.class_names[name['libc6']] == 'libs'
    assert dataset.class_names[name['0ad']] == 'games'


def test_split_is_disjoint_and_covers_all_packages(dataset):
    package = dataset[0]['package']
    masks = [package.train_mask, package.val_mask, package.test_mask]
    assert [int(m.sum()) for m in masks] == [32_780, 15_131, 15_525]
    assert torch.equal(sum(m.long() for m in masks), torch.ones(63_436).long())


def test_packages_of_one_source_share_a_split(dataset):
    data = dataset[0]
    source, package = data['source', 'builds', 'package'].edge_index
    assert torch.equal(package.sort()[0], torch.arange(63_436))
    for split in ['train_mask', 'val_mask', 'test_mask']:
        inside = data['package'][split][package]
        assert not np.intersect1d(source[inside], source[~inside]).size


def test_edges_are_sorted_and_unique_without_self_loops(dataset):
    data = dataset[0]
    for (src, _, dst), edge_index in data.edge_index_dict.items():
        key = edge_index[0] * data[dst].num_nodes + edge_index[1]
        assert (key.diff() > 0).all()
        assert src != dst or (edge_index[0] != edge_index[1]).all()


def test_words_are_those_of_the_description(dataset):
    x = dataset[0]['package'].x
    assert x.shape == (63_436, 1004)
    assert x.dtype == torch.float32
    assert (x[:, :1000] == 0).sum() == 63_436_000 - 243_201
    assert (x[:, :1000] == 1).sum() == 243_201
    words = x[dataset.package_names.index('0ad'), :1000].nonzero().view(-1)
    assert [dataset.feature_names[i] for i in words] == [
        'game',
        'time',
        'real',
        'strategy',
    ]


def test_numbers_are_standardised_over_training_packages(dataset):
    package = dataset[0]['package']
    numbers = package.x[:, 1000:].double()
    train = numbers[package.train_mask]
    torch.testing.assert_close(
        train.mean(0), torch.zeros(4).double(), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(
        train.std(0, unbiased=False), torch.ones(4).double(), atol=1e-5, rtol=0
    )
    with open_bundled(FILE) as arrays:
        raw = torch.from_numpy(arrays['x/package/num'].astype(float))
    for a, b in zip(raw.T, numbers.T, strict=True):
        assert torch.corrcoef(torch.stack([a, b]))[0, 1] > 0.99999


def test_homogeneous_edges_are_the_union_of_the_relations(
    dataset, homogeneous
):
    with open_bundled(FILE) as arrays:
        pairs = np.concatenate(
            [
                arrays[f'edge/package__{rel}__package'].T
                for src, rel, dst in NUM_EDGES
                if src == dst == 'package'
            ]
        )
    data = homogeneous[0]
    assert isinstance(data, Data)
    assert data.edge_index.dtype == torch.int64
    assert np.array_equal(data.edge_index.T, np.unique(pairs, axis=0))
    assert homogeneous.num_features == 1004
    assert homogeneous.num_classes == 58
    for key in ['x', 'y', 'train_mask', 'val_mask', 'test_mask']:
        assert torch.equal(data[key], dataset[0]['package'][key])


@pytest.mark.usefixtures('small')
def test_nothing_is_written_without_root(tmp_path, monkeypatch):
    folder = tmp_path / 'empty'
    folder.mkdir()
    monkeypatch.chdir(folder)
    data = DebianPackages(pre_transform=T.ToUndirected())[0]
    assert data['tag', 'rev_has_tag', 'package'].num_edges == 4
    assert not list(folder.iterdir())


@pytest.mark.usefixtures('small')
@pytest.mark.parametrize('cls', [Data, HeteroData])
def test_root_keeps_the_processed_graph(tmp_path, monkeypatch, cls):
    root, homogeneous = str(tmp_path / 'root'), cls is Data
    data = DebianPackages(root, homogeneous)[0]
    assert not isinstance(DebianPackages(root, not homogeneous)[0], cls)
    with monkeypatch.context() as patch:
        patch.delattr(DebianPackages, '_build')
        again = DebianPackages(root, homogeneous)
    assert isinstance(again[0], cls)
    assert str(again[0]) == str(data)
    assert again[0].to_dict().keys() == data.to_dict().keys()
    assert again.package_names == ['alpha', 'beta', 'delta', 'gamma']

    def add_mark(data):
        data.mark = 1
        return data

    with pytest.warns(UserWarning, match='force_reload=True'):
        stale = DebianPackages(root, homogeneous, pre_transform=add_mark)
    assert 'mark' not in stale[0]
    fresh = DebianPackages(
        root, homogeneous, pre_transform=add_mark, force_reload=True
    )
    assert 'mark' in fresh[0]


GOLDEN = {
    'edge/package__depends__package': '0-1 0-2 0-3 1-3',
    'edge/package__pre_depends__package': '0-1',
    'edge/package__recommends__package': '',
    'edge/package__suggests__package': '',
    'edge/package__enhances__package': '1-3',
    'edge/package__breaks__package': '3-0 3-1',
    'edge/package__conflicts__package': '',
    'edge/package__replaces__package': '',
    'edge/source__builds__package': '0-2 1-0 1-1 2-3',
    'edge/source__build_depends__package': '1-0 1-1 2-0 2-1 2-2 2-3',
    'edge/package__has_tag__tag': '0-0 0-1 0-2 1-1',
    'name/package': 'alpha beta delta gamma',
    'name/source': 'delta one two',
    'name/tag': 'made-of::data:xml role::library suite::gnu',
    'class_names': 'libs net',
    'vocab': 'foo library c++',
    'node_types': 'package source tag',
    'num_nodes': '4 3 3',
    'x/package/indptr': '0 2 3 3 6',
    'x/package/indices': '0 1 0 0 1 2',
    'y/package': '0 0 1 1',
    # default_rng(0).permutation(3) is 2 0 1: one source each
    'split/package': '2 2 2 0',
}


def as_text(array):
    if array.dtype == np.uint8 and array.max() > 9:
        return array.tobytes().decode().replace('\n', ' ')
    if array.ndim == 2:
        return ' '.join(f'{src}-{dst}' for src, dst in array.T)
    return ' '.join(map(str, array))


def test_made_file_is_golden(tmp_path):
    with np.load(make_file(tmp_path)) as arrays:
        graph = dict(arrays)
    kinds = {key: array.dtype for key, array in graph.items()}
    num = graph.pop('x/package/num')
    assert {key: as_text(array) for key, array in graph.items()} == GOLDEN
    raw = [[7, 10, 0, 1], [0, 30, 0, 0], [0, 40, 0, 0], [3, 20, 1, 0]]
    raw = np.array(raw, dtype=float)
    raw[:, :2] = np.log1p(raw[:, :2])
    assert np.array_equal(num, raw.astype(np.float16))
    with open_bundled(FILE) as arrays:
        assert kinds == {key: arrays[key].dtype for key in arrays}
        assert list(kinds) == list(arrays)


def test_malformed_stanzas_are_counted_and_skipped(tmp_path, capsys):
    good = make_file(tmp_path).read_bytes()
    bad = make_file(
        tmp_path, PACKAGES + MALFORMED, MALFORMED + '\n' + SOURCES
    ).read_bytes()
    assert bad == good
    printed = capsys.readouterr().out
    assert 'Packages: 5 stanzas, 5 skipped\n' in printed
    assert 'Sources: 5 stanzas, 4 skipped\n' in printed


def test_compressed_indexes_make_the_same_file(tmp_path):
    plain = make_file(tmp_path).read_bytes()
    packages, sources = tmp_path / 'Packages.xz', tmp_path / 'Sources.gz'
    packages.write_bytes(lzma.compress(PACKAGES.encode()))
    sources.write_bytes(gzip.compress(SOURCES.encode()))
    out = tmp_path / 'compressed.npz'
    make([str(packages), str(sources), str(out)])
    assert out.read_bytes() == plain


@pytest.mark.parametrize('content', [b'', b'\xfd7zXZ\0cut', b'\x1f\x8bcut'])
def test_unreadable_index_ends_with_an_error(tmp_path, capsys, content):
    path, out = tmp_path / 'Packages', tmp_path / 'out.npz'
    path.write_bytes(content)
    with pytest.raises(SystemExit):
        make([str(path), str(path), str(out)])
    assert 'make_debian_packages: error:' in capsys.readouterr().err
    assert not out.exists()


def test_package_without_section_is_unlabelled(tmp_path):
    text = PACKAGES.replace('Section: net\nSize: 40', 'Size: 40')
    with np.load(make_file(tmp_path, text)) as arrays:
        assert arrays['y/package'].tolist() == [0, 0, -1, 1]
