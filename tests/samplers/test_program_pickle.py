"""ProgramSampler travels to workers, and does not take the graph along."""

import pickle

import pytest
import torch
import torch.multiprocessing as mp

from tests.fresh import FORKS
from tests.samplers import graphs, programs
from tests.samplers.oracle import fields_of
from tests.samplers.test_pickle import tensors_of
from torch_gsample import ProgramSampler

INPUTS = graphs.nodes([4, 9, 4])


def sampler_of(**options):
    data = graphs.homogeneous(weight=torch.rand(150))
    return ProgramSampler(
        data,
        programs.layer_wise,
        [4, 4],
        weight_attr='weight',
        seed=0,
        **options,
    )


def outcome(sampler):
    out = sampler.sample_from_nodes(INPUTS)
    weight = out.attributes.edge[None]['edge_weight']
    return fields_of(out), weight.tolist()


def matrix_tensors(sampler):
    matrix = sampler.matrices[None]
    return [
        matrix.csc.indptr,
        matrix.csc.indices,
        matrix.edge_id,
        matrix.value,
    ]


def test_a_pickled_sampler_samples_the_same():
    sampler = sampler_of()
    other = pickle.loads(pickle.dumps(sampler))
    assert outcome(other) == outcome(sampler)


def test_the_graph_is_there_once():
    """The matrix is made of the tensors of the graph."""
    sampler = sampler_of()
    known = {t.data_ptr() for t in tensors_of(sampler.graph).values()}
    assert all(t.data_ptr() in known for t in matrix_tensors(sampler)[:3])


def test_share_memory_shares_all_tensors():
    sampler = sampler_of(share_memory=True, true_negatives=True)
    negatives = tensors_of(sampler._negatives)
    tensors = [
        *tensors_of(sampler.graph).values(),
        *negatives.values(),
        *matrix_tensors(sampler),
    ]
    assert len(tensors) >= 7
    assert any('_neighbors' in name for name in negatives)
    assert all(t.is_shared() for t in tensors)
    assert not any(t.is_shared() for t in matrix_tensors(sampler_of()))


def child(queue, sampler):
    torch.set_num_threads(1)  # as in the workers of a loader
    queue.put(outcome(sampler))
    # The parent sees writes of a child: they share one graph.
    sampler.matrices[None].value.fill_(3.0)
    queue.put('done')


@pytest.mark.parametrize(
    'context', [mp.get_context('fork'), FORKS], ids=['fork', 'forkserver']
)
def test_a_process_samples_the_same_from_the_same_memory(context):
    sampler, queue = sampler_of(share_memory=True), context.Queue()
    expected = outcome(sampler)
    process = context.Process(target=child, args=(queue, sampler))
    process.start()
    assert queue.get(timeout=300) == expected
    assert queue.get(timeout=300) == 'done'
    process.join()
    assert bool((sampler.matrices[None].value == 3.0).all())
