"""Sends tensors between the processes of a group.

A tensor for each process comes in; what each process has for this one goes
out. Any backend of torch.distributed with ``all_to_all_single`` will do.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Exchange:
    """The processes of a group, as samplers and stores call them.

    All processes make one, and call its methods in the same order, each from
    one thread. It must have a group of its own: the calls of a model's
    gradients, from another thread, would mix with these.

    Args:
        group (ProcessGroup, optional): The group; default: a new one of all
            processes.
        device (torch.device or str, optional): Where the backend takes
            tensors: a GPU for NCCL.

    Raises:
        RuntimeError: If torch.distributed is not initialized.

    Example:
        >>> _ = dist.init_process_group(
        ...     'gloo', store=dist.HashStore(), rank=0, world_size=1
        ... )
        >>> Exchange().swap([torch.arange(3)])
        [tensor([0, 1, 2])]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, group: Any = None, device: torch.device | str = 'cpu'
    ) -> None:
        if not dist.is_initialized():
            raise RuntimeError(
                'Exchange: torch.distributed must be initialized; call '
                'init_process_group first'
            )
        self._group = dist.new_group() if group is None else group
        self._device = torch.device(device)
        self.rank = dist.get_rank(self._group)
        self.size = dist.get_world_size(self._group)

    def swap(self, parts: list[Tensor]) -> list[Tensor]:
        """Sends a tensor to each process.

        Args:
            parts (List[torch.Tensor]): For each process, of one dtype and
                one shape but for the first dimension, in all processes.

        Returns:
            List[torch.Tensor]: From each process.

        Raises:
            ValueError: If there is not one tensor for each process.
        """
        if len(parts) != self.size:
            raise ValueError(
                f"Exchange.swap: 'parts' must have one item for each of "
                f'{self.size} processes (got {len(parts)})'
            )
        sizes = [len(part) for part in parts]
        found = torch.tensor(sizes, device=self._device)
        wanted = torch.empty_like(found)
        dist.all_to_all_single(wanted, found, group=self._group)
        received = wanted.tolist()
        sent = torch.cat(parts).to(self._device)
        out = sent.new_empty(sum(received), *sent.shape[1:])
        if sent.shape[1:].numel() > 0:
            dist.all_to_all_single(
                out, sent, received, sizes, group=self._group
            )
        return list(out.to(parts[0].device).split(received))

    def gather(self, value: Any) -> list[Any]:
        """Returns what each process has, which is pickled."""
        out = [None] * self.size
        dist.all_gather_object(out, value, group=self._group)
        return out

    def check_equal(self, name: str, **values: Any) -> None:
        """Checks that all processes were given the same.

        Args:
            name (str): Who asks, for messages.
            **values: What must be equal, by the names of arguments.

        Raises:
            ValueError: If it is not, in all processes.
        """
        for rank, others in enumerate(self.gather(values)):
            for key, value in others.items():
                first = values[key]
                if value != first:
                    raise ValueError(
                        f"{name}: '{key}' must be equal in all processes (got "
                        f'{first} in process {self.rank} and {value} in '
                        f'process {rank})'
                    )
