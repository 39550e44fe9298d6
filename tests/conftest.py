"""What all tests share."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption(
        '--update-golden',
        action='store_true',
        help='write golden files anew, to be reviewed like code',
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to processes whole; those with Spark share a process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return 'tests/spark' if file.startswith('tests/spark/') else file

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _same_generator_state():
    """Tests draw the same whichever others ran before them."""
    torch.manual_seed(12345)
