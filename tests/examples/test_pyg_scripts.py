"""Scripts that know PyG's classes only run on ours, under ``gsample run``."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch_geometric import datasets
from torch_geometric.data import Data, HeteroData

from torch_gsample import cli
from torch_gsample.loader import base

FOLDER = Path(__file__).resolve().parent.parent.parent / 'examples' / 'pyg'
TOY = ['--epochs', '1', '--max-batches', '2', '--batch-size', '32']
TOY += ['--hidden', '8']
#: What each loads that is not bundled.
SCRIPTS = {
    'sage': 'reddit',
    'ogbn_products': 'ogbn-products',
    'ogbn_papers100m': 'ogbn-papers100M',
    'unsupervised_sage': 'cora',
    'to_hetero': 'ogb-mag',
    'hgt': 'ogb-mag',
    'shadow': 'flickr',
    'graph_saint': 'flickr',
    'node2vec': 'cora',
    'temporal_links': 'movie-lens',
    'lightning_sage': 'reddit',
}
ARGUMENTS = {'graph_saint': ['--batch-size', '2000', '--coverage', '1']}


def results(out: str) -> list[str]:
    return re.findall(r'(?:[Ll]oss|accuracy|AUC) (\d\.\d+)', out)


def run(name: str, *args: str) -> int:
    options = [*TOY, *ARGUMENTS.get(name, []), *args]
    return cli.main(['run', str(FOLDER / f'{name}.py'), *options])


@pytest.fixture(scope='module', autouse=True)
def _graphs_are_loaded_once():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models are small
    yield
    torch.set_num_threads(threads)
    sys.modules.pop('common', None)


@pytest.fixture
def passes(monkeypatch):
    """The loaders of ours that made a pass."""
    seen, real = [], base.KeyedLoader.__iter__

    def begin(self):
        seen.append(type(self).__name__)
        return real(self)

    monkeypatch.setattr(base.KeyedLoader, '__iter__', begin)
    return seen


@pytest.mark.parametrize('name', SCRIPTS)
def test_a_script_of_pyg_trains_on_our_loaders(name, passes, capsys):
    assert run(name) == 0
    assert len(results(capsys.readouterr().out)) >= 3
    # Lightning's data module has PyG's loader, on our sampler.
    assert passes or name == 'lightning_sage'


def test_the_scripts_are_those_of_the_folder():
    files = {path.stem for path in FOLDER.glob('*.py')}
    assert files == {*SCRIPTS, 'common'}


@pytest.mark.parametrize('name', SCRIPTS)
def test_scripts_are_short_and_know_pyg_only(name):
    text = (FOLDER / f'{name}.py').read_text()
    assert len(text.splitlines()) < 100
    assert 'torch_gsample' not in text


# The real data sets ##########################################################


def small_graph() -> Data:
    generator = torch.Generator().manual_seed(0)
    part = torch.arange(90) % 3
    return Data(
        x=torch.rand(90, 6, generator=generator),
        edge_index=torch.randint(90, (2, 700), generator=generator),
        y=torch.arange(90) % 4,
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )


def small_mag() -> HeteroData:
    paper, data = small_graph(), HeteroData()
    data['paper'].update(
        {k: v for k, v in paper.to_dict().items() if k != 'edge_index'}
    )
    data['author'].x = paper.x[:, :3]
    data['paper', 'cites', 'paper'].edge_index = paper.edge_index
    data['author', 'writes', 'paper'].edge_index = paper.edge_index
    return data


def small_ratings() -> HeteroData:
    data, generator = HeteroData(), torch.Generator().manual_seed(0)
    data['user'].x, data['movie'].x = torch.ones(30, 2), torch.ones(40, 3)
    pairs = [torch.randint(n, (500,), generator=generator) for n in (30, 40)]
    for name, edge_index in (
        (('user', 'rates', 'movie'), torch.stack(pairs)),
        (('movie', 'rated_by', 'user'), torch.stack(pairs[::-1])),
    ):
        data[name].edge_index = edge_index
        data[name].time = torch.arange(500) % 70
    return data


@pytest.fixture
def real_datasets(monkeypatch):
    """Small graphs under the names of the real ones."""
    sys.modules.pop('common', None)

    def dataset(make, **attributes):
        class Dataset(list):
            num_classes = 4

            def __init__(self, *args, **kwargs):
                super().__init__([make()])
                for key, value in attributes.items():
                    if key in self[0]:
                        self[0][key] = value(self[0][key])

            def get_idx_split(self):
                names = {'train': 'train', 'valid': 'val', 'test': 'test'}
                return {
                    key: self[0][f'{name}_mask'].nonzero().view(-1)
                    for key, name in names.items()
                }

        return Dataset

    for name in ('Reddit', 'Flickr', 'Planetoid'):
        monkeypatch.setattr(datasets, name, dataset(small_graph))
    monkeypatch.setattr(datasets, 'OGB_MAG', dataset(small_mag))
    monkeypatch.setattr(datasets, 'MovieLens100K', dataset(small_ratings))
    # OGB's labels are a column, and floats where some are unknown.
    ogb = dataset(small_graph, y=lambda y: y.view(-1, 1).float())
    module = SimpleNamespace(PygNodePropPredDataset=ogb)
    monkeypatch.setitem(sys.modules, 'ogb', SimpleNamespace())
    monkeypatch.setitem(sys.modules, 'ogb.nodeproppred', module)
    yield
    sys.modules.pop('common', None)


@pytest.mark.parametrize('name', SCRIPTS)
def test_real_data_sets_are_read_and_results_repeat(
    name, real_datasets, capsys
):
    options = ['--dataset', SCRIPTS[name], '--batch-size', '15']
    assert run(name, *options) == 0
    first = results(capsys.readouterr().out)
    assert len(first) >= 3
    assert run(name, *options) == 0
    assert results(capsys.readouterr().out) == first


def test_missing_ogb_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'ogb.nodeproppred', None)
    with pytest.raises(SystemExit, match='pip install ogb'):
        run('ogbn_products', '--dataset', 'ogbn-products')


def test_missing_lightning_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pytorch_lightning', None)
    with pytest.raises(SystemExit, match='pip install pytorch-lightning'):
        run('lightning_sage')
