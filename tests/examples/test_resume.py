"""A run that is killed again and again ends as the one that is not."""

from pathlib import Path

import torch

from tests.fresh import Run

KILLED = Path(__file__).with_name('killed_run.py')


def tensors(value):
    """All tensors and numbers of a checkpoint, in order."""
    if isinstance(value, dict):
        return [x for v in value.values() for x in tensors(v)]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in tensors(v)]
    return [value]


def test_a_run_that_was_killed_20_times_has_the_same_weights(tmp_path):
    out = Run(KILLED, tmp_path / 'out', [str(tmp_path), '20']).wait()
    assert 'killed 20 times' in out
    whole, killed = (
        torch.load(tmp_path / f'{name}.pt', weights_only=True)
        for name in ('whole', 'killed')
    )
    assert whole['parts']['loader'] == killed['parts']['loader']
    for key in ('parts', 'epoch', 'best', 'best_state', 'rng'):
        for a, b in zip(
            tensors(whole[key]), tensors(killed[key]), strict=True
        ):
            same = torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
            assert same
