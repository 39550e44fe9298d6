"""Tests that end in every way; `tests/cuda/test_processes.py` runs them."""

import os
import time

import pytest
import torch


def test_right():
    pass


def test_wrong():
    assert torch.ones(2).tolist() == [1, 2]


def test_error():
    raise RuntimeError('no kernel image')


def test_skipped():
    pytest.skip('no reason')


def test_crash():
    os.abort()


def test_device_fault():
    def synchronize():
        raise RuntimeError('an illegal memory access was encountered')

    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = synchronize
    synchronize()


def test_hang():
    time.sleep(600)


def test_after_all():
    pass
