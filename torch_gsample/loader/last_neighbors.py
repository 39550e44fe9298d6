"""PyG's ``LastNeighborLoader``, for temporal graph networks, on a log."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.graph import Graph
from torch_gsample.samplers.neighbor.last_neighbors import last_neighbors

_NAME = 'LastNeighborLoader'
_FEW = 4096  # events sorted in each call


class LastNeighborLoader:
    """The last neighbours of nodes in a log of events.

    A drop-in replacement of PyG's class of this name (Rossi et al.,
    `"Temporal Graph Networks" <https://arxiv.org/abs/2006.10637>`_). PyG's
    class stores the current last neighbours. This class stores the log, in
    columns sorted by event, and searches for the last neighbours before an
    event. So :meth:`before` answers for any event: batches can be shuffled,
    resumed at any event and made in workers. :meth:`insert` only moves the
    end of the log that :meth:`__call__` sees if the same events were inserted
    before: in every epoch but the first, and always for a loader made by
    :meth:`from_events`.

    PyG's class differs if a node has more than ``size`` events in one call
    of :meth:`insert`: it keeps some of them, this one the last.

    Args:
        num_nodes (int): Number of nodes.
        size (int): Number of neighbours to return for each node.
        device (torch.device, optional): Device of the log.

    Attributes:
        cur_e_id (int): Number of events that :meth:`__call__` sees. This is
            the whole state, to be stored in a checkpoint.

    Raises:
        TypeError: If ``num_nodes`` or ``size`` is not an integer.
        ValueError: If one is negative.

    Example:
        >>> src, dst = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2])
        >>> loader = LastNeighborLoader.from_events(src, dst, 3, size=2)
        >>> loader.before(torch.tensor([0]), 2)  # sees events 0 and 1
        (tensor([0, 1, 2]), tensor([[2, 1],
                [0, 0]]), tensor([1, 0]))
    """

    def __init__(self, num_nodes: int, size: int, device: Any = None):
        for name, value in (('num_nodes', num_nodes), ('size', size)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(
                    f"{_NAME}: '{name}' must be an integer (got {value!r})"
                )
            if value < 0:
                raise ValueError(
                    f"{_NAME}: '{name}' must not be negative (got {value})"
                )
        self.num_nodes, self.size = num_nodes, size
        none = torch.empty(0, dtype=torch.int64, device=device)
        self._ends: tuple[Tensor, ...] = none, none
        self._sorted = self._tail = self._columns(0, 0)
        self._num_sorted = self._num_tail = 0
        self.cur_e_id = 0

    @classmethod
    def from_events(
        cls, src: Tensor, dst: Tensor, num_nodes: int, size: int
    ) -> 'LastNeighborLoader':
        """Returns a loader with all events in its log, none of them visible.

        Args:
            src (torch.Tensor): int64 ``[num_events]``, in the order of time.
            dst (torch.Tensor): Likewise.
            num_nodes (int): Number of nodes.
            size (int): Number of neighbours to return for each node.

        Raises:
            IndexError: If a node does not exist.
            TypeError: If ends are not integers.
            ValueError: If there are not as many sources as destinations.
        """
        out = cls(num_nodes, size, src.device)
        out._ends = out._checked(src, dst)
        out._sort(src.shape[0])
        return out

    def insert(self, src: Tensor, dst: Tensor) -> None:
        """Makes further events visible to :meth:`__call__`.

        Events that differ from the log at this point replace all later ones.

        Raises:
            IndexError: If a node does not exist.
            TypeError: If ends are not integers.
            ValueError: If there are not as many sources as destinations.
        """
        new = self._checked(src, dst)
        begin, end = self.cur_e_id, self.cur_e_id + src.shape[0]
        known = [old[begin:end] for old in self._ends]
        if not all(map(torch.equal, known, new)):
            self._ends = tuple(
                torch.cat([old[:begin], own])
                for old, own in zip(self._ends, new, strict=True)
            )
            self._num_tail = 0
            if self._num_sorted > begin:
                self._sort(begin)
        self.cur_e_id = end

    def __call__(self, n_id: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the last neighbours of nodes among the events seen.

        Args:
            n_id (torch.Tensor): int64 ``[n]``, the nodes.

        Returns:
            Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: The nodes and
            their neighbours, ascending; ``edge_index`` in local ids; and the
            event of each edge, the latest first for each node.

        Raises:
            IndexError: If a node does not exist.
        """
        return self.before(n_id, self.cur_e_id)

    def before(
        self, n_id: Tensor, event: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Like :meth:`__call__`, for the events before a given one.

        Raises:
            IndexError: If a node or event does not exist.
        """
        self._check_event(event)
        neighbor, e_id = self._padded(n_id, event)
        mask = e_id >= 0
        neighbor, e_id = neighbor[mask], e_id[mask]
        node = n_id[:, None].expand(mask.shape)[mask]
        nodes, local = torch.cat([n_id, neighbor, node]).unique(
            return_inverse=True
        )
        ends = local[len(n_id) :].view(2, -1)
        return nodes, ends, e_id

    def _padded(self, n_id: Tensor, event: int) -> tuple[Tensor, Tensor]:
        """Returns neighbours and their events, padded with -1."""
        time = torch.full_like(n_id, event)
        parts = [
            last_neighbors(graph, n_id, time, self.size)
            for graph in (self._tail, self._sorted)
        ]
        neighbor = torch.cat([p.neighbor for p in parts], 1)
        events = [p.time.masked_fill(~p.mask, -1) for p in parts]
        e_id = torch.cat(events, 1)
        e_id, perm = e_id.topk(self.size)
        return neighbor.gather(1, perm), e_id

    @property
    def e_id(self) -> Tensor:
        """The last events of all nodes, int64 ``[num_nodes, size]``.

        The latest comes first; padded with -1.
        """
        return self._of_all()[1]

    @property
    def neighbors(self) -> Tensor:
        """The other ends of the events in :attr:`e_id`."""
        return self._of_all()[0]

    def _of_all(self) -> tuple[Tensor, Tensor]:
        self._check_event(self.cur_e_id)
        nodes = torch.arange(self.num_nodes, device=self._ends[0].device)
        return self._padded(nodes, self.cur_e_id)

    def reset_state(self) -> None:
        """Hides all events from :meth:`__call__`; the log remains."""
        self.cur_e_id = 0

    def _check_event(self, event: int) -> None:
        """Checks an event, and updates columns up to it."""
        count = self._ends[0].shape[0]
        if not 0 <= event <= count:
            raise IndexError(
                f"{_NAME}: 'event' must be in [0, {count}] (got {event})"
            )
        if event > self._num_sorted and self._num_tail < count:
            self._extend(count)

    def _extend(self, count: int) -> None:
        """Updates columns; rebuilds all of them if the tail is long."""
        if count - self._num_sorted > max(_FEW, self._num_sorted // 2):
            self._sort(count)
        else:
            self._tail = self._columns(self._num_sorted, count)
            self._num_tail = count

    def _sort(self, count: int) -> None:
        self._sorted = self._columns(0, count)
        self._tail = self._columns(count, count)
        self._num_sorted = self._num_tail = count

    def _columns(self, begin: int, end: int) -> Graph:
        """Returns the events of both ends; event ids are their times."""
        src, dst = (ends[begin:end] for ends in self._ends)
        event = torch.arange(begin, end, device=src.device)
        # Event by event, so columns are in event order.
        ends = torch.stack([src, dst], 1), torch.stack([dst, src], 1)
        edge_index = torch.stack(ends)
        graph = Graph.from_edge_index(edge_index.flatten(1), self.num_nodes)
        return graph.with_times({None: event.repeat_interleave(2)})

    def _checked(self, src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
        if src.shape != dst.shape or src.dim() != 1:
            raise ValueError(
                f"{_NAME}: 'src' and 'dst' must be vectors of one length (got "
                f'{list(src.shape)} and {list(dst.shape)})'
            )
        for name, ends in (('src', src), ('dst', dst)):
            if ends.is_floating_point() or ends.dtype == torch.bool:
                raise TypeError(
                    f"{_NAME}: '{name}' must hold integers (got {ends.dtype})"
                )
            if ends.numel() and not (
                int(ends.min()) >= 0 and int(ends.max()) < self.num_nodes
            ):
                raise IndexError(
                    f"{_NAME}: '{name}' must be in [0, {self.num_nodes}) (got "
                    f'{int(ends.min())} to {int(ends.max())})'
                )
        device = self._ends[0].device
        return src.to(device, torch.int64), dst.to(device, torch.int64)
