"""Base of loaders with numbered batches: epochs, state, random access.

Arguments of torch's loader come in; batch samplers whose batches carry their
epoch and batch id go to it.
"""

from typing import Any

from torch.utils.data import DataLoader
from torch_geometric.sampler import BaseSampler

from torch_gsample import rng
from torch_gsample.loader.batch_edge_index import mark_batch
from torch_gsample.loader.epochs import (
    Epochs,
    GivenBatches,
    OrderedBatches,
)
from torch_gsample.loader.numbering import (
    Batches,
    BatchIndex,
    IndexRange,
    Seeds,
    SequentialSeeds,
    SharedSeeds,
)
from torch_gsample.loader.sharding import integer, read_shard
from torch_gsample.loader.state import arguments_of, check_state, graph_of
from torch_gsample.loader.static_shapes import StaticShapes
from torch_gsample.rng import BatchNumber
from torch_gsample.samplers.base import KeyedSampler


class NumberedLoader(DataLoader):
    """Base of :class:`KeyedLoader` without threads.

    ``sampler``, ``batch_sampler`` and ``dataset`` carry the id of each batch
    into any other loader that is built from them and ``collate_fn``.
    """

    #: The shapes to which batches are padded.
    static_shapes: StaticShapes | None = None
    _epochs: Epochs
    _facts: dict[str, Any] | None = None
    _is_ordered: bool
    _shuffles: bool
    _warned = False

    def _init_order(self, seed: int | None, kwargs: dict[str, Any]) -> None:
        """Reads the arguments of the order, before torch's initialisation."""
        name = type(self).__name__
        self._epochs = Epochs(name, seed, read_shard(name, kwargs, seed))
        self._shuffles = bool(kwargs.get('shuffle'))
        given = [kwargs.get(key) for key in ('sampler', 'batch_sampler')]
        torchs = seed is None or kwargs.get('generator') is not None
        self._is_ordered = given == [None, None] and not (
            self._shuffles and torchs
        )

    # The order ###############################################################

    def _numbered_seeds(self, sampler: Any) -> Any:
        """Returns the ``sampler``: torch's, or ours instead of it."""
        epochs = self._epochs
        if not self._is_ordered:
            return sampler
        epochs.batches = OrderedBatches(
            len(self.dataset),  # type: ignore[arg-type]
            self.batch_size,  # type: ignore[arg-type]
            self.drop_last,
            epochs.seed if self._shuffles else None,
        )
        if epochs.shard.world_size > 1:
            return SharedSeeds(epochs)
        return Seeds(epochs) if self._shuffles else SequentialSeeds(epochs)

    def _numbered_batches(self, torchs: Any) -> Batches:
        """Returns the ``batch_sampler`` that replaces torch's."""
        if self._is_ordered:
            return Batches.of(self._epochs, self.sampler)
        given = GivenBatches(torchs, self._epochs.seed)
        self._epochs.batches = given
        return Batches.of(self._epochs, given.sampler)

    @property
    def is_sequential(self) -> bool:
        """Whether seeds keep their order."""
        return self._is_ordered and not self._shuffles

    def __setattr__(self, name: str, value: Any) -> None:
        # Torch sets these once, at initialisation. PyG passes `range(n)`,
        # whose indices would lose their batch ids.
        if name == 'dataset' and isinstance(value, range):
            value = IndexRange(len(value))
        elif name == 'sampler':
            value = self._numbered_seeds(value)
        elif name == 'batch_sampler':
            value = self._numbered_batches(value)
        super().__setattr__(name, value)

    # Epochs and state ########################################################

    @property
    def epoch(self) -> int:
        """The index of the next epoch."""
        return self._epochs.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the index of the next epoch; later epochs count from it.

        Args:
            epoch (int): The index, from 0.

        Raises:
            ValueError: If it is negative.
        """
        self._epochs.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to resume from after the last batch handed out.

        Prefetched batches do not count; after the last batch of an epoch, the
        state is the start of the next epoch. It does not depend on workers
        and threads, nor on the number of processes that share the batches in
        step.

        Returns:
            Dict[str, Any]: ``seed``; ``epoch`` and ``batch``, the index of the
            next batch among those of all processes; ``order``, ``graph`` and
            ``arguments``, which must be the same when the state is loaded;
            ``buckets``, with static shapes; and ``version``. All values are
            plain.

        Example:
            >>> from torch_gsample.loader import WalkLoader
            >>> options = {'batch_size': 2, 'shuffle': True, 'seed': 1}
            >>> loader = WalkLoader(6, list, **options)
            >>> first, second, third = loader
            >>> for batch in loader:  # the second epoch
            ...     state = loader.state_dict()
            ...     break
            >>> state['epoch'], state['batch']
            (1, 1)
            >>> again = WalkLoader(6, list, **options)
            >>> again.load_state_dict(state)
            >>> len(list(again))
            2
        """
        name = type(self).__name__
        out = {'loader': name, **self._epochs.state(), **self._own_facts()}
        if self.static_shapes is not None:
            out['buckets'] = self.static_shapes.state()
        return out

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a state at the next epoch or iteration.

        Earlier batches are not sampled again. The loader may have other
        workers, another ``prefetch`` and another ``world_size``.

        Args:
            state (Dict[str, Any]): The result of :meth:`state_dict`.

        Raises:
            TypeError: If it is not a state of a loader.
            ValueError: If the seed, graph, order or arguments of its loader
                differ; the message names the first difference.
        """
        own = {k: v for k, v in self.state_dict().items() if k != 'buckets'}
        check_state(type(self).__name__, state, own)
        self._epochs.load(state)
        if self.static_shapes is not None:
            self.static_shapes.load(state.get('buckets', []))

    def _own_facts(self) -> dict[str, Any]:
        if self._facts is None:
            sampler = self._graph_sampler()
            arguments = arguments_of(*filter(None, (self, sampler)))
            data = getattr(self, 'data', None)
            self._facts = {
                'graph': graph_of(data, sampler),
                'arguments': arguments,
            }
        return self._facts

    def __getitem__(self, number: tuple[int, int]) -> Any:
        """Returns a batch by its epoch and its index in the epoch.

        Indices count the batches of all processes. Batches loaded before make
        no difference.

        Args:
            number (Tuple[int, int]): The epoch and the batch.

        Raises:
            IndexError: If there is no such batch.
            TypeError: If these are not two integers.
            ValueError: If torch shuffles the seeds, so that a batch depends on
                all earlier draws.
        """
        epoch, batch = self._checked_number(number)
        index = BatchIndex(
            self._epochs.one(epoch, batch), BatchNumber(epoch, batch)
        )
        sampler = self._keyed_sampler()
        if sampler is not None:
            sampler.begin_pass(epoch, getattr(self, 'input_data', None))
        if self.static_shapes is not None:
            self.static_shapes.prepare(self)
        out = self.collate_fn(index)
        mark_batch(out)
        return out

    def _checked_number(self, number: Any) -> tuple[int, int]:
        name = f'{type(self).__name__}[epoch, batch]'
        if not isinstance(number, tuple) or len(number) != 2:
            raise TypeError(
                f'{name}: an index must be two integers, (epoch, '
                f'batch) (got {number!r})'
            )
        epoch, batch = (
            integer(name, key, value)
            for key, value in zip(('epoch', 'batch'), number, strict=True)
        )
        total = self._epochs.total()
        if epoch < 0 or not 0 <= batch < total:
            raise IndexError(
                f"{name}: 'epoch' must not be negative, and 'batch' must be "
                f'in [0, {total}) (got {epoch} and {batch})'
            )
        if self._shuffles and self._epochs.seed is None:
            raise ValueError(
                f"{name}: a 'seed' is required to shuffle seeds (got None)"
            )
        return epoch, batch

    # Samplers ################################################################

    def _graph_sampler(self) -> BaseSampler | None:
        for name in ('node_sampler', 'link_sampler'):
            sampler: BaseSampler | None = getattr(self, name, None)
            if sampler is not None:
                return sampler
        return None

    def _keyed_sampler(self) -> KeyedSampler | None:
        sampler = self._graph_sampler()
        return sampler if isinstance(sampler, KeyedSampler) else None

    def _warn_unnumbered(self) -> None:
        """Warns once if a batch has lost its id."""
        if self._warned or rng.current_batch() is not None:
            return
        self._warned = True
        sampler = self._keyed_sampler()
        if sampler is not None:
            sampler._warned = True  # one warning is enough
        rng.warn_unnumbered(
            type(self).__name__,
            "Pass the loader itself, its 'batch_sampler' or its "
            "'sampler', or sample within "
            "'torch_gsample.rng.batch_scope(epoch, batch)'",
        )
