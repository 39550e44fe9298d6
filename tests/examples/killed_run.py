"""Trains in processes that are killed, and in one that is not.

Each life is a fork, so that torch and the graph are loaded once.

Args:
    folder: Where checkpoints go: ``whole.pt`` and ``killed.pt``.
    lives: How many processes are killed.
"""

import os
import random
import signal
import sys
import traceback
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tests.examples.part import part_of_debian
from tests.examples.test_examples import load

ARGS = '--epochs 3 --max-batches 8 --batch-size 128 --hidden 8 --fanouts 3 2'


def live(example, path, steps=None, in_save=False):
    """A run from where it is, killed after some steps or within a save."""
    sys.argv = [*f'train_debian {ARGS} --save-every 2'.split()]
    sys.argv += ['--resume', str(path)]
    done = 0

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def step(optimizer, *args, **kwargs):
        nonlocal done
        done += 1
        if done == steps and not in_save:
            die()

    def replace(*paths):
        if steps is not None and in_save and done >= steps:
            die()
        rename(*paths)

    rename, os.replace = os.replace, replace
    register_optimizer_step_post_hook(step)
    example.main()


def in_fork(*args):
    """Returns the signal that ended a life, or 0."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main():
    folder, lives = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    chance = random.Random(5)
    with part_of_debian():
        example = load('train_debian')
        assert in_fork(example, folder / 'whole.pt') == 0
        killed = 0
        for _ in range(lives):
            at = chance.randint(1, 4), chance.random() < 0.3
            killed += in_fork(example, folder / 'killed.pt', *at) != 0
        assert in_fork(example, folder / 'killed.pt') == 0
    print(f'killed {killed} times')


if __name__ == '__main__':
    main()
