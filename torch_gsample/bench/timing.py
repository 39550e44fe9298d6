"""Fair pairs: candidates take turns, and medians count."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_LEAST_ROUNDS = 3


@dataclass
class Timing:
    """Seconds of each round of one candidate."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest, in seconds."""
        return min(self.seconds)


def compare(
    candidates: dict[str, Callable[[int], object]],
    rounds: int,
    min_seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
    max_seconds: float = float('inf'),
) -> dict[str, Timing]:
    """Times candidates in turns, so that a noisy machine disturbs all alike.

    The first of a round finds cold caches, and the others find warm ones: the
    order changes from round to round.

    Args:
        candidates (Dict[str, Callable]): Functions of the number of a round.
        rounds (int): How often each is timed, after two untimed rounds.
        min_seconds (float, optional): A round repeats a candidate until it
            took that long.
        clock (Callable, optional): The time; ``time.process_time`` does not
            see what else the machine does.
        max_seconds (float, optional): No round begins after that long, but
            for the first three.
    """
    timings = {name: Timing() for name in candidates}
    repeats = dict.fromkeys(candidates, 1)
    end = time.monotonic() + max_seconds
    for i in range(-2, rounds):
        if i >= _LEAST_ROUNDS and time.monotonic() > end:
            break
        for name in _order(list(candidates), i):
            call, start = candidates[name], clock()
            for _ in range(repeats[name]):
                call(max(i, 0))
            seconds = (clock() - start) / repeats[name]
            if i < 0:
                repeats[name] = max(1, round(min_seconds / seconds))
            else:
                timings[name].seconds.append(seconds)
    return timings


def _order(names: list[str], i: int) -> list[str]:
    """Returns the order of a round; each of n is first in 2 of 2n rounds."""
    first = i // 2 % len(names)
    turned = names[first:] + names[:first]
    return turned[::-1] if i % 2 else turned
