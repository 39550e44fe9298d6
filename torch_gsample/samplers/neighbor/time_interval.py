"""Which times a seed sees: the interval that ends with its bound."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample.graph import Graph
from torch_gsample.options import TimeBound, TimeInclusive

_MIN = torch.iinfo(torch.int64).min
_BOUNDS = 'seed', 'edge', 'batch'
#: What the ends of the interval take off it: at its start, at its end.
_OPEN = {'both': (0, 0), 'left': (0, 1), 'right': (1, 0), 'neither': (1, 1)}


@dataclass(frozen=True)
class TimeInterval:
    """The times of edges that are seen from a bound.

    Times are integers, so that an open end is a closed one a unit further in:
    operators know closed intervals only.

    Args:
        bound (str): Whose time bounds a hop, see :class:`NeighborSampler`.
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
        """Checks that a graph can be sampled so.

        Raises:
            ValueError: If it has no times, or times without an earlier one
                where the bound itself is not seen; if the window holds no
                time; if edges that were not sampled are wanted, the times of
                whose ends differ.
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
        """Whether the bound itself is not seen."""
        return _OPEN[self.inclusive][1] == 1

    def latest(self, bound: Tensor) -> Tensor:
        """Returns the last time that is seen from each bound."""
        return bound.clamp(min=_MIN + 1) - 1 if self.is_open else bound

    def width(self, window: int | None) -> int | None:
        """Returns the width of the closed window.

        Raises:
            ValueError: If the window holds no time.
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
        """Returns the bounds of seeds.

        Bounds are the last times that are seen; of ``bound='batch'``, by the
        earliest seed of all.
        """
        if times is None:
            return None
        if self.bound == 'batch' and any(t.numel() for t in times.values()):
            first = torch.cat(list(times.values())).min()
            times = {k: first.expand_as(t) for k, t in times.items()}
        return {k: self.latest(time).contiguous() for k, time in times.items()}
