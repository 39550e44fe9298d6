"""Pictures of a sampled neighbourhood, with hops as rings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample._axes import make_axes, sample_colors

#: A hub has at least this multiple of the mean number of edges.
HUB_FACTOR = 10.0


def plot_batch(
    batch: Any, ax: Any = None, *, labels: Any = None, degree: Any = None
) -> Any:
    """Draws a mini-batch, with seeds in the middle and each hop as a ring.

    Nodes of a ring are close to the nodes that they were sampled for, and
    arrows point from sources to destinations. Colours are hops, or node types
    in a heterogeneous batch. Hubs, that is, nodes with at least ten times the
    mean number of edges, have a border. It is readable up to a few
    hundred nodes.

    Args:
        batch (Data, HeteroData, SamplerOutput or HeteroSamplerOutput): A
            result of a loader or sampler.
        ax (matplotlib.axes.Axes, optional): The axes; default: new ones.
        labels (Sequence[str], optional): The label of each node of the whole
            graph; a dictionary by node type in a heterogeneous batch.
        degree (torch.Tensor, optional): The number of edges of each node of
            the whole graph, ``[num_nodes]``, which determines hubs; a
            dictionary by node type in a heterogeneous batch. Default: the
            number of edges in the batch.

    Returns:
        matplotlib.axes.Axes: The axes; ``ax.figure`` is the picture.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If the batch or :obj:`ax` is of another type.
        ValueError: If the batch lacks its hops, its edges, or the ids that
            :obj:`labels` and :obj:`degree` need, or these are too short.

    Example:
        >>> from torch_gsample.datasets import DebianPackages
        >>> from torch_gsample.loader import NeighborLoader
        >>> data = DebianPackages(homogeneous=True)[0]
        >>> loader = NeighborLoader(data, [4, 3], batch_size=1, seed=12)
        >>> ax = plot_batch(next(iter(loader)))
        >>> ax.get_legend().get_texts()[0].get_text()
        'seed (1)'
    """
    parts, edges = _read(batch)
    hop = torch.cat([part.hop for part in parts])
    hub = torch.cat(_hubs(parts, edges, degree))
    texts = [_texts(part, labels) for part in parts]
    ax = make_axes('plot_batch', ax, (7, 6))
    x, y = ring_positions(hop, edges)
    _draw_rings(ax, (x**2 + y**2).sqrt())
    _draw_edges(ax, x, y, edges)
    if isinstance(batch, HeteroData | HeteroSamplerOutput):
        kind = torch.arange(len(parts)).repeat_interleave(
            torch.tensor([part.hop.numel() for part in parts])
        )
        names = [part.name for part in parts]
    else:
        kind = hop
        names = ['seed'] + [f'hop {h}' for h in range(1, int(hop.max()) + 1)]
    _draw_nodes(ax, x, y, kind, names, hub)
    _write_texts(ax, x, y, [t for part in texts for t in part])
    ax.set_axis_off()
    ax.set_aspect('equal')
    ax.legend(frameon=False, loc='center left', bbox_to_anchor=(1.02, 0.5))
    return ax


def ring_positions(hop: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Places nodes on rings, close to the nodes that they were sampled for.

    Nodes of a ring are evenly spaced in the order of their parents' angles,
    and the ring is rotated towards the parents.

    Args:
        hop (torch.Tensor): ``[num_nodes]``, 0 for seeds.
        edges (torch.Tensor): ``[2, num_edges]``, sources and destinations.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: Coordinates ``x`` and ``y``,
        ``[num_nodes]``. One seed is at the origin, several are on a ring.
    """
    angle = torch.zeros(hop.numel())
    parent = _parents(hop, edges)
    for h in range(int(hop.max()) + 1 if hop.numel() else 0):
        nodes = (hop == h).nonzero().view(-1)
        held = parent[nodes] >= 0
        wanted = torch.where(held, angle[parent[nodes].clamp(min=0)], 7.0)
        order = wanted.sort(stable=True).indices
        even = torch.arange(nodes.numel()) * (2 * math.pi / nodes.numel())
        gap = (wanted[order] - even)[held[order]]
        turn = torch.atan2(gap.sin().sum(), gap.cos().sum())
        angle[nodes[order]] = (even + turn) % (2 * math.pi)
    radius = hop + float((hop == 0).sum() > 1)
    return radius * angle.cos(), radius * angle.sin()


def _parents(hop: Tensor, edges: Tensor) -> Tensor:
    """The first node of an earlier hop that a node has an edge to, or -1."""
    source, target = edges
    inward = hop[source] > hop[target]
    source, target = source[inward].flip(0), target[inward].flip(0)
    parent = torch.full_like(hop, -1)
    for s, t in zip(source.tolist(), target.tolist(), strict=True):
        parent[s] = t  # the last to be written is the first edge
    return parent


# Contents of a batch #########################################################


@dataclass
class _Part:
    """The nodes of one type: ``name`` is ``None`` if there is but one."""

    name: Any
    hop: Tensor  # [num_nodes]
    node: Tensor | None  # [num_nodes], ids in the whole graph


def _read(batch: Any) -> tuple[list[_Part], Tensor]:
    """Nodes by type, and edges ``[2, num_edges]`` between all of them."""
    if isinstance(batch, Data):
        batch = SamplerOutput(
            batch.get('n_id'),
            *_ends(batch, 'batch'),
            edge=None,
            num_sampled_nodes=batch.get('num_sampled_nodes'),
        )
    if isinstance(batch, SamplerOutput):
        edges = torch.stack([batch.row, batch.col]).cpu()
        return [_part(None, batch.num_sampled_nodes, batch.node)], edges
    if isinstance(batch, HeteroData):
        ends = {k: _ends(batch[k], k) for k in batch.edge_types}
        batch = HeteroSamplerOutput(
            {k: batch[k].get('n_id') for k in batch.node_types},
            {k: row for k, (row, _) in ends.items()},
            {k: col for k, (_, col) in ends.items()},
            edge=None,
            num_sampled_nodes={
                k: batch[k].get('num_sampled_nodes') for k in batch.node_types
            },
        )
    if not isinstance(batch, HeteroSamplerOutput):
        raise TypeError(
            "plot_batch: 'batch' must be a Data, HeteroData or the output of "
            f'a sampler (got {type(batch).__name__})'
        )
    hops = batch.num_sampled_nodes or dict.fromkeys(batch.node)
    parts = [_part(k, hops.get(k), batch.node[k]) for k in batch.node]
    begin, total = {}, 0
    for part in parts:
        begin[part.name] = total
        total += part.hop.numel()
    pairs = [
        torch.stack([batch.row[k] + begin[k[0]], batch.col[k] + begin[k[2]]])
        for k in batch.row
        if batch.row[k] is not None
    ]
    return parts, torch.cat([torch.empty(2, 0).long(), *pairs], 1).cpu()


def _ends(store: Any, key: Any) -> tuple[Tensor, Tensor]:
    if 'edge_index' not in store:
        raise ValueError(f"plot_batch: {key!r} must have an 'edge_index'")
    return store.edge_index[0], store.edge_index[1]


def _part(name: Any, counts: Any, node: Tensor | None) -> _Part:
    if counts is None:
        raise ValueError(
            "plot_batch: 'batch' must have 'num_sampled_nodes', the "
            'number of nodes of each hop, as batches of '
            'NeighborLoader have'
        )
    counts = torch.as_tensor(counts).cpu()
    hop = torch.arange(counts.numel()).repeat_interleave(counts)
    if node is not None:
        node = node.cpu()
        if node.numel() != hop.numel():
            raise ValueError(
                "plot_batch: 'num_sampled_nodes' must count all nodes (got "
                f'{hop.numel()} for {node.numel()} nodes)'
            )
    return _Part(name, hop, node)


def _hubs(parts: list[_Part], edges: Tensor, degree: Any) -> list[Tensor]:
    """Says which nodes are hubs, ``[num_nodes]`` of each type."""
    if degree is None:
        sizes = [part.hop.numel() for part in parts]
        found = torch.bincount(edges.reshape(-1), minlength=sum(sizes))
        return list(_is_hub(found).split(sizes))
    out = []
    for part in parts:
        whole = _of_type(degree, part)
        if whole is None:
            out.append(torch.zeros(part.hop.numel(), dtype=torch.bool))
            continue
        whole = torch.as_tensor(whole).cpu()
        out.append(_is_hub(whole)[_ids('degree', part, len(whole))])
    return out


def _is_hub(degree: Tensor) -> Tensor:
    return (degree >= HUB_FACTOR * degree.double().mean()) & (degree > 0)


def _texts(part: _Part, labels: Any) -> Sequence[str]:
    """The text of each node, '' if there are none."""
    names = _of_type(labels, part)
    if names is None:
        return [''] * part.hop.numel()
    ids = _ids('labels', part, len(names))
    return [str(names[i]) for i in ids.tolist()]


def _of_type(values: Any, part: _Part) -> Any:
    """Returns the argument for the nodes of a type."""
    if part.name is not None and isinstance(values, Mapping):
        return values.get(part.name)
    if part.name is not None and values is not None:
        raise TypeError(
            "plot_batch: 'labels' and 'degree' must be dictionaries by node "
            f'type in a heterogeneous batch (got {type(values).__name__})'
        )
    return values


def _ids(name: str, part: _Part, size: int) -> Tensor:
    """Ids of nodes in the whole graph, checked against its size."""
    if part.node is None:
        raise ValueError(f"plot_batch: '{name}' needs a batch with 'n_id'")
    needed = int(part.node.max()) + 1 if part.node.numel() else 0
    if size < needed:
        raise ValueError(
            f"plot_batch: '{name}' must have an item for each node of the "
            f'graph, at least {needed} (got {size})'
        )
    return part.node


# Drawing ####################################################################


def _draw_rings(ax: Any, radius: Tensor) -> None:
    turn = torch.linspace(0, 2 * math.pi, 181)
    for r in radius.round().unique():
        x, y = r * turn.cos(), r * turn.sin()
        ax.plot(x.numpy(), y.numpy(), color='#88888826', lw=1.0, zorder=0)


def _draw_edges(ax: Any, x: Tensor, y: Tensor, edges: Tensor) -> None:
    """Draws an arrow for each edge, which ends before its node."""
    source, target = edges
    dx, dy = x[target] - x[source], y[target] - y[source]
    length = (dx**2 + dy**2).sqrt().clamp(min=1e-6)
    shorter = ((length - 0.1) / length).clamp(min=0.0)
    ax.quiver(
        x[source].numpy(),
        y[source].numpy(),
        (dx * shorter).numpy(),
        (dy * shorter).numpy(),
        angles='xy',
        scale_units='xy',
        scale=1,
        width=0.002,
        headwidth=6,
        headlength=8,
        headaxislength=7,
        color='#88888890',
        zorder=1,
    )


def _draw_nodes(
    ax: Any, x: Tensor, y: Tensor, kind: Tensor, names: list[str], hub: Tensor
) -> None:
    """Draws a marker for each node, with a colour for each kind."""
    from matplotlib import rcParams

    size = 60.0 if x.numel() <= 100 else 20.0
    colors = sample_colors(len(names))
    for k, (name, color) in enumerate(zip(names, colors, strict=True)):
        mine = kind == k
        if mine.any():
            label = f'{name} ({int(mine.sum())})'
            ax.scatter(
                x[mine], y[mine], s=size, color=color, label=label, zorder=3
            )
    if hub.any():
        ax.scatter(
            x[hub],
            y[hub],
            s=2 * size,
            facecolors='none',
            edgecolors=rcParams['axes.edgecolor'],
            linewidths=1.5,
            label=f'hub ({int(hub.sum())})',
            zorder=4,
        )


def _write_texts(ax: Any, x: Tensor, y: Tensor, texts: list[str]) -> None:
    from matplotlib import rcParams

    for i, text in enumerate(texts):
        if text:
            ax.annotate(
                text,
                (float(x[i]), float(y[i])),
                xytext=(0, 8),
                textcoords='offset points',
                fontsize=8,
                ha='center',
                bbox=dict(
                    boxstyle='round,pad=0.1',
                    fc=rcParams['axes.facecolor'],
                    ec='none',
                ),
                zorder=2,
            )
