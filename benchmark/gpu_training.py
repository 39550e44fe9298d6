"""An epoch from seeds to gradients: loader, blocks, layers and features.

The graph and its features are in pinned host memory, which the GPU reads; the
GPU caches the hottest adjacency lists. Layers are fused, or PyG's on the same
batches.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from gpu_bounds import Bench, Row
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

from torch_gsample import fuse, unfuse
from torch_gsample.loader import NeighborLoader

FANOUTS = [25, 10]
WIDTH, HIDDEN, CLASSES = 100, 256, 47


def training(bench: Bench) -> Iterator[Row]:
    """[25, 10] of 512 seeds: batches alone, and with GraphSAGE's steps."""
    loader = loader_of(bench)
    model = GraphSAGE(WIDTH, HIDDEN, len(FANOUTS), CLASSES).to(bench.device)

    def step(batch: Data) -> None:
        model.zero_grad(set_to_none=True)
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        F.cross_entropy(out, batch.y[: batch.batch_size]).backward()

    def epoch(_: int) -> int:
        nodes = 0
        for batch in loader:
            step(batch)
            nodes += batch.num_nodes
        return nodes

    def batches(_: int) -> int:
        return sum(batch.num_nodes for batch in loader)

    title = f'{FANOUTS} of 512 seeds, an epoch'
    seconds, nodes = bench.milliseconds(batches, rounds=3)
    # The rows of features come from the host.
    bound = 1e3 * 4 * WIDTH * nodes / bench.rates.host
    yield Row(f'{title} of batches with features', seconds, bound)
    fuse(model, verbose=False)
    try:
        fused, _ = bench.milliseconds(epoch, rounds=3)
    finally:
        unfuse(model)
    plain, _ = bench.milliseconds(epoch, rounds=3)
    note = f"{plain / fused:.2f}x of PyG's layers on the same batches"
    yield Row(f'{title} of steps, fused GraphSAGE', fused, bound, note=note)
    yield Row(f"{title} of steps, PyG's GraphSAGE", plain, bound)


def loader_of(bench: Bench) -> NeighborLoader:
    """The batches of an epoch, on the device."""
    graph = bench.host
    generator = torch.Generator().manual_seed(5)
    data = Data(
        x=torch.rand(graph.num_cols, WIDTH, generator=generator),
        y=torch.randint(CLASSES, (graph.num_cols,), generator=generator),
        edge_index=torch.stack([graph.indices.long(), graph.col().long()]),
    )
    pinned = {'graph_placement': 'uva'} if bench.device.type == 'cuda' else {}
    return NeighborLoader(
        data,
        FANOUTS,
        input_nodes=bench.epoch,
        batch_size=512,
        seed=0,
        device=bench.device,
        is_sorted=True,
        **pinned,
    )
