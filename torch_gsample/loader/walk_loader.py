"""A loader of walks from the nodes of a graph."""

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from torch_gsample.loader.base import DEFAULT_PREFETCH, KeyedLoader
from torch_gsample.ops import _check


class _NodeBatches(DataLoader):
    """Batches of nodes, of which a function makes samples."""

    def __init__(
        self,
        num_nodes: int,
        sample: Callable[[list[int]], Any],
        **kwargs: Any,
    ):
        self._sample = sample
        super().__init__(
            range(num_nodes),  # type: ignore[arg-type]
            collate_fn=self.collate_fn,
            **kwargs,
        )

    def collate_fn(self, index: list[int]) -> Any:
        """Makes a sample of the nodes of a batch."""
        return self._sample(index)


class WalkLoader(KeyedLoader, _NodeBatches):  # type: ignore[misc]
    """Calls a function for batches of nodes, under the batch's number.

    What the function draws under :func:`torch_gsample.rng.current_batch` is
    the same for any number of workers. Each pass is an epoch; see
    :meth:`set_epoch`.

    Args:
        num_nodes (int): Number of nodes.
        sample (Callable): Makes a sample of a list of nodes.
        prefetch (int, optional): Samples that a thread makes ahead, without
            workers. (default: 2)
        seed (int, optional): With ``world_size``, the seed of the order of
            nodes.
        rank (int, optional): As in :class:`NeighborLoader`.
        world_size (int, optional): As in :class:`NeighborLoader`.
        **kwargs (optional): Arguments of
            :class:`torch.utils.data.DataLoader`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If ``num_nodes`` or ``prefetch`` is negative, or
            ``batch_size`` is :obj:`None`.

    Example:
        >>> from torch_gsample.rng import current_batch
        >>> loader = WalkLoader(4, lambda nodes: current_batch(), batch_size=2)
        >>> list(loader)
        [BatchNumber(epoch=0, batch=0), BatchNumber(epoch=0, batch=1)]
    """

    def __init__(
        self,
        num_nodes: int,
        sample: Callable[[list[int]], Any],
        prefetch: int = DEFAULT_PREFETCH,
        seed: int | None = None,
        **kwargs: Any,
    ):
        _check.count('WalkLoader', 'num_nodes', num_nodes, least=0)
        if not callable(sample):
            raise TypeError(
                f"WalkLoader: 'sample' must be a function of a list of nodes "
                f'(got {sample!r})'
            )
        self._init_epochs(prefetch, kwargs, seed)
        super().__init__(num_nodes, sample, **kwargs)
