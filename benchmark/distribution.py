"""Sampling bias of torch_gsample and pyg-lib compared with uniform draws.

    python benchmark/distribution.py --picture docs/images/distribution.svg

It draws neighbours of hubs, and of nodes with few neighbours, in a graph of
one relation and in one of two relations, with two threads. pyg-lib is measured
if it is installed. Draws are counted by the neighbour's position in the list
of its node. The picture has the documentation's style, for light and dark
pages.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from harness import Report, machine, pyg_lib_operators
from matplotlib.figure import Figure
from torch import Tensor

from torch_gsample import CSC, Graph, ops

sys.path.append(str(Path(__file__).resolve().parent.parent / 'docs'))
from picture_style import picture_style, save

BINS = 40
COLORS = {'torch_gsample': '#00798c', 'pyg-lib': '#d1495b'}
#: Neighbours of a node, number of nodes, and draws per node.
SIZES = {'hub': (40_000, 50, 20), 'small': (40, 5_000, 4)}


def homogeneous(degree: int, nodes: int, fanout: int) -> dict[str, Callable]:
    """Returns samplers: functions from a round to the drawn edges.

    Columns from ``degree`` on are the nodes; each has all rows below it.
    """
    held = torch.full((degree + nodes,), degree)
    held[:degree] = 0
    indptr = torch.cat([torch.zeros(1).long(), held.cumsum(0)])
    indices = torch.arange(degree).repeat(nodes)
    seeds = torch.arange(degree, degree + nodes)
    graph = Graph.from_csc(CSC(indptr, indices, degree + nodes))

    def ours(i: int) -> Tensor:
        key = torch.tensor([[12, 0, i]])
        return ops.sample_neighbors(graph, seeds, [fanout], key).edge

    def theirs(_: int) -> Tensor:
        return pyg.neighbor_sample(indptr, indices, seeds, [fanout], csc=True)[
            3
        ]

    pyg = pyg_lib_operators()
    return {'torch_gsample': ours} | ({'pyg-lib': theirs} if pyg else {})


def heterogeneous(degree: int, nodes: int, fanout: int) -> dict[str, Callable]:
    """Returns the same for two relations, from sources to two node types."""
    indptr = torch.arange(nodes + 1) * degree
    indices = torch.arange(degree).repeat(nodes)
    seeds = torch.arange(nodes)
    types = ['source', 'a', 'b']
    relations = [('source', 'to', 'a'), ('source', 'to', 'b')]
    names = ['__'.join(relation) for relation in relations]
    columns = [CSC(indptr, indices, degree)] * 2
    graph = Graph(types, relations, (degree, nodes, nodes), columns)

    def ours(i: int) -> Tensor:
        key = torch.tensor([[12, 0, i]])
        of_types = [seeds[:0], seeds, seeds]
        return ops.sample_neighbors(graph, of_types, [[fanout]] * 2, key).edge

    def theirs(_: int) -> Tensor:
        sampled = pyg.hetero_neighbor_sample(
            types,
            relations,
            dict.fromkeys(names, indptr),
            dict.fromkeys(names, indices),
            {'a': seeds, 'b': seeds},
            {name: [fanout] for name in names},
            csc=True,
        )
        return torch.cat([sampled[3][name] for name in names])

    pyg = pyg_lib_operators()
    return {'torch_gsample': ours} | ({'pyg-lib': theirs} if pyg else {})


def peer_version() -> str:
    """Returns the version of pyg-lib."""
    if pyg_lib_operators() is None:
        return 'not installed'
    import pyg_lib

    return pyg_lib.__version__


def shares(sample: Callable, degree: int, rounds: int) -> Tensor:
    """Returns the draws by position, ``[BINS]``, relative to uniform ones."""
    place = torch.cat([sample(i) for i in range(rounds)]) % degree
    count = torch.bincount(place * BINS // degree, minlength=BINS)
    return count * BINS / place.numel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=40)
    parser.add_argument('--picture', type=Path)
    args = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(12)
    columns = ['graph', 'neighbours', 'sampler', 'draws', 'least', 'most']
    report = Report(f'draws relative to uniform ones, {machine()}', columns)
    with picture_style():
        figure = draw(report, args.rounds)
        report.show()
        if args.picture:
            title = machine().replace(', torch ', '\ntorch ', 1)
            figure.suptitle(f'{title}, pyg-lib {peer_version()}', size=8)
            save(figure, args.picture)


def draw(report: Report, rounds: int) -> Figure:
    """Measures all cases, and returns their picture."""
    figure = Figure(figsize=(9, 5), layout='constrained')
    axes = figure.subplots(2, 2, sharey=True)
    for row, graph in zip(axes, (homogeneous, heterogeneous), strict=True):
        for ax, (degree, nodes, fanout) in zip(
            row, SIZES.values(), strict=True
        ):
            draws = nodes * fanout * rounds
            draws *= 2 if graph is heterogeneous else 1
            samplers = graph(degree, nodes, fanout)
            for name, sample in samplers.items():
                share = shares(sample, degree, rounds)
                least, most = float(share.min()), float(share.max())
                report.add(graph.__name__, degree, name, draws, least, most)
                edges = torch.arange(BINS + 1) / BINS
                color = COLORS[name]
                ax.stairs(share, edges, color=color, lw=1.5, label=name)
            ax.axhline(1, color='#777777', lw=0.8, ls=':')
            ax.set_title(f'{graph.__name__}, {degree:,} neighbours', size=10)
    axes[0, 0].set_ylim(0, 1.8)
    axes[0, 0].legend(frameon=False, loc='lower left')
    figure.supylabel('draws, 1 = uniform')
    figure.supxlabel("position of the neighbour in its node's list")
    return figure


if __name__ == '__main__':
    main()
