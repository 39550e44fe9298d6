"""Base class of all samplers: the key of a batch."""

import inspect
from typing import Any

from torch import Tensor
from torch_geometric.sampler import BaseSampler
from torch_geometric.typing import EdgeType

from torch_gsample import rng
from torch_gsample.options import RngScope
from torch_gsample.samplers.counts import Counts

#: Package of PyG's loaders, and the maximum number of frames up to one.
_PYG_LOADERS, _NEAR = 'torch_geometric.loader.', 8


class KeyedSampler(BaseSampler):
    """A sampler whose draws are a pure function of (seed, epoch, batch).

    Loaders of :mod:`torch_gsample.loader`, or
    :func:`torch_gsample.rng.batch_scope`, set epoch and batch. PyG's own
    loaders do not. Then a hash of the batch's inputs and of the loader's base
    seed replaces the batch id, and :meth:`set_epoch` sets the epoch.

    Args:
        seed (int, optional): The seed; default: drawn from torch's generator.
        rng_scope (str, optional): With ``'batch'``, each batch has its own
            draws. With ``'epoch'``, a node at a hop draws the same neighbours
            in all batches of an epoch.
    """

    #: The attribute with the times of edges, if there is one.
    edge_time_attr: str | None = None
    #: Whether two threads may sample while others read; not a user's program.
    overlaps_reads = False
    _negatives: Any = None
    _warned = False

    def __init__(self, seed: int | None = None, rng_scope: RngScope = 'batch'):
        if rng_scope not in ('batch', 'epoch'):
            raise ValueError(
                f"{type(self).__name__}: 'rng_scope' must be 'batch' or "
                f"'epoch' (got {rng_scope!r})"
            )
        self.is_seeded = seed is not None  # the user passed a seed
        self.seed = rng.draw_seed() if seed is None else seed
        self.rng_scope = rng_scope
        self.epoch = 0
        self.counts = Counts()
        rng.check_key(type(self).__name__, self.seed)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of batches whose loader does not set one.

        Args:
            epoch (int): The epoch, from 0.
        """
        rng.check_key('set_epoch', self.seed, epoch)
        self.epoch = epoch

    def begin_pass(self, epoch: int, inputs: Any) -> None:
        """Called by our loaders at the start of an epoch, before workers.

        Args:
            epoch (int): The epoch.
            inputs (NodeSamplerInput or EdgeSamplerInput): All seeds.
        """

    def prepare_negatives(
        self, edge_type: EdgeType | None, sampling: Any = None
    ) -> None:
        """Builds the tables of an edge type's negatives, before workers start.

        Args:
            edge_type (Tuple[str, str, str], optional): The edge type.
            sampling (NegativeSampling, optional): How they are sampled.

        Raises:
            ValueError: If the number of weights is not the number of nodes.
        """
        if self._negatives is not None:
            self._negatives.check_weights(edge_type, sampling)
            self._negatives.prepare(edge_type)

    def hand_out(self, epoch: int, part: float) -> None:
        """Called by our loaders with the progress of an epoch.

        Args:
            epoch (int): The epoch.
            part (float): Share of its batches that were handed out.
        """

    def stats(self) -> dict[str, Any]:
        """Returns counters of this process since the sampler was made.

        Each worker has its own counters; ``stats()`` of a loader sums those
        of all workers.

        Returns:
            Dict[str, Any]: ``batches``; ``nodes``, the seeds and the new
            nodes of each hop; ``edges`` of each hop (one number if samples
            have no hop counts); ``duplicates``, the share of edges that led
            to no new node; ``seconds`` of each phase; and the counters of
            caches, if there are any.
        """
        return {**self.counts.stats(), **self._cache_stats()}

    def _cache_stats(self) -> dict[str, Any]:
        return {}

    def batch_key(self, *ids: Tensor | int | None) -> Tensor:
        """Returns the key of the current batch, int64 ``[1, 3]``.

        Args:
            *ids (torch.Tensor or int, optional): Inputs of the batch. Their
                hash replaces the batch id outside of a numbered batch.
        """
        place: Any = rng.current_batch()
        if place is None:
            self._warn_under_pyg()
            base_seed = rng.worker_base_seed()
            if self.rng_scope == 'batch':
                place = self.epoch, rng.hash_ids(base_seed, *ids)
            else:
                place = (self.epoch + base_seed) % 2**32, rng.EPOCH_SCOPE
        elif self.rng_scope == 'epoch':
            place = place.epoch, rng.EPOCH_SCOPE
        return rng.make_key(self.seed, *place)

    def _warn_under_pyg(self) -> None:
        """Warns once that a PyG loader sets no batch id."""
        frame: Any = None if self._warned else inspect.currentframe()
        for _ in range(_NEAR):
            if frame is None:
                return
            if frame.f_globals.get('__name__', '').startswith(_PYG_LOADERS):
                break
            frame = frame.f_back
        else:
            return
        self._warned = True
        rng.warn_unnumbered(
            type(self).__name__,
            "Use the loaders of 'torch_gsample.loader', or 'patch_pyg()'",
        )

    def call_key(self, *ids: Tensor | int | None) -> Tensor:
        """Returns the key of one of several calls for the current batch.

        Args:
            *ids (torch.Tensor or int, optional): Inputs that differ between
                the calls.
        """
        key = self.batch_key(*ids)
        if self.rng_scope == 'epoch':
            return key
        seed, epoch, batch = key[0].tolist()
        return rng.make_key(seed, epoch, rng.hash_ids(batch, *ids))
