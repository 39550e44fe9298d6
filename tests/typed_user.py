"""A user's program: mypy and pyright infer the types that it asserts.

``torch_gsample`` imports lazily; type checkers must find its names all the
same. What they must refuse is in ``loader/typed_calls.py``.
"""

import torch
from torch_geometric.data import Data
from typing_extensions import assert_type

import torch_gsample as gsample
from torch_gsample.loader import NeighborLoader


def names_of_the_package(data: Data, model: torch.nn.Module) -> None:
    graph = gsample.as_graph(data)
    assert_type(graph, gsample.Graph)
    sampler = gsample.NeighborSampler(data, [2, 2], seed=0)
    assert_type(sampler, gsample.NeighborSampler)
    assert_type(gsample.loader.NeighborLoader(data, [2]), NeighborLoader)
    assert_type(gsample.datasets.power_law(9, 20, 4), gsample.CSC)
    assert_type(gsample.__version__, str)


def unknown_names() -> None:
    _ = gsample.NeighbourSampler  # type: ignore[attr-defined]
    _ = gsample.loader.NeighbourLoader  # type: ignore[attr-defined]
    _ = gsample.samplers.Ladies  # type: ignore[attr-defined]


def matrices(data: Data, seeds: torch.Tensor) -> None:
    A = gsample.SparseSample.from_data(data)
    assert_type(A, gsample.SparseSample)
    assert_type(A.num_cols, int)
    assert_type(A[:, seeds].individual_sample(2), gsample.SparseSample)
    assert_type(A.sum(dim=1), torch.Tensor)


def operators(graph: gsample.Graph, seeds: torch.Tensor) -> None:
    key = gsample.rng.make_key(0, 0, 0)
    assert_type(key, torch.Tensor)
    sample = gsample.ops.sample_neighbors(graph, seeds, [2], key)
    assert_type(sample, gsample.ops.Sample)


def loaders(data: Data) -> None:
    loader = NeighborLoader(data, [2], batch_size=2, seed=0)
    assert_type(len(loader), int)
    loader.set_epoch(1)
    loader.load_state_dict(loader.state_dict())
