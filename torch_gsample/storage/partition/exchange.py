"""Sends tensors between the processes of a group.

A tensor for each process comes in; a tensor from each process goes out. Any
backend of torch.distributed with ``all_to_all_single`` works.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Exchange:
    """Exchanges tensors between the processes of a group.

    All processes create one and call its methods in the same order, each from
    one thread. It needs its own group: otherwise its calls would mix with
    those of a model's gradients, from another thread.

    Args:
        group (ProcessGroup, optional): The group; default: a new one of all
            processes.
        device (torch.device or str, optional): The device of the backend's
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
        #: Where the backend's tensors are.
        self.device = torch.device(device)
        self.rank = dist.get_rank(self._group)
        self.size = dist.get_world_size(self._group)

    def swap(self, parts: list[Tensor]) -> list[Tensor]:
        """Sends a tensor to each process.

        Args:
            parts (List[torch.Tensor]): A tensor for each process, with the
                same dtype, and the same shape except for the first dimension,
                in all processes.

        Returns:
            List[torch.Tensor]: The tensor from each process.

        Raises:
            ValueError: If there is not one tensor for each process.
        """
        if len(parts) != self.size:
            raise ValueError(
                f"Exchange.swap: 'parts' must have one item for each of "
                f'{self.size} processes (got {len(parts)})'
            )
        sizes = [len(part) for part in parts]
        found = torch.tensor(sizes, device=self.device)
        wanted = torch.empty_like(found)
        dist.all_to_all_single(wanted, found, group=self._group)
        received = wanted.tolist()
        sent = torch.cat(parts).to(self.device)
        out = sent.new_empty(sum(received), *sent.shape[1:])
        if sent.shape[1:].numel() > 0:
            dist.all_to_all_single(
                out, sent, received, sizes, group=self._group
            )
        return list(out.to(parts[0].device).split(received))

    def gather(self, value: Any) -> list[Any]:
        """Gathers a pickled value from each process."""
        out = [None] * self.size
        dist.all_gather_object(out, value, group=self._group)
        return out

    def check_equal(self, name: str, **values: Any) -> None:
        """Checks that values are equal in all processes.

        Args:
            name (str): The caller, for messages.
            **values: The values, by argument name.

        Raises:
            ValueError: In all processes, if a value differs.
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
