"""Makes batches of samples on a GPU, without copies to the host.

The attributes of a graph and a sample come in, a batch on the GPU goes out.
Attributes on the host are pinned, and the GPU gathers them itself.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.narrow import Narrow, narrow_tensors
from torch_gsample.ops import gather_rows
from torch_gsample.placement import pin

cuda = torch.cuda


def check_loader(name: str, data: Any, kwargs: dict[str, Any]) -> None:
    """Checks the options of a loader with a sampler on a GPU.

    Raises:
        ValueError: If it has workers or pins batches, or the graph is in
            stores.
    """
    workers = kwargs.get('num_workers', 0)
    if workers > 0:
        raise ValueError(
            f"{name}: 'num_workers' must be 0 with a sampler on a GPU, where "
            f'a thread prefetches batches (got {workers})'
        )
    if kwargs.get('pin_memory'):
        raise ValueError(
            f"{name}: 'pin_memory' must not be set with a sampler on a GPU: "
            f'its batches are on the GPU already'
        )
    if not isinstance(data, (Data, HeteroData)):
        raise ValueError(
            f"{name}: a sampler on a GPU needs 'data' as Data or HeteroData "
            f'(got {type(data).__name__})'
        )


@cache
def _stream(device: torch.device) -> Any:
    """The stream of all loaders on a device.

    torch has a memory pool per stream: a stream for each epoch would hold up
    to 32 pools.
    """
    return cuda.Stream(device)


class GpuBatches:
    """The attributes of a graph, placed for a GPU.

    Args:
        data (Data or HeteroData): The graph, which does not change.
        device (torch.device): The device of samples.
        widen (bool, optional): Whether to widen features to float32.
    """

    #: The graph without long attributes on the host. Attributes gathered here
    #: are empty in it, which preserves their order.
    rest: Data | HeteroData

    def __init__(
        self,
        data: Data | HeteroData,
        device: torch.device,
        widen: bool = False,
    ):
        self.device = device
        self.rest = copy.copy(data)
        self.attributes: list[tuple[Any, str, Tensor, bool]] = []
        self.narrow: list[tuple[Any, Narrow]] = []
        for store in self.rest.node_stores if widen else []:
            for narrow in list(narrow_tensors(data, store)):
                self._take_narrow(store, narrow)
        # A homogeneous graph has one store for both.
        for store in self.rest.node_stores:
            self._take(data, store, store.is_node_attr, of_edges=False)
        for store in self.rest.edge_stores:
            self._take(data, store, store.is_edge_attr, of_edges=True)
            if type(store.get('edge_index')) is Tensor:
                size = store.edge_index.shape
                empty = store.edge_index.new_empty(2, 1, device=device)
                store.edge_index = empty.expand(size)

    def _take_narrow(self, store: Any, narrow: Narrow) -> None:
        key, value, scale = narrow
        if value.device.type == 'cpu':
            scale = None if scale is None else pin(scale)
            narrow = Narrow(key, pin(value), scale)
        self.narrow.append((store._key, narrow))
        narrow.take_scale(store)
        store[key] = torch.empty(value.shape[0], 0, device=self.device)

    def _take(
        self,
        data: Any,
        store: Any,
        is_attribute: Callable[[str], bool],
        of_edges: bool,
    ) -> None:
        taken = {key for group, key, *_ in self.attributes if not group}
        for key, value in list(store.items()):
            if (
                key not in taken
                and type(value) is Tensor
                and value.device.type == 'cpu'
                and not value.requires_grad
                and is_attribute(key)
                and data.__cat_dim__(key, value, store) == 0
            ):
                self.attributes.append((store._key, key, pin(value), of_edges))
                store[key] = value.new_empty(
                    value.shape[0], 0, device=self.device
                )

    def make(self, bare: Any, filter_fn: Callable[..., Any], out: Any) -> Any:
        """Makes a batch of a sample, as ``filter_fn(bare, out)`` does.

        Args:
            bare (NodeLoader or LinkLoader): A copy of PyG's loader.
            filter_fn (Callable): Its function.
            out (SamplerOutput or HeteroSamplerOutput): The sample.
        """
        bare.data = self.rest
        batch = filter_fn(bare, out)
        for group, key, value, of_edges in self.attributes:
            index = out.edge if of_edges else out.node
            store = batch._store if group is None else batch[group]
            if isinstance(index, dict):
                index = index[group]
            store[key] = None if index is None else gather_rows(value, index)
        for group, narrow in self.narrow:
            store = batch._store if group is None else batch[group]
            index = out.node[group] if isinstance(out.node, dict) else out.node
            store[narrow.key] = narrow.gather(index)
        return batch.to(self.device, non_blocking=True)

    # Streams ################################################################

    def on_stream(
        self, batches: Callable[[], Iterable[Any]]
    ) -> Callable[[], Iterator[tuple[Any, Any]]]:
        """Makes a thread use its own stream.

        It first waits for the caller's stream, which may write the graph.

        Returns:
            Callable: Returns batches, each with the event of its end.
        """
        begin = cuda.current_stream(self.device).record_event()

        def make_batches() -> Iterator[tuple[Any, Any]]:
            with cuda.device(self.device):
                stream = _stream(self.device)
                stream.wait_event(begin)
                with cuda.stream(stream):
                    for batch in batches():
                        yield batch, stream.record_event()

        return make_batches

    def arrived(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
        """Passes batches to the caller's stream, which waits for them.

        Their memory is reused only after that stream has finished with it.
        """
        for batch, end in batches:
            stream = cuda.current_stream(self.device)
            stream.wait_event(end)
            batch.record_stream(stream)
            yield batch
