"""Memory rates of a GPU, and times of calls."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from gpu_sectors import measure_sectors
from torch import Tensor

from torch_gsample import CSC

SECTOR = 32  # bytes that a read moves, at least


@dataclass
class Row:
    """One measurement; a bound or goal of 0 is unknown."""

    name: str
    ms: float = 0.0
    bound_ms: float = 0.0
    goal_ms: float = 0.0
    note: str = ''

    def cells(self) -> list[str]:
        """Returns the cells as text."""
        share = f'{100 * self.bound_ms / self.ms:.0f} %' if self.ms else ''
        times = self.ms, self.bound_ms, self.goal_ms
        shown = [f'{ms:.3g}' if ms else '' for ms in times]
        return [self.name, *shown, share if self.bound_ms else '', self.note]


@dataclass
class Rates:
    """Rates that a device reached in this run."""

    copy: float  # bytes a second, read and written
    host: float  # bytes a second from pinned memory of the host
    sectors: dict[int, float]  # bytes a second of random reads, by size

    @property
    def reads(self) -> float:
        """Random reads of the smallest sector per second."""
        return self.sectors[SECTOR]

    def __str__(self) -> str:
        reads = ', '.join(
            f'{rate / 1e9:.2f} G of {width}'
            for width, rate in self.sectors.items()
        )
        return (
            f'copies {self.copy / 1e9:.0f} GB/s, {self.host / 1e9:.1f} GB/s '
            f'from the host; random reads a second, by bytes: {reads}'
        )

    @staticmethod
    def pin(tensor: Tensor) -> Tensor:
        """Returns a tensor in pinned memory, if there is a GPU."""
        return tensor.pin_memory() if torch.cuda.is_available() else tensor


class Bench(Protocol):
    """The parts of the benchmark that rows use."""

    host: CSC
    graph: tuple[Tensor, Tensor]
    device: torch.device
    epoch: Tensor
    rates: Rates

    def batches(self, size: int) -> list[Tensor]: ...
    def milliseconds(
        self, call: Callable[[int], object], rounds: int = 25
    ) -> tuple[float, object]: ...


def cuda_seconds(
    call: Callable[[int], object], rounds: int, warm_up: int = 2
) -> tuple[float, object]:
    """Returns the median time of a call by CUDA events, and its last result.

    Args:
        call (Callable): A function of the round's number.
        rounds (int): Number of timed calls.
        warm_up (int, optional): Number of calls before.
    """
    out, seconds = None, []
    for i in range(warm_up):
        call(i)
    for i in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        out = call(i)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(seconds), out


def host_seconds(
    call: Callable[[int], object], rounds: int, warm_up: int = 0
) -> tuple[float, object]:
    """The same by the host's clock, for devices without events."""
    out, seconds = None, []
    for i in range(-warm_up, rounds):
        begin = time.perf_counter()
        out = call(max(i, 0))
        if i >= 0:
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), out


def measure_rates(
    device: torch.device,
    seconds: Callable[..., tuple[float, object]] = cuda_seconds,
    size: int = 1 << 30,
) -> Rates:
    """Measures copies and random reads.

    Args:
        device (torch.device): The device.
        seconds (Callable, optional): Times a call.
        size (int, optional): Bytes of each array; it must be far larger than
            the device's caches.
    """
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    copy, _ = seconds(lambda _: target.copy_(source), 9)
    host = Rates.pin(torch.ones(size // 16))
    target = target[: host.numel()]
    transfer, _ = seconds(lambda _: target.copy_(host, non_blocking=True), 9)
    return Rates(
        2 * size / copy,
        4 * host.numel() / transfer,
        measure_sectors(device, seconds, size),
    )
