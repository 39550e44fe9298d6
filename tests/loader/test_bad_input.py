"""Bad input of loaders: errors say who, what, the rule and the value."""

import re

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from tests.loader.batches import graph, loader_of
from tests.samplers import graphs
from tests.samplers.graphs import RATES
from torch_gsample import NeighborSampler
from torch_gsample.loader import (
    GraphSAINTNodeSampler,
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    ShaDowKHopSampler,
    WalkLoader,
)

LOADERS = [NeighborLoader, LinkNeighborLoader]
DATA, TYPED = graph(), graphs.heterogeneous()
TIMED = graphs.homogeneous(60, 900, time=torch.arange(60))
EDGE_TIMED = Data(
    edge_index=DATA.edge_index, time=torch.zeros(900).long(), num_nodes=60
)
LONG = torch.zeros(901).long()
HALF = NegativeSampling('binary', 1, torch.ones(59))


def name_of(loader):
    return loader.__name__


def nodes(data=DATA, **options):
    return NeighborLoader(data, [2], **options)


def links(data=DATA, **options):
    return LinkNeighborLoader(data, [2], **options)


def timed(**options):
    return nodes(TIMED, time_attr='time', **options)


def timed_links(**options):
    return links(TIMED, time_attr='time', **options)


#: Refused calls, by the beginning or a part of the message.
BAD_VALUES = {
    "NeighborLoader: 'input_time' must have 60 elements, one for each s": (
        lambda: timed(input_time=LONG[:59])
    ),
    "'input_time' must have 5 elements, one for each seed (got shape [60": (
        lambda: timed(input_nodes=torch.arange(60) < 5, input_time=LONG[:60])
    ),
    "'input_time' must be a vector (got shape [60, 1])": (
        lambda: timed(input_time=LONG[:60].view(60, 1))
    ),
    "NeighborLoader: 'input_time' needs 'time_attr' or a 'sampler'": (
        lambda: NeighborLoader(
            DATA, sampler=NeighborSampler(DATA, [2]), input_time=LONG[:60]
        )
    ),
    "'input_time' needs 'time_attr' or a 'sampler' with times": (
        lambda: nodes(input_time=LONG[:60])
    ),
    "NeighborLoader: 'input_time' is required in temporal sampling": (
        lambda: nodes(EDGE_TIMED, time_attr='time')
    ),
    "NeighborLoader: 'input_id' must have 2 elements, one for each seed": (
        lambda: nodes(input_nodes=[1, 2], input_id=LONG[:3])
    ),
    "NeighborLoader: 'batch_size' must be a number of seeds (got None)": (
        lambda: nodes(batch_size=None)
    ),
    "HGTLoader: 'input_id' must have 15 elements, one for each seed": (
        lambda: HGTLoader(TYPED, [2], 'item', input_id=LONG[:3])
    ),
    "LinkNeighborLoader: 'edge_label' must have 900 elements, one for ea": (
        lambda: links(edge_label=torch.ones(901))
    ),
    "'edge_label' must have 60 elements, one for each seed (got shape [5": (
        lambda: links(TYPED, edge_label_index=RATES, edge_label=torch.ones(59))
    ),
    "'edge_label' must have 900 elements": (
        lambda: links(edge_label=torch.tensor(1))
    ),
    "'edge_label_time' must have 900 elements, one for each seed (got sh": (
        lambda: timed_links(edge_label_time=LONG)
    ),
    "'time_attr' is not set, but 'edge_label_time' is": (
        lambda: links(edge_label_time=LONG[:900])
    ),
    "LinkNeighborLoader: 'edge_label_time' is not set, but 'time_attr' is": (
        timed_links
    ),
    "LinkNeighborLoader: 'input_id' must have 900 elements": (
        lambda: links(input_id=LONG)
    ),
    "NegativeSampling: 'src_weight' must have 60 elements, one for each": (
        lambda: links(neg_sampling=HALF)
    ),
    "'edge_label_index' is required if 'data' has no 'edge_index'": (
        lambda: LinkNeighborLoader(Data(num_nodes=3), [])
    ),
    "WalkLoader: 'num_nodes' must be at least 0 (got -1)": (
        lambda: WalkLoader(-1, list)
    ),
}
BAD_TYPES = {
    "NeighborLoader: 'num_workers' must be an integer (got '2')": (
        lambda: nodes(num_workers='2')
    ),
    "NeighborLoader: 'input_time' must hold integers (got torch.float32)": (
        lambda: timed(input_time=torch.zeros(60))
    ),
    "'input_time' must be a tensor (got list)": (
        lambda: timed(input_time=[0] * 60)
    ),
    "'edge_label' must be a tensor (got list)": (
        lambda: links(edge_label=[1] * 900)
    ),
    "LinkNeighborLoader: 'edge_label_time' must hold integers (got torch": (
        lambda: timed_links(edge_label_time=torch.zeros(900))
    ),
    "WalkLoader: 'num_nodes' must be an integer (got 2.5)": (
        lambda: WalkLoader(2.5, list)
    ),
    "WalkLoader: 'sample' must be a function of a list of nodes": (
        lambda: WalkLoader(3, 'x')
    ),
    "GraphSAINTNodeSampler: 'log' must be True or False (got 'no')": (
        lambda: GraphSAINTNodeSampler(DATA, 2, log='no')
    ),
    "ShaDowKHopSampler: 'replace' must be True or False (got [1])": (
        lambda: ShaDowKHopSampler(DATA, 1, 2, replace=[1])
    ),
    "NeighborLoader: 'prefetch' must be an integer (got 1.5)": (
        lambda: nodes(prefetch=1.5)
    ),
    "NeighborLoader: 'progress' must be True or False (got 'yes')": (
        lambda: nodes(progress='yes')
    ),
    "LinkNeighborLoader: 'filter_per_worker' must be True or False": (
        lambda: links(filter_per_worker='no')
    ),
}


@pytest.mark.parametrize('text', [*BAD_VALUES, *BAD_TYPES])
def test_bad_arguments_are_refused_at_the_constructor(text):
    error = ValueError if text in BAD_VALUES else TypeError
    with pytest.raises(error, match=re.escape(text)):
        (BAD_VALUES | BAD_TYPES)[text]()


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
def test_fan_outs_or_a_sampler_are_needed(loader):
    text = (
        rf"^{loader.__name__}: 'num_neighbors' is required without a 'sampler'"
    )
    with pytest.raises(ValueError, match=text):
        loader(graph())


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
@pytest.mark.parametrize('sampler', [3, object(), 1.5])
def test_loaders_reject_other_samplers(loader, sampler):
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
    option = next(iter(options))
    text = rf"^{loader.__name__}: \['{option}'\] must be arguments of"
    with pytest.raises(ValueError, match=text):
        loader(graph(), **{name: sampler}, **options)


@pytest.mark.parametrize('loader', LOADERS, ids=name_of)
def test_prefetch_is_not_negative(loader):
    text = rf"^{loader.__name__}: 'prefetch' must not be negative \(got -1\)"
    with pytest.raises(ValueError, match=text):
        loader(graph(), [2], prefetch=-1)


def test_labels_and_times_that_fit_are_taken():
    batch = next(iter(timed(input_time=LONG[:60], batch_size=4)))
    assert batch.seed_time.tolist() == [0] * 4
    loader = timed(input_nodes=torch.arange(60) < 5, input_time=LONG[:5])
    assert len(loader) == 5
    label = torch.rand(900, 3)
    loader = links(edge_label=label, input_id=LONG[:900], batch_size=4)
    assert torch.equal(next(iter(loader)).edge_label, label[:4])


def test_epochs_are_not_negative():
    with pytest.raises(ValueError, match=r"'epoch' must not be .*got -1"):
        loader_of().set_epoch(-1)


@pytest.mark.parametrize('prefetch', [0, 2])
def test_seeds_that_became_bad_are_named_when_they_are_sampled(prefetch):
    loader = loader_of(
        input_nodes=torch.tensor([3, 4]), batch_size=1, prefetch=prefetch
    )
    loader.input_data.node[1] = 60
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(
        IndexError, match=r"'seeds' .*\[0, 60\) \(got 60 at position \d\)"
    ):
        next(iterator)
