"""Runs the examples of the documentation, makes its pictures and pages.

    python docs/make.py

Pictures are made from real runs; the same seed gives the same picture.
"""

import doctest
import importlib
import itertools
import math
import pkgutil
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from draw_storage import draw_storage
from make_pages import main as make_pages
from matplotlib.axes import Axes
from torch import Tensor
from torch_geometric.sampler import NodeSamplerInput, SamplerOutput

import torch_gsample
from torch_gsample import NeighborSampler
from torch_gsample.datasets import DebianPackages

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / 'benchmark' / 'results'
COLORS = ('#d1495b', '#edae49', '#00798c')


def check_examples() -> int:
    """Runs the examples of all pages and docstrings; returns failures."""
    failed = 0
    for page in [*sorted(DOCS.glob('*.md')), DOCS.parent / 'README.md']:
        failed += doctest.testfile(str(page), module_relative=False).failed
    for module in pkgutil.walk_packages(
        torch_gsample.__path__, 'torch_gsample.'
    ):
        if module.name == 'torch_gsample._C':  # no Python module
            continue
        failed += doctest.testmod(importlib.import_module(module.name)).failed
    return failed


def ring_positions(out: SamplerOutput) -> tuple[Tensor, Tensor]:
    """Places the nodes of each hop on a ring, turned towards their parents."""
    angle = torch.zeros(out.node.numel())
    radius = torch.zeros(out.node.numel())
    begin = out.num_sampled_nodes[0]
    for hop, count in enumerate(out.num_sampled_nodes[1:], 1):
        nodes = torch.arange(begin, begin + count)
        parent = torch.stack([angle[out.col[out.row == v][0]] for v in nodes])
        parent, order = parent.sort(stable=True)
        even = torch.arange(count) * 2 * math.pi / count
        gap = parent - even
        turn = torch.atan2(gap.sin().mean(), gap.cos().mean())
        angle[nodes[order]] = (even + turn) % (2 * math.pi)
        radius[nodes] = float(hop)
        begin += count
    return radius * angle.cos(), radius * angle.sin()


def draw_sample(ax: Axes, out: SamplerOutput, names: list[str]) -> None:
    """Draws a sampled neighbourhood with its hops as rings."""
    x, y = ring_positions(out)
    for source, target in zip(out.row.tolist(), out.col.tolist(), strict=True):
        ax.annotate(
            '',
            (x[target], y[target]),
            (x[source], y[source]),
            arrowprops=dict(arrowstyle='-|>', color='#bbbbbb', lw=0.8),
        )
    hop = torch.repeat_interleave(torch.tensor(out.num_sampled_nodes))
    for h, color in enumerate(COLORS):
        mine = hop == h
        label = 'seed' if h == 0 else f'hop {h}'
        ax.scatter(x[mine], y[mine], s=60, color=color, label=label, zorder=3)
    for i, node in enumerate(out.node.tolist()):
        ax.annotate(
            names[node],
            (float(x[i]), float(y[i])),
            xytext=(0, 9),
            textcoords='offset points',
            fontsize=8,
            ha='center',
            bbox=dict(boxstyle='round,pad=0.1', fc='white', ec='none'),
            zorder=2,
        )
    ax.set_axis_off()
    ax.set_aspect('equal')
    ax.legend(frameon=False, loc='center left', bbox_to_anchor=(1.05, 0.5))


def draw_pictures() -> None:
    dataset = DebianPackages(homogeneous=True)
    data = dataset[0]
    names = dataset.package_names
    # Edges lead from a package to what it needs; turn them, so that a package
    # gathers from its dependencies.
    data.edge_index = data.edge_index.flip(0)
    sampler = NeighborSampler(data, [4, 3], seed=3)
    seed = torch.tensor([names.index('gimp')])
    out = sampler.sample_from_nodes(NodeSamplerInput(None, seed))
    figure, ax = plt.subplots(figsize=(9, 5.4))
    draw_sample(ax, out, names)
    path = DOCS / 'images' / 'sample.png'
    figure.savefig(
        path, bbox_inches='tight', dpi=110, metadata={'Software': None}
    )


def read_ablation() -> dict[str, dict[str, float]]:
    """Reads the newest recorded table: times of a sampler by passes."""
    for page in sorted(RESULTS.glob('*.md'), reverse=True):
        lines = page.read_text().splitlines()
        for i, line in enumerate(lines):
            if '| ablation of |' in line:
                table = itertools.takewhile(str.strip, lines[i + 2 :])
                head, *rows = (
                    [c.strip() for c in x.split('|')[2:-1]]
                    for x in (line, *table)
                )
                return {
                    name: {
                        k: float(t)
                        for k, t in zip(head[1:], times, strict=True)
                        if t != '-'
                    }
                    for name, *times in rows
                }
    raise FileNotFoundError(f'no table of benchmark/ablation.py in {RESULTS}')


def draw_ablation() -> None:
    """Draws how much faster than eager each group of passes makes samplers."""
    table = read_ablation()
    figure, ax = plt.subplots(figsize=(9, 3.6))
    steps = [k for k in max(table.values(), key=len) if k != 'eager']
    shades = mpl.colormaps['viridis'](torch.linspace(0.1, 0.9, len(steps)))
    for i, (step, shade) in enumerate(zip(steps, shades, strict=True)):
        bars = [
            (x + 0.2 * i, times['eager'] / times[step])
            for x, times in enumerate(table.values())
            if step in times
        ]
        label = step if i == 0 else f'+ {step}'
        ax.bar(*zip(*bars, strict=True), width=0.2, color=shade, label=label)
    ax.set_yscale('log', base=2)
    ax.yaxis.set_major_formatter('{x:g}x')
    ax.axhline(1, color='#777777', lw=0.8)
    ax.set_ylabel('times as fast as eager')
    places = [x + 0.3 for x in range(len(table))]
    ax.set_xticks(places, list(table), fontsize=8)
    ax.legend(
        frameon=False,
        ncols=len(steps),
        loc='lower center',
        bbox_to_anchor=(0.5, 1.0),
    )
    figure.savefig(
        DOCS / 'images' / 'ablation.png',
        bbox_inches='tight',
        dpi=110,
        metadata={'Software': None},
    )


def main() -> None:
    mpl.use('Agg')
    (DOCS / 'images').mkdir(exist_ok=True)
    draw_pictures()
    draw_ablation()
    draw_storage(DOCS / 'images' / 'storage.png')
    make_pages()
    failed = check_examples()
    if failed:
        sys.exit(f'{failed} examples failed')
    print(f'pictures in {DOCS / "images"}, all examples passed')


if __name__ == '__main__':
    main()
