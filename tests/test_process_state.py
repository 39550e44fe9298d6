"""What a test changes for the whole process is found and restored."""

import os
import signal
import sys
import threading

import pytest
import torch
import torch._dynamo.config

from tests import process_state
from torch_gsample import patch_pyg
from torch_gsample.fusion import AutomaticFusion
from torch_gsample.loader import batch_edge_index, prefetch
from torch_gsample.rng import _current
from torch_gsample.sparse_sample import repeat


class Reader:
    pass


READER = Reader()
FEED = prefetch.Feed([])


def leave_a_thread():
    thread = threading.Thread(target=lambda: list(FEED))
    prefetch._running[thread] = FEED
    thread.start()


LEFT = {
    'fusion for all models': AutomaticFusion,
    'patch of PyG': patch_pyg,
    'global hooks of modules': lambda: (
        torch.nn.modules.module.register_module_forward_hook(print)
    ),
    'threads that make batches': leave_a_thread,
    'context': lambda: _current.set(3),
    'default dtype': lambda: torch.set_default_dtype(torch.float64),
    'grad mode': lambda: torch._C._set_grad_enabled(False),
    'deterministic mode': lambda: torch.use_deterministic_algorithms(True),
    'anomaly mode': lambda: torch.set_anomaly_enabled(True),
    'autocast': lambda: torch.set_autocast_enabled('cpu', True),
    'switch interval': lambda: sys.setswitchinterval(1e-3),
    'handler of Ctrl-C': lambda: signal.signal(signal.SIGINT, print),
    'folder': lambda: os.chdir('/'),
    'environment': lambda: os.environ.update(GSAMPLE_DUMP='folder'),
    'arguments': lambda: sys.argv.append('more'),
    'readers of blocks': lambda: batch_edge_index.READERS.add(READER),
    "Dynamo's configuration": lambda: setattr(
        torch._dynamo.config, 'recompile_limit', 3
    ),
}


@pytest.mark.parametrize('name', process_state.OF_FILES)
def test_changed_state_is_found_and_restored(name):
    states = process_state.OF_FILES
    before = process_state.read(states)
    assert process_state.restore(states, before) == []
    LEFT[name]()
    changed = process_state.restore(states, before)
    assert name in [text.partition(':')[0] for text in changed]
    assert process_state.restore(states, before) == []
    assert process_state.read(states) == before


def test_replaced_attributes_are_found_and_restored():
    before = process_state.read_attributes()
    value, method = repeat._is_unrolled, prefetch.Feed.__dict__['close']
    repeat._is_unrolled = 'other'
    prefetch.Feed.close = None
    assert sorted(process_state.restore_attributes(before)) == [
        'Feed.close',
        'torch_gsample.sparse_sample.repeat._is_unrolled',
    ]
    assert repeat._is_unrolled is value
    assert prefetch.Feed.__dict__['close'] is method
    assert process_state.restore_attributes(before) == []
