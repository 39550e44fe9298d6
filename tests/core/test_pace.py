"""When a thread works alone, because its team was late."""

import subprocess

import pytest

from tests.core.test_core import GXX, ROOT


@pytest.fixture(scope='module')
def pauses(tmp_path_factory):
    """A function that returns the milliseconds after each round."""
    program = tmp_path_factory.mktemp('pace') / 'pace'
    source = ROOT / 'tests' / 'core' / 'pace_test.cpp'
    command = [*GXX, '-O1', f'-I{ROOT / "csrc"}', source, '-o', program]
    subprocess.run(command, check=True)

    def run(rounds):
        out = subprocess.check_output([program, rounds], text=True)
        return [int(x) for x in out.split()]

    return run


def test_a_team_that_is_on_time_is_used(pauses):
    assert pauses('0104') == [0] * 4


def test_a_thread_works_alone_for_twice_as_long_each_time(pauses):
    doubled = [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert pauses('9' * 11) == [*doubled, 1000, 1000]


def test_a_team_that_is_on_time_again_is_trusted_step_by_step(pauses):
    assert pauses('999009') == [2, 4, 8, 0, 0, 16]  # 15.02
    # After enough rounds, one that is late counts as the first.
    assert pauses('999' + '0' * 50 + '9')[-1] == 2
