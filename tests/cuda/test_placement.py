"""Where a graph is for a GPU, on a machine without one."""

from unittest import mock

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.cuda.test_loader import CPU, some_data
from torch_gsample import SparseSample, placement
from torch_gsample.samplers import NeighborSampler
from torch_gsample.samplers.neighbor import neighborhood


def with_kernels(monkeypatch, torch_built=True, gpus=1):
    """As if this build had CUDA kernels, and there were some GPUs."""
    monkeypatch.setattr(placement, 'has_cuda_kernel', lambda _: True)
    built = torch.backends.cuda
    monkeypatch.setattr(built, 'is_built', lambda: torch_built)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: gpus)
    monkeypatch.setattr(torch.cuda, 'current_device', lambda: 0)


def read(device):
    return placement.read_device('NeighborSampler', device)


def test_devices_are_checked(monkeypatch):
    with_kernels(monkeypatch, gpus=2)
    assert read('cpu') == CPU
    assert read('cuda') == torch.device('cuda:0')
    assert read(torch.device('cuda:1')) == torch.device('cuda:1')
    with pytest.raises(ValueError, match='cuda:2, but there are 2 GPUs'):
        read('cuda:2')
    with pytest.raises(ValueError, match="must be 'cpu', 'cuda' or"):
        read('meta')
    with pytest.raises(ValueError, match="must be 'cpu', 'cuda' or"):
        read('gpu0')
    with pytest.raises(TypeError, match='must be a device or its name'):
        read(0)


def test_machines_without_a_driver_say_so(monkeypatch):
    with_kernels(monkeypatch, gpus=0)
    with pytest.raises(RuntimeError, match='no GPU with a driver was found'):
        read('cuda')


def test_builds_without_cuda_say_so(monkeypatch):
    with_kernels(monkeypatch, torch_built=False)
    with pytest.raises(ValueError, match=r'this torch .* built without'):
        read('cuda')
    monkeypatch.setattr(placement, 'has_cuda_kernel', lambda _: False)
    with pytest.raises(ValueError, match='this torch_gsample was built with'):
        NeighborSampler(some_data(), [2], device='cuda')


def test_placements_are_checked(monkeypatch):
    with pytest.raises(ValueError, match="'graph_placement' must be one of"):
        NeighborSampler(some_data(), [2], graph_placement='disk')
    with_kernels(monkeypatch)
    induced = {'subgraph_type': 'induced', 'device': 'cuda'}
    with pytest.raises(ValueError, match="type='induced' needs the graph"):
        NeighborSampler(some_data(), [2], graph_placement='uva', **induced)


def test_induced_subgraphs_are_of_graphs_on_the_gpu(monkeypatch):
    with_kernels(monkeypatch)
    choose = mock.Mock(side_effect=InterruptedError)
    monkeypatch.setattr(neighborhood, 'choose_placement', choose)
    for kind in ('directional', 'induced'):
        with pytest.raises(InterruptedError):
            NeighborSampler(
                some_data(), [2], subgraph_type=kind, device='cuda'
            )
    assert [call.args[2] for call in choose.call_args_list] == ['auto', 'gpu']


# Placement ###################################################################


def test_auto_is_the_gpu_where_half_of_its_memory_holds_the_graph(monkeypatch):
    tensors = [torch.zeros(100, dtype=torch.int64)] * 2
    for free, pinned in ((3200, False), (3199, True)):
        monkeypatch.setattr(
            torch.cuda, 'mem_get_info', lambda _, free=free: (free, 10**6)
        )
        chosen = placement.choose_placement('x', CPU, 'auto', tensors)
        assert chosen == placement.Placement(CPU, pinned)


def test_memory_is_registered_while_it_is_needed(driver):
    tensor = torch.arange(10)
    first = placement.pin(tensor)
    second = placement.pin(tensor)
    assert first.data_ptr() == tensor.data_ptr()
    assert driver.registered == {tensor.data_ptr(): 80}
    del first
    assert driver.registered
    del second
    assert not driver.registered


def test_memory_that_cannot_be_registered_is_copied(driver, monkeypatch):
    monkeypatch.setattr(torch.Tensor, 'pin_memory', torch.Tensor.clone)
    tensor = torch.arange(10)
    first = placement.pin(tensor[:5])
    assert placement.pin(tensor).data_ptr() != tensor.data_ptr()  # longer
    del first
    driver.refuses = True
    copy = placement.pin(tensor)
    assert copy.data_ptr() != tensor.data_ptr()
    assert torch.equal(copy, tensor)


def test_matrices_are_pinned_in_place(driver):
    matrix = SparseSample.from_edge_index(some_data().edge_index)
    pinned = matrix.pin()
    held = {t.data_ptr() for t in (matrix.csc.indptr, matrix.csc.indices)}
    assert held <= set(driver.registered)
    assert torch.equal(pinned.to_dense(), matrix.to_dense())
    del pinned
    assert not driver.registered


class Copies(TorchFunctionMode):
    """Says which copies are asynchronous."""

    def __init__(self):
        super().__init__()
        self.non_blocking = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.to:
            self.non_blocking.append(kwargs['non_blocking'])
        return function(*args, **(kwargs or {}))


def test_copies_of_registered_memory_wait(driver):
    matrix = SparseSample.from_edge_index(some_data().edge_index)
    pinned = matrix.pin()
    with Copies() as of_pinned:
        pinned.to('meta', non_blocking=True)
    assert of_pinned.non_blocking
    assert not any(of_pinned.non_blocking)
    del pinned
    with Copies() as copies:
        matrix.to('meta', non_blocking=True)
    assert copies.non_blocking
    assert all(copies.non_blocking)
