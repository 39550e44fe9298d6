"""Our classes in the place of PyG's, and back."""

import sys
from threading import Event, Thread
from types import ModuleType

import pytest
import torch_geometric
from torch_geometric import loader as pyg_loader

import torch_gsample
from torch_gsample import loader, nn, patch_pyg


def test_what_pyg_gives_is_ours_until_it_is_undone():
    theirs = pyg_loader.NeighborLoader
    patch = patch_pyg()
    try:
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
        assert torch_geometric.nn.Node2Vec is nn.Node2Vec
        assert torch_geometric.nn.models.Node2Vec is nn.Node2Vec
        assert (
            torch_geometric.data.lightning.datamodule.NeighborSampler
            is torch_gsample.NeighborSampler
        )
        assert 'torch_geometric.loader.HGTLoader' in patch.names
        with patch_pyg() as second:
            assert second.names == []
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
    finally:
        patch.undo()
    assert pyg_loader.NeighborLoader is theirs
    assert torch_geometric.nn.models.Node2Vec is not nn.Node2Vec
    patch.undo()
    assert pyg_loader.NeighborLoader is theirs


def test_an_error_undoes_it():
    theirs = pyg_loader.NeighborLoader
    with pytest.raises(ZeroDivisionError), patch_pyg():
        raise ZeroDivisionError
    assert pyg_loader.NeighborLoader is theirs


def module_of(monkeypatch, name, text=''):
    module = ModuleType(name)
    exec(text, vars(module))
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize('name', torch_gsample.patch._REPLACED[0][2])
def test_names_that_were_imported_before_are_ours_meanwhile(monkeypatch, name):
    theirs = getattr(pyg_loader, name)
    user = module_of(
        monkeypatch, 'user', f'from torch_geometric.loader import {name} as L'
    )
    with patch_pyg() as patch:
        assert user.L is getattr(loader, name) is getattr(pyg_loader, name)
        assert 'user.L' in patch.names
    assert user.L is theirs is getattr(pyg_loader, name)


def test_what_a_module_changed_itself_stays(monkeypatch):
    user = module_of(
        monkeypatch, 'user', 'from torch_geometric.loader import HGTLoader'
    )
    with patch_pyg():
        user.HGTLoader = 'mine'
    assert user.HGTLoader == 'mine'


def test_modules_of_pyg_that_are_imported_meanwhile_are_put_back(monkeypatch):
    text = 'from torch_geometric.loader import HGTLoader'
    with patch_pyg():
        theirs = module_of(monkeypatch, 'torch_geometric.late', text)
        other = module_of(monkeypatch, 'other', text)
        assert theirs.HGTLoader is other.HGTLoader is loader.HGTLoader
    assert theirs.HGTLoader is pyg_loader.HGTLoader
    assert theirs.HGTLoader is not loader.HGTLoader
    assert other.HGTLoader is loader.HGTLoader


def test_odd_modules_are_left_alone(monkeypatch):
    class Odd:
        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, 'odd', Odd())
    monkeypatch.setitem(sys.modules, 'missing', None)
    with patch_pyg():
        pass


def test_patches_that_overlap_last_as_long_as_one_of_them():
    theirs = pyg_loader.NeighborLoader
    first, second = patch_pyg(), patch_pyg()
    first.undo()
    first.undo()
    assert pyg_loader.NeighborLoader is loader.NeighborLoader
    second.undo()
    assert pyg_loader.NeighborLoader is theirs


def test_threads_share_a_patch():
    theirs, ready, leave = pyg_loader.NeighborLoader, Event(), Event()

    def work():
        with patch_pyg():
            ready.set()
            leave.wait(60)

    thread = Thread(target=work)
    with patch_pyg():
        thread.start()
        ready.wait(60)
    assert pyg_loader.NeighborLoader is loader.NeighborLoader
    leave.set()
    thread.join()
    assert pyg_loader.NeighborLoader is theirs


def test_many_threads_patch_and_undo():
    theirs, failed = pyg_loader.NeighborLoader, []

    def work():
        for _ in range(10):
            with patch_pyg():
                if pyg_loader.NeighborLoader is theirs:
                    failed.append(1)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert pyg_loader.NeighborLoader is theirs


def test_versions_of_pyg_are_checked(monkeypatch):
    monkeypatch.setattr(torch_geometric, '__version__', '2.6.1')
    with pytest.raises(ImportError, match=r'2\.7 or later .*found 2\.6\.1'):
        patch_pyg()
    monkeypatch.setattr(torch_geometric, '__version__', '2.9.0')
    with pytest.warns(UserWarning, match=r'torch-geometric 2\.9\.0 was not'):
        patch_pyg().undo()
