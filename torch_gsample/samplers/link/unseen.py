"""Destinations without an edge from a source up to a time."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.csc import CSC

#: Maximum number of draws. After them, candidates are listed.
_TRIES = 64


class SeenEdges:
    """The time of the first edge between two nodes.

    Args:
        csc (CSC): A relation with times, destinations as columns.
    """

    def __init__(self, csc: CSC):
        assert csc.edge_time is not None
        self._size = max(csc.num_cols, 1)
        key = csc.indices.long() * self._size + csc.col(torch.int64)
        order = csc.edge_time.argsort(stable=True)
        order = order[key[order].argsort(stable=True)]
        key, time = key[order], csc.edge_time[order]
        first = torch.ones_like(key, dtype=torch.bool)
        first[1:] = key[1:] != key[:-1]
        self._pairs, self._since = key[first], time[first]

    def has(self, src: Tensor, dst: Tensor, time: Tensor) -> Tensor:
        """Whether each pair has an edge up to a time."""
        key = src * self._size + dst
        if self._pairs.numel() == 0:
            return torch.zeros_like(key, dtype=torch.bool)
        place = torch.searchsorted(self._pairs, key)
        place.clamp_(max=self._pairs.numel() - 1)
        return (self._pairs[place] == key) & (self._since[place] <= time)

    def share_memory_(self) -> None:
        """Moves tensors to shared memory."""
        self._pairs.share_memory_()
        self._since.share_memory_()

    def draw(
        self,
        draw: Callable[[Tensor, int], Tensor],
        candidates: Callable[[int], tuple[Tensor, Tensor]],
        src: Tensor,
        time: Tensor,
        ids: Tensor,
        key: Tensor,
        call_id: int,
    ) -> Tensor:
        """Draws a destination for each source.

        Args:
            draw (Callable): Draws for some items with a call id, without
                rejection of seen destinations.
            candidates (Callable): Returns the candidates of an item, and
                their weights.
            src (torch.Tensor): int64 ``[n]``.
            time (torch.Tensor): int64 ``[n]``.
            ids (torch.Tensor): int64 ``[n]``, the ids that key the draws.
            key (torch.Tensor): int64 ``[1, 3]``.
            call_id (int): Id of the draw.

        Returns:
            torch.Tensor: int64 ``[n]``; -1 if all candidates were seen.
        """
        out, todo = torch.full_like(src, -1), torch.arange(len(src))
        first = call_id * (_TRIES + 1)
        for attempt in range(_TRIES):
            if len(todo) == 0:
                return out
            found = draw(todo, first + attempt)
            good = ~self.has(src[todo], found, time[todo])
            out[todo[good]], todo = found[good], todo[~good]
        for i in todo.tolist():
            nodes, weight = candidates(i)
            free = ~self.has(src[i].expand_as(nodes), nodes, time[i])
            nodes, weight = nodes[free], weight[free]
            if not bool((weight > 0).any()):
                continue
            place = ops.negative_sample(
                ids[i : i + 1],
                len(nodes),
                key=key,
                call_id=first + _TRIES,
                cum_weight=ops.cumulate_weights(
                    torch.tensor([0, len(nodes)]), weight
                ),
            )
            out[i] = nodes[place]
        return out
