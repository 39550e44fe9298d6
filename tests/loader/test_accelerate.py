"""Batches of accelerate's loaders, in one process and in two."""

import pytest
import torch

from tests.loader.batches import end_workers, loader_of, run, values
from tests.loader.wrapped import NODES, in_two_processes


def test_accelerate_skips_batches():
    prepare = pytest.importorskip('accelerate.data_loader')
    loader = prepare.prepare_data_loader(loader_of(**NODES))
    skipped = prepare.skip_first_batches(loader, 3)
    assert run(skipped) == run(loader_of(**NODES))[3:]


def test_accelerate_dispatches_only_tensors():
    """The first process would cut batches in pieces: graphs have none."""
    prepare = pytest.importorskip('accelerate.data_loader')
    loader = prepare.prepare_data_loader(
        loader_of(**NODES), put_on_device=True, dispatch_batches=True
    )
    with pytest.raises(TypeError, match='batch size of tensors but got'):
        next(iter(loader))


def _accelerate(rank):
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader

    torch.manual_seed(rank)
    accelerator = Accelerator(cpu=True)
    out = []
    for num_workers in (0, 2):
        loader = accelerator.prepare(
            loader_of(**NODES, num_workers=num_workers)
        )
        out.append([run(loader), run(loader)])
        end_workers()
    halves = prepare_data_loader(
        loader_of(**NODES), None, 2, rank, split_batches=True
    )
    uneven = prepare_data_loader(
        loader_of(shuffle=True, batch_size=7), None, 2, rank
    )
    return out, run(halves), run(uneven)


def test_accelerate_in_two_processes(tmp_path):
    pytest.importorskip('accelerate')
    alone = loader_of(**NODES)
    want = run(alone), run(alone)
    results = in_two_processes(_accelerate, tmp_path)
    for rank, (out, _, _) in enumerate(results):
        for epochs in out:
            assert epochs == [w[rank::2] for w in want]
    # Halves of a batch draw under its number.
    numbers = loader_of(**NODES)
    for i, batch in enumerate(numbers.batch_sampler):
        for rank, (_, halves, _) in enumerate(results):
            half = numbers.collate_fn(batch[3 * rank : 3 * rank + 3])
            assert values(half) == halves[i]
    # 9 batches, the last with 4 seeds: accelerate fills up.
    last = loader_of(shuffle=True, batch_size=7)
    want = run(last)
    for rank, (_, _, uneven) in enumerate(results):
        assert len(uneven) == 5
        assert uneven[:4] == want[rank:8:2]
    assert results[0][2][4]['input_id'][:4] == want[8]['input_id']
