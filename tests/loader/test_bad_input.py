"""Bad input of loaders: errors say who, what, the rule and the value."""

import pytest
import torch

from tests.loader.batches import graph, loader_of
from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

LOADERS = [NeighborLoader, LinkNeighborLoader]


def name_of(loader):
    return loader.__name__


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
def test_fan_outs_or_a_sampler_are_needed(loader):
    text = rf"^{loader.__name__}: 'num_neighbors' is needed where no 'sampler'"
    with pytest.raises(ValueError, match=text):
        loader(graph())


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
@pytest.mark.parametrize('sampler', [3, object(), 1.5])
def test_what_is_no_sampler_is_named(loader, sampler):
    text = rf"^{loader.__name__}: 'sampler' must be .*{type(sampler).__name__}"
    with pytest.raises(TypeError, match=text):
        loader(graph(), [2], sampler=sampler)


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
@pytest.mark.parametrize('name', ['sampler', 'neighbor_sampler'])
@pytest.mark.parametrize(
    'options', [{'replace': True}, {'seed': 1}, {'time_attr': 'x'}], ids=str
)
def test_options_belong_to_a_given_sampler(loader, name, options):
    sampler = NeighborSampler(graph(), [2])
    text = rf"^{loader.__name__}: \['{next(iter(options))}'\] must be given to"
    with pytest.raises(ValueError, match=text):
        loader(graph(), **{name: sampler}, **options)


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
def test_prefetch_is_not_negative(loader):
    text = rf"^{loader.__name__}: 'prefetch' must not be negative \(got -1\)"
    with pytest.raises(ValueError, match=text):
        loader(graph(), [2], prefetch=-1)


def test_times_of_seeds_need_times_of_the_graph():
    with pytest.raises(ValueError, match="'input_time' needs 'time_attr'"):
        loader_of(input_time=torch.arange(60))
    for options in (
        {'edge_label_time': torch.arange(900)},
        {'time_attr': 'time'},
    ):
        data = graphs.homogeneous(time=torch.arange(30))
        with pytest.raises(ValueError, match='must be given together'):
            LinkNeighborLoader(data, [2], **options)


@pytest.mark.parametrize('epoch', [-1])
def test_epochs_are_not_negative(epoch):
    with pytest.raises(ValueError, match=r"'epoch' must not be .*got -1"):
        loader_of().set_epoch(epoch)


@pytest.mark.parametrize('prefetch', [0, 2])
def test_seeds_that_became_bad_are_named_when_they_are_sampled(prefetch):
    loader = loader_of(
        input_nodes=torch.tensor([3, 4]), batch_size=1, prefetch=prefetch
    )
    loader.input_data.node[1] = 60
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(IndexError, match=r"'seeds' .*\[0, 60\) \(got 60\)"):
        next(iterator)


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
def test_options_that_nobody_knows_are_refused(loader):
    with pytest.raises(TypeError, match='num_neighbours'):
        loader(graph(), [2], num_neighbours=[2])


def test_a_batch_size_is_needed():
    with pytest.raises(ValueError, match=r"'batch_size' must .*got None"):
        loader_of(batch_size=None)
