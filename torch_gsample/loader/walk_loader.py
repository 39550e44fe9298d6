"""A loader of walks from the nodes of a graph."""

from collections.abc import Callable
from typing import Any

from typing_extensions import Unpack

from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.options import SubgraphOptions
from torch_gsample.ops import _check
from torch_gsample.options import checked_names


class WalkLoader(KeyedLoader):
    """Calls a function for batches of nodes, with the batch's id.

    Draws of the function under :func:`torch_gsample.rng.current_batch` are
    the same for any number of workers. Each iteration is an epoch; see
    :meth:`set_epoch`.

    Args:
        num_nodes (int): Number of nodes.
        sample (Callable): Makes a sample of a list of nodes.
        **options (optional): ``prefetch``, ``rank`` and ``world_size`` of
            :class:`NeighborLoader`; ``seed``, the seed of the order of nodes,
            required with ``world_size``; and those of
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

    @checked_names
    def __init__(
        self,
        num_nodes: int,
        sample: Callable[[list[int]], Any],
        **options: Unpack[SubgraphOptions],
    ):
        _check.count('WalkLoader', 'num_nodes', num_nodes, least=0)
        if not callable(sample):
            raise TypeError(
                f"WalkLoader: 'sample' must be a function of a list of nodes "
                f'(got {sample!r})'
            )
        kwargs: dict[str, Any] = {**options}
        self._init_epochs(kwargs.pop('seed', None), kwargs)
        self._sample = sample
        super().__init__(
            range(num_nodes),  # type: ignore[arg-type]
            collate_fn=self.collate_fn,
            **kwargs,
        )

    def _make_sample(self, index: list[int]) -> Any:
        return self._sample(index)
