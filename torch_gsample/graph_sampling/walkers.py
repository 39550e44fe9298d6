"""Walkers that collect vertices, on a graph that is stored anywhere.

What a walker needs of the graph is two questions, so that the same walk runs
on tensors and on a cluster.
"""

import math
from dataclasses import dataclass
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


@dataclass
class WalkState:
    """All of a walk between two steps.

    Args:
        place (List[int]): Where each walker stands.
        visited (Dict[int, None]): Visited vertices, by first visit.
        departures (Dict[int, int]): Followed edges of each vertex.
        num_jumps (int): Jumps so far, the starts included.
        step (int): The number of the next step.
    """

    place: list[int]
    visited: dict[int, None]
    departures: dict[int, int]
    num_jumps: int
    step: int = 0


class Checkpoint(Protocol):
    """Keeps the state of a walk."""

    def load(self) -> WalkState | None:
        """Returns the state to go on with, if there is one."""

    def save(self, state: WalkState) -> None:
        """Is called after each step."""


def visited_vertices(
    graph: WalkGraph,
    fraction: float,
    num_walkers: int,
    jump_probability: float,
    seed: int,
    checkpoint: Checkpoint | None = None,
) -> list[int]:
    r"""Lets walkers walk until they have visited a share of all vertices.

    The :math:`c`-th departure from a vertex takes its :math:`c`-th edge in a
    random order: so no edge is taken twice, and draws are uniform among
    the edges that are left, whatever the order of walkers. In the same way,
    the :math:`j`-th jump leads to the :math:`j`-th vertex in a random order.
    A walk ends, as a vertex is jumped to only once.

    Args:
        graph (WalkGraph): The graph.
        fraction (float): The share of vertices to visit, rounded up.
        num_walkers (int): How many walkers there are.
        jump_probability (float): The probability of a jump at each step.
        seed (int): The seed of all draws.
        checkpoint (Checkpoint, optional): Where the walk goes on.

    Returns:
        List[int]: The visited vertices, by first visit.
    """
    target = math.ceil(fraction * graph.num_vertices)
    num_walkers = min(num_walkers, graph.num_vertices)
    state = None if checkpoint is None else checkpoint.load()
    if state is None:
        place = graph.jump_targets(0, num_walkers)
        visited = dict.fromkeys(place[:target])
        state = WalkState(place, visited, {}, num_walkers)
    while len(state.visited) < target:
        _step(graph, state, target, jump_probability, seed)
        if checkpoint is not None:
            checkpoint.save(state)
    return list(state.visited)


def _step(
    graph: WalkGraph,
    state: WalkState,
    target: int,
    jump_probability: float,
    seed: int,
) -> None:
    """Lets each walker follow an edge, or jump."""
    place, num_walkers = state.place, len(state.place)
    ids = torch.arange(num_walkers) + state.step * num_walkers
    coin = draws.uniform(ids, seed, draws.JUMP) < jump_probability
    walking = (~coin).nonzero().view(-1).tolist()
    ranks = []
    for walker in walking:
        vertex = place[walker]
        ranks.append(state.departures.get(vertex, 0))
        state.departures[vertex] = ranks[-1] + 1
    reached = graph.follow([place[w] for w in walking], ranks)
    arrivals = [-1] * num_walkers
    for walker, vertex in zip(walking, reached, strict=True):
        arrivals[walker] = vertex
    jumping = [w for w in range(num_walkers) if arrivals[w] < 0]
    first = state.num_jumps
    targets = graph.jump_targets(first, first + len(jumping))
    # Less targets than walkers: all vertices are visited with them.
    for walker, vertex in zip(jumping, targets, strict=False):
        arrivals[walker] = vertex
    state.num_jumps += len(targets)
    state.place = [v if v >= 0 else place[w] for w, v in enumerate(arrivals)]
    for vertex in state.place:
        if len(state.visited) == target:
            break
        state.visited.setdefault(vertex)
    state.step += 1
