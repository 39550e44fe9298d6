"""The interval of times that a seed sees, which ends at its bound."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample.graph import Graph
from torch_gsample.options import TimeBound, TimeInclusive

_MIN = torch.iinfo(torch.int64).min
_BOUNDS = 'seed', 'edge', 'batch'
#: Units by which open ends shorten the interval, at its start and its end.
_OPEN = {'both': (0, 0), 'left': (0, 1), 'right': (1, 0), 'neither': (1, 1)}


@dataclass(frozen=True)
class TimeInterval:
    """The interval of edge times that is seen from a bound.

    Times are integers, so an open end is a closed end one unit further in.
    Operators only know closed intervals.

    Args:
        bound (str): The time that bounds a hop; see
            :class:`NeighborSampler`.
        inclusive (str): Which ends belong to the interval.

    Raises:
        ValueError: If one is unknown.
    """

    bound: TimeBound = 'seed'
    inclusive: TimeInclusive = 'both'

    def __post_init__(self) -> None:
        for name, value, known in (
            ('time_bound', self.bound, _BOUNDS),
            ('time_inclusive', self.inclusive, tuple(_OPEN)),
        ):
            if value not in known:
                raise ValueError(
                    f"NeighborSampler: '{name}' must be one of {known} "
                    f'(got {value!r})'
                )

    def check(
        self,
        graph: Graph,
        time_attr: object,
        window: int | None,
        induced: bool,
    ) -> None:
        """Checks that a graph supports this interval.

        Raises:
            ValueError: If the graph has no times, a time has no predecessor
                while the end is open, the window is empty, or edges between
                nodes with different bounds are to be induced.
        """
        self.width(window)
        if self == TimeInterval():
            return
        if time_attr is None:
            raise ValueError(
                "NeighborSampler: 'time_bound' and 'time_inclusive' need "
                f"'time_attr' (got {self.bound!r} and {self.inclusive!r})"
            )
        if self.bound == 'edge' and induced:
            raise ValueError(
                "NeighborSampler: time_bound='edge' needs subgraph_type="
                "'directional' or 'bidirectional' (got 'induced')"
            )
        for csc in graph.columns:
            time = csc.edge_time
            if (
                self.is_open
                and time is not None
                and bool((time == _MIN).any())
            ):
                raise ValueError(
                    f'NeighborSampler: times must be greater than {_MIN} '
                    f'with time_inclusive={self.inclusive!r}'
                )

    @property
    def is_open(self) -> bool:
        """Whether the bound itself is excluded."""
        return _OPEN[self.inclusive][1] == 1

    def latest(self, bound: Tensor) -> Tensor:
        """Returns the latest time that is seen from each bound."""
        return bound.clamp(min=_MIN + 1) - 1 if self.is_open else bound

    def width(self, window: int | None) -> int | None:
        """Returns the width of the closed window.

        Raises:
            ValueError: If the window is empty.
        """
        if window is None:
            return None
        width = window - sum(_OPEN[self.inclusive])
        if width < 0:
            raise ValueError(
                f"NeighborSampler: 'time_window' must be at least "
                f'{window - width} with time_inclusive={self.inclusive!r} '
                f'(got {window})'
            )
        return width

    def of_seeds(
        self, times: dict[object, Tensor] | None
    ) -> dict[object, Tensor] | None:
        """Returns the latest time that each seed sees.

        With ``bound='batch'``, it is that of the earliest of all seeds.
        """
        if times is None:
            return None
        if self.bound == 'batch' and any(t.numel() for t in times.values()):
            first = torch.cat(list(times.values())).min()
            times = {k: first.expand_as(t) for k, t in times.items()}
        return {k: self.latest(time).contiguous() for k, time in times.items()}
