"""Walkers that collect vertices, on a graph that is stored anywhere.

What a walker needs of the graph is two questions, so that the same walk runs
on tensors and on a cluster.
"""

import math
from typing import Protocol

import torch

from torch_gsample.graph_sampling import draws


class WalkGraph(Protocol):
    """A graph as walkers see it."""

    num_vertices: int

    def follow(self, vertices: list[int], ranks: list[int]) -> list[int]:
        """Returns where an out-edge of each vertex leads, or -1.

        Args:
            vertices (List[int]): Where walkers stand.
            ranks (List[int]): Position of the edge among all out-edges of the
                vertex, in the random order of its edges.
        """

    def jump_targets(self, first: int, last: int) -> list[int]:
        """Returns vertices of the random order of all vertices."""


def visited_vertices(
    graph: WalkGraph,
    fraction: float,
    num_walkers: int,
    jump_probability: float,
    seed: int,
) -> list[int]:
    r"""Lets walkers walk until they have visited a share of all vertices.

    The :math:`c`-th departure from a vertex takes its :math:`c`-th edge in a
    random order: so no edge is taken twice, and what is drawn is uniform among
    the edges that are left, whatever the order of walkers. In the same way,
    the :math:`j`-th jump leads to the :math:`j`-th vertex in a random order.
    A walk ends, as a vertex is jumped to only once.

    Args:
        graph (WalkGraph): The graph.
        fraction (float): The share of vertices to visit, rounded up.
        num_walkers (int): How many walkers there are.
        jump_probability (float): The probability of a jump at each step.
        seed (int): The seed of all draws.

    Returns:
        List[int]: The visited vertices, by first visit.
    """
    target = math.ceil(fraction * graph.num_vertices)
    num_walkers = min(num_walkers, graph.num_vertices)
    place = graph.jump_targets(0, num_walkers)
    visited = dict.fromkeys(place[:target])
    departures: dict[int, int] = {}
    num_jumps, step = num_walkers, 0
    while len(visited) < target:
        ids = torch.arange(num_walkers) + step * num_walkers
        coin = draws.uniform(ids, seed, draws.JUMP) < jump_probability
        walking = (~coin).nonzero().view(-1).tolist()
        ranks = []
        for walker in walking:
            vertex = place[walker]
            ranks.append(departures.get(vertex, 0))
            departures[vertex] = ranks[-1] + 1
        reached = graph.follow([place[w] for w in walking], ranks)
        arrivals = [-1] * num_walkers
        for walker, vertex in zip(walking, reached, strict=True):
            arrivals[walker] = vertex
        jumping = [w for w in range(num_walkers) if arrivals[w] < 0]
        targets = graph.jump_targets(num_jumps, num_jumps + len(jumping))
        # Less targets than walkers: all vertices are visited with them.
        for walker, vertex in zip(jumping, targets, strict=False):
            arrivals[walker] = vertex
        num_jumps += len(targets)
        place = [v if v >= 0 else place[w] for w, v in enumerate(arrivals)]
        for vertex in place:
            if len(visited) == target:
                break
            visited.setdefault(vertex)
        step += 1
    return list(visited)
