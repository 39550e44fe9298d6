"""Batches of Ray Train's workers; run by ``make test-interop``."""

import os
import shutil
import signal
import tempfile
import warnings
from pathlib import Path

import pytest
import torch

from tests.loader.batches import loader_of, run
from tests.loader.wrapped import LOST, NODES

pytestmark = pytest.mark.interop
train = pytest.importorskip('ray.train.torch')


@pytest.fixture
def cluster(monkeypatch):
    """Ray on this machine, reached over the loopback."""
    import ray

    monkeypatch.setenv('RAY_USAGE_STATS_ENABLED', '0')
    # Its sockets lie there, and their names have a limit.
    folder = tempfile.mkdtemp(prefix='ray', dir='/tmp')
    root = str(Path(__file__).parents[2])
    handler = signal.getsignal(signal.SIGINT)  # a trainer sets its own
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        runtime_env={'env_vars': {'PYTHONPATH': root}},
        _temp_dir=folder,
        _node_ip_address='127.0.0.1',
    )
    yield
    ray.shutdown()
    signal.signal(signal.SIGINT, handler)
    shutil.rmtree(folder, ignore_errors=True)


def _train(config):
    """What each worker does."""
    from ray.train import get_context

    torch.set_num_threads(1)
    rank = get_context().get_world_rank()
    ours = []
    for num_workers in (0, 2):
        options = {'num_workers': num_workers, 'rank': rank, 'world_size': 2}
        loader = train.prepare_data_loader(loader_of(**NODES, **options))
        ours.append([run(loader), run(loader)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        loader = train.prepare_data_loader(loader_of(**NODES))
        dealt = run(loader)
    texts = [str(warning.message) for warning in said]
    torch.save((ours, dealt, texts), f'{config["folder"]}/{rank}.pt')


def test_batches_of_two_workers(cluster, tmp_path):
    from ray.train import RunConfig, ScalingConfig

    train.TorchTrainer(
        _train,
        train_loop_config={'folder': os.fspath(tmp_path)},
        torch_config=train.TorchConfig(backend='gloo'),
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=os.fspath(tmp_path / 'runs')),
    ).fit()
    seeds = set()
    for rank in range(2):
        name = tmp_path / f'{rank}.pt'
        ours, dealt, texts = torch.load(name, weights_only=False)
        alone = loader_of(**NODES, rank=rank, world_size=2)
        want = [run(alone), run(alone)]
        assert ours == [want, want]
        # Ray deals the seeds itself where it is let: no number arrives.
        assert sum(LOST in text for text in texts) == 1
        seeds.update(*(batch['input_id'] for batch in dealt))
    assert seeds == set(range(60))
