"""Samples a graph on disk an epoch at a time, by reading it in order."""

import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

from torch_gsample import rng
from torch_gsample.locks import new_lock
from torch_gsample.memory import bytes_of
from torch_gsample.options import (
    DiskOptions,
    TimeBound,
    TimeInclusive,
    checked_names,
)
from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.samplers.neighbor.edge_bound import Select
from torch_gsample.samplers.neighbor.node_wise import NumNeighborsType
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.background import Background
from torch_gsample.storage.epoch import Epoch, sample_epoch
from torch_gsample.storage.epoch_folders import (
    close_inherited,
    remove_all,
    remove_others,
)
from torch_gsample.storage.epoch_results import EpochResults
from torch_gsample.storage.format import LENGTH
from torch_gsample.storage.frontiers import seed_keys
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.hops import Draw
from torch_gsample.storage.random_reads import RandomReads
from torch_gsample.storage.sampler import DiskSampler
from torch_gsample.storage.spill import Folder


class StreamingSampler(DiskSampler):
    r"""Samples a graph on disk an epoch at a time, by reading it in order.

    :meth:`prepare_epoch` samples hop by hop. It sorts all nodes of a hop that
    any batch may need, reads the chunks with these nodes once, one after the
    other, and samples a chunk while it reads the next. Batches then look up
    the draws of their nodes. So draws are those of ``rng_scope='epoch'``: a
    node at a hop draws the same neighbours in all batches of an epoch.

    Loaders of :mod:`torch_gsample.loader` prepare the first epoch at its
    start. A thread prepares the next one when a share ``trigger`` of an epoch
    is delivered. Without these loaders, call :meth:`prepare_epoch`.

    Samples equal those of a :class:`NeighborSampler` of the same seed with
    ``rng_scope='epoch'``.

    Args:
        graph (ChunkedGraph): The graph.
        num_neighbors (NumNeighbors or List[int] or Dict): See
            :class:`NeighborSampler`.
        memory_limit (int or str, optional): Bytes for buffers and results; at
            least four chunks, and one more for each further directory.
        spill_dir (str or Path, optional): Folder for results that do not fit
            in memory; default: the system's temporary folder.
        trigger (float, optional): The share of an epoch after which the next
            one is prepared; above 1 it never is.
        time_bound (str, optional): ``'seed'`` or ``'edge'``, see
            :class:`NeighborSampler`. An epoch is sampled before its batches
            are known, so there is no ``'batch'``. With ``'edge'``, a hop has
            as many distinct times as its sampled edges, and results take 8
            bytes more for each of them.
        time_inclusive (str, optional): See :class:`RandomReadSampler`.
        **options (optional): All others are as in :class:`DiskSampler`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> folder = tempfile.TemporaryDirectory()
        >>> graph = ChunkedGraph.write(
        ...     f'{folder.name}/graph', edge_index, chunk_bytes=4096
        ... )
        >>> sampler = StreamingSampler(graph, [2, 1], seed=0)
        >>> sampler.prepare_epoch(torch.tensor([0, 1]), epoch=0)
        >>> inputs = NodeSamplerInput(None, torch.tensor([0]))
        >>> sampler.sample_from_nodes(inputs).node
        tensor([0, 1, 2])
        >>> sampler.close()
        >>> folder.cleanup()
    """

    @checked_names
    def __init__(
        self,
        graph: ChunkedGraph,
        num_neighbors: NumNeighborsType,
        subgraph_type: SubgraphType | str = 'directional',
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        *,
        memory_limit: int | str = 4 << 30,
        spill_dir: str | Path | None = None,
        trigger: float = 0.8,
        time_bound: TimeBound = 'seed',
        time_inclusive: TimeInclusive = 'both',
        **options: Unpack[DiskOptions],
    ):
        if options.setdefault('rng_scope', 'epoch') != 'epoch':
            raise ValueError(
                "StreamingSampler: 'rng_scope' must be 'epoch', "
                'because whole epochs are sampled at once (got '
                f'{options["rng_scope"]!r})'
            )
        base = subgraph_type, replace, disjoint, temporal_strategy
        self.interval = TimeInterval(time_bound, time_inclusive)
        if time_bound == 'batch':
            raise ValueError(
                "StreamingSampler: 'time_bound' must be 'seed' or 'edge', "
                "because whole epochs are sampled at once (got 'batch')"
            )
        super().__init__(graph, num_neighbors, *base, **options)
        graph.refuse_segments('StreamingSampler')
        lengths = [r.chunks[:, LENGTH] for r in graph.meta.relations]
        largest = max((int(n.max()) for n in lengths if len(n)), default=0)
        least = 4 + len(graph.meta.directories)  # two of them in reserve
        limit = bytes_of(memory_limit, "StreamingSampler: 'memory_limit'")
        self._spare = limit - (least - 2) * largest
        if self._spare < 2 * largest or limit <= 0:
            raise ValueError(
                f"StreamingSampler: 'memory_limit' must be at least {least} "
                f'times the largest chunk, {least * largest} (got '
                f"{limit}); write the graph with smaller 'chunk_bytes'"
            )
        self.trigger = trigger
        folder = OwnedFolder(spill_dir or tempfile.gettempdir(), 'gsample-')
        self._disk = folder.path
        self._results: dict[int, EpochResults] = {}
        self._begin_process()
        self._owner = os.getpid()
        self._close: Callable[[], object] = weakref.finalize(
            self, remove_all, self._owner, self._state, folder
        )

    _seeds: NodeSamplerInput | None

    # Preparing ###############################################################

    def prepare_epoch(
        self,
        seeds: Tensor | NodeSamplerInput,
        epoch: int,
        input_type: str | None = None,
        input_time: Tensor | None = None,
    ) -> None:
        """Samples the neighbours of all nodes that an epoch may visit.

        Results of all epochs except this and the previous one are removed.

        Args:
            seeds (torch.Tensor or NodeSamplerInput): The seeds of all
                batches, int64 ``[num_seeds]``, in any order.
            epoch (int): The number of the epoch.
            input_type (str, optional): Their node type.
            input_time (torch.Tensor, optional): Their times.

        Raises:
            IndexError: If a seed is not in the graph.
            KeyboardInterrupt: On Ctrl-C; no file remains.
            OSError: If a file cannot be read, or the disk is full.
            ValueError: If a file is damaged; the error names file and offset.
        """
        if not isinstance(seeds, NodeSamplerInput):
            seeds = NodeSamplerInput(None, seeds, input_time, input_type)
        rng.make_key(self.seed, epoch)  # checks the epoch
        with self._lock:
            self.finish_preparing()
            self._seeds, self._consumed = seeds, 0
            self._prepare(seeds, epoch, threading.Event())

    def prepare_ahead(self, epoch: int) -> None:
        """Starts a thread that prepares an epoch with the same seeds."""
        with self._lock:
            if self._state['work'] is None and self._find(epoch) is None:
                seeds = self._seeds
                self._state['work'] = Background(
                    lambda stop: self._prepare(seeds, epoch, stop)
                )

    def finish_preparing(self) -> None:
        """Waits for the thread's preparation; raises its error."""
        with self._lock:
            work, self._state['work'] = self._state['work'], None
            if work is not None:
                try:
                    work.wait()
                except BaseException:
                    work.stop()  # Ctrl-C while waiting
                    raise

    def close(self) -> None:
        """Stops the thread and removes all results."""
        self._close()

    def _prepare(
        self, seeds: NodeSamplerInput, epoch: int, stop: threading.Event
    ) -> None:
        self._check_node_type(seeds.input_type)
        started = time.perf_counter()
        nodes = {seeds.input_type: seeds.node}
        times = self._seed_time(nodes, {seeds.input_type: seeds.time})
        key, distinct = seed_keys(
            seeds.node,
            None if times is None else times[seeds.input_type],
            self.graph.counts[seeds.input_type],
        )
        options = {
            'key': rng.make_key(self.seed, epoch, rng.EPOCH_SCOPE),
            'time_window': self.interval.width(self.time_window),
            'temporal_strategy': self.temporal_strategy,
            'replace': self.replace,
            'num_threads': self.num_threads or 0,
        }
        self._keep_latest(epoch)
        folder = Folder(self._disk / f'{epoch}', self._spare // 8)
        self._state['folders'][epoch] = folder
        reads = RandomReads(self.chunked, self._spare // 16)
        task = Epoch(
            self.chunked,
            self._fanouts,
            options,
            self.use_weights,
            distinct,
            self.interval,
            reads.readers(),
            stop,
            self._spare // 8,
        )
        try:
            with self.counts.phase('prepare_epoch'):
                sample_epoch(task, {seeds.input_type: key}, folder)
        except BaseException:
            self._state['folders'].pop(epoch).remove()
            raise
        folder.finish(
            fanouts=self._fanouts, seconds=time.perf_counter() - started
        )

    def _keep_latest(self, epoch: int) -> None:
        """Removes the results of all epochs except the previous one."""
        # A copy: loaders may look up another epoch now.
        known = list(self._results.items())
        self._results = {e: r for e, r in known if epoch - 1 <= e < epoch}
        remove_others(self._state, epoch)

    # Sampling ################################################################

    def begin_pass(self, epoch: int, inputs: Any) -> None:
        """Prepares an epoch, or waits until it is; called by loaders."""
        self.finish_preparing()
        if not isinstance(inputs, NodeSamplerInput):
            return
        self._consumed = 0
        known = self._seeds
        same = known is not None and all(
            _equal(getattr(known, name), getattr(inputs, name))
            for name in ('node', 'time', 'input_type')
        )
        with self._lock:
            if not same or self._find(epoch) is None:
                self.prepare_epoch(inputs, epoch)

    def hand_out(self, epoch: int, part: float) -> None:
        """Called by loaders with the delivered fraction of an epoch."""
        if part >= self.trigger:
            self.prepare_ahead(epoch + 1)

    def batch_key(self, *ids: Tensor | int | None) -> Tensor:
        """Returns the key of the epoch, int64 ``[1, 3]``."""
        place = rng.current_batch()
        epoch = self.epoch if place is None else place.epoch
        return rng.make_key(self.seed, epoch, rng.EPOCH_SCOPE)

    def begin_batch(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Draw:
        """Returns the function that looks up the frontiers of a batch."""
        return self._lookups(fanouts, options)[0]

    def select_edges(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Select:
        """Returns the lookup of edges whose times bound later hops."""
        return self._lookups(fanouts, options)[1]

    def _lookups(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> tuple[Draw, Select]:
        epoch = int(options['key'][0, 1])
        results = self._wait_for(epoch)
        if results.facts['fanouts'] != fanouts:
            raise ValueError(
                f'StreamingSampler: epoch {epoch} was prepared with '
                f"'num_neighbors' {results.facts['fanouts']} (got {fanouts})"
            )
        types = {t: i for i, t in enumerate(self.graph.node_types)}
        threads = options['num_threads'] or torch.get_num_threads()
        return results.lookups(
            [types[self.graph.end_types(t)[1]] for t in self.graph.edge_types],
            threads,
        )

    def sample_from_nodes(
        self, inputs: NodeSamplerInput, **kwargs: Any
    ) -> Any:
        """Looks up the subgraph of a batch; see :class:`NeighborSampler`."""
        out = super().sample_from_nodes(inputs, **kwargs)
        if rng.current_batch() is None and os.getpid() == self._owner:
            self._consumed += len(inputs.node)
            total = len(self._seeds.node) if self._seeds is not None else 0
            if total > 0:
                epoch = int(self.batch_key()[0, 1])
                self.hand_out(epoch, self._consumed / total)
        return out

    def sample_from_edges(self, *args: Any, **kwargs: Any) -> Any:
        """Not supported: negatives are not known in advance.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            'StreamingSampler: edges cannot be seeds, as their negatives are '
            "not known before an epoch; use a 'RandomReadSampler'"
        )

    def _find(self, epoch: int) -> EpochResults | None:
        close_inherited(self._state)
        results = self._results.get(epoch)
        if results is None or results.is_stale():
            results = EpochResults.find(self._disk / f'{epoch}')
            if results is not None:
                # Mappings hold memory: drop those of earlier epochs.
                known = list(self._results.items())
                self._results = {e: r for e, r in known if e >= epoch - 1}
                self._results[epoch] = results
        return results

    def _wait_for(self, epoch: int) -> EpochResults:
        with self._lock:
            results = self._find(epoch)
            if results is None and os.getpid() == self._owner:
                self.finish_preparing()
                results = self._find(epoch)
                if results is None and self._seeds is not None:
                    self.prepare_epoch(self._seeds, epoch)
                    results = self._find(epoch)
        if results is None:
            raise ValueError(
                f'StreamingSampler: epoch {epoch} is not prepared; call '
                "'prepare_epoch', or use a loader of torch_gsample.loader"
            )
        return results

    # Processes ###############################################################

    def _begin_process(self) -> None:
        self._owner = -1
        #: Loaders in several threads look up and prepare one at a time.
        self._lock = new_lock(threading.RLock)
        self._seeds = None
        self._consumed = 0
        self._state: dict[str, Any] = {'work': None, 'folders': {}}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ('_close', '_state', '_seeds', '_consumed', '_owner'):
            del state[name]
        del state['_lock']
        return {**state, '_results': {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_process()  # a copy in a worker only looks up
        self._close = lambda: None  # the copy owns nothing


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    return a is b or (not isinstance(a, Tensor) and a == b)
