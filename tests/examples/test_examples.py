"""The examples run at toy size, and give the same result for a seed."""

import importlib.util
import re
import resource
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.examples.part import part_of_debian
from tests.fresh import Run

TOP = Path(__file__).resolve().parent.parent.parent
PART = Path(__file__).with_name('part.py')
TOY = ['--epochs', '1', '--max-batches', '2', '--batch-size', '64']
EXAMPLES = {
    'train_debian': ['--hidden', '8'],
    'train_debian_hetero': ['--hidden', '8'],
    'link_prediction_gcc': ['--hidden', '8', '--eval-events', '100'],
    'train_relational': ['--hidden', '8'],
    'train_from_disk': ['--hidden', '8'],
    'infer_from_disk': ['--hidden', '8'],
    'train_ladies': ['--hidden', '8', '--num-sampled', '64'],
    'train_graph_saint': ['--walks', '4000', '--coverage', '1'],
    'train_gat': ['--hidden', '8'],
    'train_shadow': ['--hidden', '8'],
    'train_pass': ['--hidden', '8'],
    'train_node2vec': ['--hidden', '8'],
    'train_pinsage': ['--hidden', '8', '--batch-size', '512'],
    'train_seal': ['--hidden', '8'],
    'spark_to_pyg': [],
}
#: Those that show one sampler each.
SHORT = list(EXAMPLES)[6:]
#: Those that take long on the whole graph.
ON_PART = (
    'train_ladies train_graph_saint train_shadow train_gat train_node2vec '
    'train_pass train_pinsage train_seal'
)
#: What must not change a result.
VARIATIONS = {
    'train_debian': ['--workers', '1'],
}


def results(out: str) -> list[str]:
    return re.findall(r'(?:loss|accuracy|AUC|MRR|hit rate)\D*(\d\.\d+)', out)


def load(name: str) -> ModuleType:
    path = TOP / 'examples' / f'{name}.py'
    spec = importlib.util.spec_from_file_location(f'example_{name}', path)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, 'path', [str(path.parent), *sys.path]):
        spec.loader.exec_module(module)
    return module


def run_here(monkeypatch: pytest.MonkeyPatch, name: str, *args: str) -> None:
    module = load(name)
    argv = [name, *TOY, *EXAMPLES[name], *args]
    monkeypatch.setattr(sys, 'argv', argv)
    # A limit would hold for the tests that follow.
    monkeypatch.setattr(resource, 'setrlimit', lambda *_: None)
    module.main()


# Spark's runs in the session of tests/spark: to start one takes long.
@pytest.mark.parametrize('name', sorted({*EXAMPLES} - {'spark_to_pyg'}))
def test_example_reports_its_quality_reproducibly(
    name, monkeypatch, capsys, tmp_path
):
    on_part = name in ON_PART
    with part_of_debian() if on_part else nullcontext():
        run_here(monkeypatch, name)
    first = results(capsys.readouterr().out)
    assert len(first) >= 3  # of an epoch, a baseline and the test
    scripts = [PART] * on_part + [TOP / 'examples' / f'{name}.py']
    args = [*scripts, *TOY, *EXAMPLES[name], *VARIATIONS.get(name, [])]
    second = Run(args[0], tmp_path / 'out', map(str, args[1:])).wait()
    assert results(second) == first


@pytest.mark.parametrize('name', SHORT)
def test_examples_of_one_sampler_are_short(name):
    text = (TOP / 'examples' / f'{name}.py').read_text()
    assert len(text.splitlines()) < 125


def test_other_seeds_give_other_results(monkeypatch, capsys):
    run_here(monkeypatch, 'train_debian')
    first = results(capsys.readouterr().out)
    run_here(monkeypatch, 'train_debian', '--seed', '1')
    assert first != results(capsys.readouterr().out)


def test_low_accuracy_is_an_error(monkeypatch):
    with pytest.raises(SystemExit, match=r'below 1\.01'):
        run_here(monkeypatch, 'train_debian', '--min-accuracy', '1.01')


def test_progress_is_shown_on_a_terminal_only(monkeypatch, capsys):
    example = load('train_debian')
    assert list(example.progress([1, 2, 3], 2, 'Title')) == [1, 2]
    assert capsys.readouterr().err == ''
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True)
    assert list(example.progress([1, 2, 3], 2, 'Title')) == [1, 2]
    assert 'Title' in capsys.readouterr().err


def test_missing_ogb_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'ogb.nodeproppred', None)
    with pytest.raises(SystemExit, match='pip install ogb'):
        load('train_debian').load_graph('ogbn-arxiv', 'data')


def test_ogb_graphs_are_brought_into_form(monkeypatch):
    class PygNodePropPredDataset(list):
        num_classes = 3

        def __init__(self, name: str, root: str):
            edge_index = torch.tensor([[0, 1], [1, 2]])
            y = torch.tensor([[0], [2], [1], [1]])
            super().__init__([Data(edge_index=edge_index, y=y, num_nodes=4)])

        def get_idx_split(self) -> dict[str, torch.Tensor]:
            split = {'train': [3, 0], 'valid': [1], 'test': [2]}
            return {key: torch.tensor(ids) for key, ids in split.items()}

    ogb = SimpleNamespace(PygNodePropPredDataset=PygNodePropPredDataset)
    monkeypatch.setitem(sys.modules, 'ogb', SimpleNamespace())
    monkeypatch.setitem(sys.modules, 'ogb.nodeproppred', ogb)
    data, num_classes = load('train_debian').load_graph('ogbn-arxiv', 'data')
    assert num_classes == 3
    assert data.num_edges == 4
    assert data.y.tolist() == [0, 2, 1, 1]
    assert data.train_mask.tolist() == [True, False, False, True]
    assert data.val_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, True, False]


def write_contents(folder: Path) -> None:
    """A graph of 5 directories, 7 names and 40 packages of 2 classes."""
    package = np.arange(40)
    np.savez(
        folder / 'graph.npz',
        **{
            'node_types': np.frombuffer(b'dir\nname\npackage', np.uint8),
            'num_nodes': np.array([5, 7, 40]),
            'edge/package__ships_in__dir': np.stack([package, package % 5]),
            'edge/dir__contains__name': np.array([[4, 0], [6, 2]]),
            'y/package': (package % 2).astype(np.int16),
            'split/package': (package % 3).astype(np.uint8),
        },
    )


def test_types_of_nodes_become_one_graph(tmp_path):
    write_contents(tmp_path)
    data, num_classes = load('train_from_disk').debian_contents(tmp_path)
    edges = set(zip(*data.edge_index.tolist(), strict=True))
    assert edges >= {(12, 0), (0, 12), (51, 4), (4, 11), (11, 4), (0, 7)}
    assert (data.num_edges, num_classes) == (84, 2)
    assert data.y[:14].tolist() == [-1] * 12 + [0, 1]
    masks = data.train_mask, data.test_mask
    assert [m.nonzero()[0].item() for m in masks] == [12, 14]
    assert (data.x != 0).any(1).nonzero().view(-1).tolist() == [*range(5)]


def test_files_are_classified_with_their_graph_on_disk(
    tmp_path, monkeypatch, capsys
):
    write_contents(tmp_path)
    run_here(monkeypatch, 'train_from_disk', '--contents', str(tmp_path))
    assert len(results(capsys.readouterr().out)) == 4


@pytest.mark.parametrize('strategy', ['last', 'uniform'])
def test_links_are_predicted_from_earlier_days_only(strategy):
    example = load('link_prediction_gcc')
    args = Namespace(batch_size=64, eval_events=64, negatives=20, seed=0)
    data, _ = example.load_graph()
    event = data[example.EVENT]
    dates = set(
        zip(*event.edge_index.tolist(), event.time.tolist(), strict=True)
    )
    for split in ('train', 'test'):
        days = int(event.time[-20_000]), int(event.time[-1])
        loader = example.make_loader(data, split, days, strategy, args)
        batch = next(iter(loader))
        day = batch['person'].seed_time + 1
        person = batch['person'].n_id[batch['person'].src_index]
        file = batch['file'].n_id[batch['file'].dst_pos_index]
        triples = zip(
            person.tolist(), file.tolist(), day.tolist(), strict=True
        )
        assert set(triples) <= dates  # so `day` is that of the event
        for edge_type in batch.edge_types:
            tree = batch[edge_type[-1]].batch
            edges = batch[edge_type]
            assert edges.num_edges > 0
            assert bool((edges.time < day[tree[edges.edge_index[1]]]).all())


def test_heuristics_count_earlier_days_only():
    example = load('link_prediction_gcc')
    args = Namespace(batch_size=64, eval_events=5000, negatives=3, seed=0)
    data, _ = example.load_graph()
    event = data[example.EVENT]
    days = int(event.time[-20_000]), int(event.time[-1])
    loader = example.make_loader(data, 'test', days, 'last', args)
    batch = next(iter(loader))
    scores = example.Heuristics(data)(batch)
    person, file = event.edge_index
    for i, p in enumerate(batch['person'].src_index.tolist()):
        same_person = person == batch['person'].n_id[p]
        past = event.time <= batch['person'].seed_time[i]
        for j, f in enumerate(example.candidates(batch)[i].tolist()):
            same_file = file == batch['file'].n_id[f]
            assert scores['same file'][i, j] == (same_file & past).sum()
            both = same_file & same_person & past
            assert scores['same person and file'][i, j] == both.sum()


def test_the_area_under_the_curve_counts_ties_as_half():
    auc = load('runner').auc
    area = auc(torch.tensor([2.0, 0.0]), torch.tensor([1.0, 2.0, 3.0, 0.0]))
    assert area == pytest.approx((1 + 0.5 + 0 + 1 + 0 + 0 + 0 + 0.5) / 8)


class Counted(torch.nn.Module):
    """A weight that counts the batches that it saw."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1))
        self.seen = []

    def loss(self, batch: list[int]) -> torch.Tensor:
        self.seen.append(batch)
        return (self.w - 1).square().sum()


def test_methods_read_equally_many_rows(capsys):
    runner = load('runner')
    args = Namespace(epochs=3, rows=20, max_batches=100, json=None)
    small, large = Counted(), Counted()
    methods = [
        runner.Method(name, batches, m, m.loss, lambda _: 0.5, rows=len)
        for name, m, batches in (
            ('small', small, [[0] * 2, [1] * 2, [2] * 2]),
            ('large', large, [[0] * 10]),
        )
    ]
    runner.compare(methods, args)
    for model, steps in ((small, 10), (large, 2)):
        assert len(model.seen) == 3 * steps
        assert sum(map(len, model.seen)) == 3 * args.rows
    out = capsys.readouterr().out
    assert 'small: test accuracy 0.5000, 30 steps, up to 2 rows' in out
    assert 'large: test accuracy 0.5000, 6 steps, up to 10 rows' in out


def test_the_best_epoch_is_tested_once():
    runner = load('runner')
    args = Namespace(epochs=3, rows=1, max_batches=1, json=None)
    model, tested = Counted(), []

    def score(split: str) -> float:
        if split == 'test':
            tested.append(float(model.w.detach()))
        return {1: 0.2, 2: 0.9, 3: 0.4}[len(model.seen)]

    optimizer = torch.optim.SGD(model.parameters(), 0.25)
    method = runner.Method(
        'x', [[0]], model, model.loss, score, len, optimizer
    )
    runner.train(method, 'accuracy', args)
    assert tested == [0.75]  # after two of three steps


def test_a_layer_reads_no_edges_of_later_hops():
    batch = Data(
        edge_index=torch.tensor([[1, 2, 3, 4], [0, 0, 1, 1]]),
        num_nodes=5,
        num_sampled_edges=[2, 2],
    )
    (every, weights), (first, of_first) = load('runner').layers_of(batch)
    assert every.tolist() == batch.edge_index.tolist()
    assert first.tolist() == [[1, 2], [0, 0]]
    assert weights.tolist() == [0.5] * 4
    assert of_first.tolist() == [0.5] * 2
