"""Training time until a model reaches an accuracy, for several samplers.

As in Tables 1 and 8 of gSampler: a model of two layers predicts the section of
Debian's packages, trained on samples of ``eager`` and ``compiled`` programs
and of a ``peer``: PyG's ``NeighborLoader`` (if pyg-lib is installed),
otherwise the sampler in plain PyTorch (``peer_torch.py``). They differ only in
the sampler.

``sampling`` is the fraction of an epoch spent in sampling; ``to accuracy`` is
the training time (without validation) until the validation accuracy, itself on
samples, comes within half a percent of the best that any of the three reaches.

    python benchmark/accuracy.py --samplers GraphSAGE,LADIES --epochs 6
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from harness import Report, machine, pyg_lib_operators
from peer_torch import (
    AsGCN,
    Columns,
    Layer,
    Pass,
    Sampler,
    fastgcn,
    graphsage,
    ladies,
)
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader as PyGLoader

import torch_gsample as gsample
from torch_gsample import SparseSample, algorithms
from torch_gsample.datasets import DebianPackages
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs

FANOUTS, NODES, CHANNELS = [10, 10], [3072, 3072], 64
SAMPLERS = ('GraphSAGE', 'LADIES', 'FastGCN', 'AS-GCN', 'PASS')
WAYS = ('eager', 'compiled', 'peer')


class Model(nn.Module):
    """Adds to a node's features the weighted sum of its neighbours'."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.encode = nn.Linear(in_channels, hidden)
        self.near = nn.ModuleList(nn.Linear(hidden, hidden) for _ in FANOUTS)
        self.classify = nn.Linear(hidden, out_channels)

    def encoded(self, x: Tensor) -> Tensor:
        return F.dropout(self.encode(x).relu(), 0.5, self.training)

    def forward(self, x: Tensor, layers: list[Layer]) -> Tensor:
        place = torch.empty(len(x), dtype=torch.int64)  # of a node in `h`
        nodes, h = layers[-1].src, self.encoded(x[layers[-1].src])
        for layer, near in zip(reversed(layers), self.near, strict=True):
            place[nodes] = torch.arange(len(nodes))
            messages = h[place[layer.src]][layer.row] * layer.weight[:, None]
            total = h.new_zeros(len(layer.dst), h.shape[1])
            total = total.index_add(0, layer.col, messages)
            nodes = layer.dst
            h = self.encoded(x[nodes]) + near(total).relu()
        return self.classify(h)


def layers_of(samples: list[SparseSample], mean: bool) -> list[Layer]:
    """Converts the samples of a program to the model's layers."""
    layers = []
    for S in samples:
        row, col = S.to_edge_index()
        dst, value = S.col_ids, S.values()
        if mean:  # of the neighbours that were drawn
            value = 1 / S.degree(0).clamp(min=1)[col].float()
        src = S.row_ids
        if src is None:
            src, row = row.unique(return_inverse=True)
        layers.append(Layer(src, dst, row, col, value))
    return layers


class Trained(nn.Module):
    """A sampler and its parameters, if any.

    Args:
        sample (Callable): Returns the layers of seeds.
        module (torch.nn.Module, optional): Trained together with the model.
    """

    def __init__(self, sample: Sampler, module: nn.Module | None = None):
        super().__init__()
        self.sample, self.module = sample, module


def ours(name: str, way: str, A: SparseSample, parts: Tensor) -> Trained:
    """A program of the package."""
    module: nn.Module | None = None
    if name == 'GraphSAGE':

        def program(A: SparseSample, s: Tensor) -> list[SparseSample]:
            return algorithms.graphsage(A, s, FANOUTS)
    elif name == 'LADIES':

        def program(A: SparseSample, s: Tensor) -> list[SparseSample]:
            return algorithms.ladies(A, s, NODES)
    elif name == 'FastGCN':
        probs = NodeProbs((A**2).sum(dim=1))

        def program(A: SparseSample, s: Tensor) -> list[SparseSample]:
            return algorithms.fastgcn(A, s, NODES, probs)
    else:
        of_nodes = name == 'AS-GCN'
        module = (
            algorithms.AsGCN(parts.shape[1])
            if of_nodes
            else algorithms.PassSampler(parts.shape[1], 32)
        )
        sizes = NODES if of_nodes else FANOUTS

        def program(A: SparseSample, s: Tensor) -> list[SparseSample]:
            return module(A, s, sizes, parts)

    run = gsample.compile(program) if way == 'compiled' else program
    return Trained(
        lambda seeds: layers_of(run(A, seeds), name == 'GraphSAGE'), module
    )


def peer(name: str, graph: Columns, parts: Tensor) -> Trained:
    """The same in plain PyTorch."""
    if name == 'AS-GCN':
        module: nn.Module = AsGCN(graph, NODES, parts)
    elif name == 'PASS':
        module = Pass(graph, FANOUTS, parts, 32)
    elif name == 'GraphSAGE':
        return Trained(graphsage(graph, FANOUTS))
    else:
        make = ladies if name == 'LADIES' else fastgcn
        return Trained(make(graph, NODES))
    return Trained(module, module)


def of_pyg(batch: Data) -> list[Layer]:
    """The layers of a PyG batch in which each node has its edges once."""
    (row, col), layers = batch.edge_index, []
    dst = torch.arange(batch.batch_size)
    for _ in FANOUTS:
        place = torch.full((batch.num_nodes,), -1)
        place[dst] = torch.arange(len(dst))
        to, edge = place[col], (place[col] >= 0).nonzero().flatten()
        to, (src, near) = to[edge], row[edge].unique(return_inverse=True)
        weight = 1 / torch.bincount(to, minlength=len(dst))[to].float()
        layers.append(
            Layer(batch.n_id[src], batch.n_id[dst], near, to, weight)
        )
        dst = src
    return layers


Batches = Callable[[int], Iterator[tuple[Tensor, list[Layer]]]]


class Job:
    """Training with one sampler, an epoch at a time."""

    def __init__(self, name: str, way: str, data: Data, parts: Tensor):
        torch.manual_seed(0)
        graph = data.A.csc
        columns = Columns(graph, data.A.values())
        self.data = data
        self.loaders: dict[str, PyGLoader] = {}
        if name == 'GraphSAGE' and way == 'peer' and pyg_lib_operators():
            for split in ('train', 'val'):
                self.loaders[split] = PyGLoader(
                    Data(edge_index=data.edge_index, num_nodes=data.num_nodes),
                    FANOUTS,
                    data[f'{split}_mask'],
                    batch_size=data.batch_size,
                    shuffle=True,
                )
        if way == 'peer':
            self.sampler = peer(name, columns, parts)
        else:
            self.sampler = ours(name, way, data.A, parts)
        classes = int(data.y.max()) + 1
        self.model = Model(data.num_features, 128, classes)
        weights = [*self.model.parameters(), *self.sampler.parameters()]
        self.optimizer = torch.optim.Adam(weights, lr=0.005)
        self.sampling = self.training_time = 0.0
        self.reached: list[tuple[float, float]] = []

    def batches(
        self, split: str, epoch: int
    ) -> Iterator[tuple[Tensor, list[Layer]]]:
        """Yields seeds and layers, and measures the time of both."""
        start = time.perf_counter()
        for seeds, layers in self._sampled(split, epoch):
            self.sampling += time.perf_counter() - start
            yield seeds, layers
            start = time.perf_counter()

    def _sampled(
        self, split: str, epoch: int
    ) -> Iterator[tuple[Tensor, list[Layer]]]:
        if self.loaders:
            for batch in self.loaders[split]:
                yield batch.n_id[: batch.batch_size], of_pyg(batch)
            return
        seeds = self.data[f'{split}_mask'].nonzero().flatten()
        seeds = seeds[torch.randperm(len(seeds))]
        for i, batch in enumerate(seeds.split(self.data.batch_size)):
            with program_scope(make_key(0, epoch, i)):
                yield batch, self.sampler.sample(batch)

    def train(self, epoch: int) -> None:
        self.model.train()
        start, before = time.perf_counter(), self.sampling
        for seeds, layers in self.batches('train', epoch):
            out = self.model(self.data.x, layers)
            loss = F.cross_entropy(out, self.data.y[seeds])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.training_time += time.perf_counter() - start
        sampling = self.sampling
        accuracy = self.validate(epoch)
        self.sampling = sampling  # validation is not counted
        self.reached.append((self.training_time, accuracy))
        print(f'{epoch}: {sampling - before:.2f} s sampling, {accuracy:.4f}')

    @torch.no_grad()
    def validate(self, epoch: int) -> float:
        self.model.eval()
        right = total = 0
        for seeds, layers in self.batches('val', epoch):
            pred = self.model(self.data.x, layers).argmax(dim=1)
            right += int((pred == self.data.y[seeds]).sum())
            total += len(seeds)
        return right / total


def packages(batch_size: int) -> tuple[Data, Tensor]:
    """Debian's packages, and principal components for learned samplers."""
    data = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())[0]
    A = SparseSample.from_edge_index(data.edge_index, num_nodes=data.num_nodes)
    data.A = A.with_value(1 / A.degree(0)[A.csc.col()].float())
    data.batch_size = batch_size
    parts = torch.pca_lowrank(data.x, CHANNELS, niter=1)[2]
    return data, F.normalize(data.x @ parts)


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    data, parts = packages(args.batch_size)
    jobs = {way: Job(name, way, data, parts) for way in WAYS}
    for epoch in range(args.epochs):
        for job in jobs.values():  # in turns: a noisy machine disturbs all
            job.train(epoch)
    best = max(
        accuracy for job in jobs.values() for _, accuracy in job.reached
    )
    for way, job in jobs.items():
        seconds = [t for t, accuracy in job.reached if accuracy > best - 0.005]
        peer = 'PyG' if job.loaders else 'PyTorch'
        report.add(
            name,
            peer if way == 'peer' else way,
            f'{job.training_time / args.epochs:.2f}',
            f'{100 * job.sampling / job.training_time:.0f} %',
            f'{max(accuracy for _, accuracy in job.reached):.4f}',
            f'{seconds[0]:.1f}' if seconds else '-',
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--samplers', default=','.join(SAMPLERS))
    parser.add_argument('--epochs', type=int, default=6)
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report = Report(
        f"Training on Debian's packages, {args.batch_size} seeds, "
        f'{args.threads} threads: {machine()}',
        ['sampler', 'sampled by', 's an epoch', 'sampling']
        + ['best accuracy', 's to accuracy'],
    )
    for name in args.samplers.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
