"""Makes batches of a graph in memory, reading its attributes once.

A sample comes in, the batch of PyG's ``filter_fn`` goes out: the same keys in
the same order, and the same values. PyG classifies attributes for each batch
(of nodes or edges, along which dimension); a plan does so once, and again if
an attribute is replaced. PyG makes all other batches.
"""

import copy
import operator
import weakref
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample.loader.late_values import LateKeys
from torch_gsample.loader.prefetch import in_prefetch_thread
from torch_gsample.loader.store_plan import StorePlan, Values
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
)
from torch_gsample.torch_private import is_transformed

#: PyG's functions that a plan replaces, unless they are patched.
_OF_NODES, _OF_LINKS = NodeLoader.filter_fn, LinkLoader.filter_fn
#: Allowed types in a graph besides tensors; others may have side effects.
_PLAIN = bool, int, float, str, bytes, list, tuple, dict, np.ndarray


#: The parts of a sample for each store, in PyG's order.
_COUNTS = 'batch', 'num_sampled_nodes', 'num_sampled_edges'


class Planned:
    """The plan of a loader, made for its first batch.

    It is not sent to other processes, which make their own, and it holds no
    attribute that the graph no longer has.
    """

    _plan: '_Plan | None' = None

    def __init__(self) -> None:
        #: The attributes read of earlier batches: they are made in advance.
        self.reads: set[Any] = set()

    def forget(self) -> None:
        """Drops the plan of a replaced graph."""
        self._plan = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Planned, ()

    def batch(self, loader: Any, filter_fn: Any, out: Any) -> Any:
        """Makes a batch of a sample, as ``filter_fn(loader, out)`` does.

        Args:
            loader (NodeLoader or LinkLoader): The loader.
            filter_fn (Callable): Its function.
            out (SamplerOutput or HeteroSamplerOutput): The sample.

        Returns:
            Data or HeteroData: The batch, without the loader's transforms;
            None if PyG must make it.
        """
        if filter_fn is _OF_NODES:
            sampler = loader.node_sampler
        elif filter_fn is _OF_LINKS:
            sampler = loader.link_sampler
        else:
            return None
        if not isinstance(sampler, KeyedSampler) or not _is_plain(loader, out):
            return None
        data, plan = loader.data, self._plan
        if plan is None or not plan.is_of(data):
            self._plan = plan = _plan_of(data)
        if plan is None:
            return None
        late = LateKeys(
            sampler.edge_time_attr, in_prefetch_thread(), self.reads
        )
        batch = plan.batch(loader, out, sampler.edge_permutation, late)
        if batch is not None and hasattr(out, 'attributes'):
            out.attributes.write_to(batch)
        return batch


def _is_plain(loader: Any, out: Any) -> bool:
    """Whether a sample is the sampler's own, in main memory."""
    if type(out) in (SamplerOutput, AttributedOutput):
        in_memory = _is_in_memory(out.node)
    elif type(out) in (HeteroSamplerOutput, HeteroAttributedOutput):
        in_memory = all(map(_is_in_memory, out.node.values()))
    else:
        return False
    return (
        in_memory
        and loader.transform_sampler_output is None
        and loader.gpu_batches is None
        and loader.static_shapes is None
        and not getattr(loader, 'widen_features', False)
        and out.orig_row is None
        and out.edge is not None
        # PyG writes to the shared memory of a worker.
        and get_worker_info() is None
        and not is_transformed()
    )


def _is_in_memory(node: Tensor) -> bool:
    return node.is_cpu and node.dtype == torch.int64


def _plan_of(data: Any) -> '_Plan | None':
    """Returns a plan for a graph, None if PyG must handle it."""
    kinds: dict[Any, Any] = {Data: _DataPlan, HeteroData: _HeteroPlan}
    if type(data) not in kinds:
        return None
    for store in chain(data.node_stores, data.edge_stores):
        if not all(map(_is_plain_attribute, store, store.values())):
            return None
    return kinds[type(data)](data)


def _is_plain_attribute(key: str, value: Any) -> bool:
    if key == 'adj_t' or not isinstance(value, Tensor):
        return key != 'adj_t' and type(value) in _PLAIN
    plain = type(value) is Tensor or type(value) is torch.nn.Parameter
    return plain and value.is_cpu and value.layout == torch.strided


class _Plan:
    """The plan of a graph.

    Args:
        data (Data or HeteroData): The graph.
        stores (List[StorePlan]): Its stores, except the global one.
    """

    def __init__(self, data: Any, stores: list[StorePlan]):
        self._data = data
        self._stores = [plan.store for plan in stores]
        # Each mapping with its keys and the ids of its values; an id is reused
        # only after its object is freed.
        self._known = [
            (mapping, list(mapping), list(map(id, mapping.values())))
            for mapping in (plan.mapping for plan in stores)
        ]
        self._gone: list[Any] = []
        self._held = [
            weakref.ref(value, self._gone.append)
            if isinstance(value, (Tensor, np.ndarray))
            else value
            for mapping, _, _ in self._known
            for value in mapping.values()
        ]

    def _stores_of(self, data: Any) -> list[Any]:
        raise NotImplementedError

    def is_of(self, data: Any) -> bool:
        """Whether no attribute was set since."""
        stores = self._stores_of(data)
        if self._gone or len(stores) != len(self._stores):
            return False
        if not all(map(operator.is_, stores, self._stores)):
            return False
        for mapping, keys, ids in self._known:
            if list(mapping) != keys or ids != list(map(id, mapping.values())):
                return False
        return True

    def batch(self, loader: Any, out: Any, perm: Any, late: LateKeys) -> Any:
        """Makes a batch of a sample; None if types differ."""
        raise NotImplementedError


class _DataPlan(_Plan):
    def __init__(self, data: Data):
        self._plan = StorePlan(data._store, nodes=True, edges=True)
        super().__init__(data, [self._plan])

    def _stores_of(self, data: Data) -> list[Any]:
        return [data._store]

    def batch(
        self, loader: Any, out: SamplerOutput, perm: Any, late: LateKeys
    ) -> Data:
        plan = self._plan
        values = plan.mapping.copy()
        plan.add_nodes(values, out.node)
        ends = out.row, out.col
        values = plan.add_edges(values, ends, out.edge, perm, late)
        for key in _COUNTS:
            _set(values, key, getattr(out, key))
        _set_inputs(loader, out.metadata, values, values, values)
        batch = object.__new__(Data)
        batch.__dict__.update(self._data.__dict__)
        batch.__dict__['_store'] = plan.copy(weakref.ref(batch), values)
        return batch


class _HeteroPlan(_Plan):
    def __init__(self, data: HeteroData):
        self._nodes = {
            t: StorePlan(store, nodes=True, edges=False)
            for t, store in data._node_store_dict.items()
        }
        self._edges = {
            t: StorePlan(store, nodes=False, edges=True)
            for t, store in data._edge_store_dict.items()
        }
        plans = *self._nodes.values(), *self._edges.values()
        super().__init__(data, list(plans))

    def _stores_of(self, data: HeteroData) -> list[Any]:
        nodes, edges = data._node_store_dict, data._edge_store_dict
        return [*nodes.values(), *edges.values()]

    def batch(
        self, loader: Any, out: HeteroSamplerOutput, perm: Any, late: LateKeys
    ) -> Any:
        known = self._nodes.keys() >= out.node.keys()
        for of_edges in out.row, out.col, out.edge:
            known = known and self._edges.keys() >= of_edges.keys()
        if not known:
            return None
        values: dict[Any, Values] = {}
        for node_type, plan in self._nodes.items():
            values[node_type] = of_type = plan.mapping.copy()
            plan.add_nodes(of_type, _of_type(out.node, node_type))
        for t, plan in self._edges.items():
            values[t] = plan.add_edges(
                plan.mapping.copy(),
                (_of_type(out.row, t), _of_type(out.col, t)),
                _of_type(out.edge, t),
                None if perm is None else perm.get(t),
                late,
            )
        for key in _COUNTS:
            for t, value in (getattr(out, key) or {}).items():
                _set(values[t], key, value)
        input_type = loader.input_data.input_type
        if input_type not in values:
            return None
        ends = input_type, input_type
        if isinstance(input_type, tuple):
            ends = input_type[0], input_type[-1]
        inputs = values[input_type], *(values[t] for t in ends)
        _set_inputs(loader, out.metadata, *inputs)
        return self._copy(values)

    def _copy(self, values: dict[Any, Values]) -> HeteroData:
        """Returns a batch with these values, like ``copy.copy``."""
        batch = object.__new__(HeteroData)
        parent = weakref.ref(batch)
        attributes = batch.__dict__
        attributes.update(self._data.__dict__)
        attributes['_global_store'] = copy.copy(self._data._global_store)
        attributes['_global_store']._parent = batch
        attributes['_node_store_dict'] = {
            t: p.copy(parent, values[t]) for t, p in self._nodes.items()
        }
        attributes['_edge_store_dict'] = {
            t: p.copy(parent, values[t]) for t, p in self._edges.items()
        }
        return batch


def _of_type(values: Values, key: Any) -> Any:
    """Returns the ids of a type, empty if the sample lacks it."""
    if key in values:
        return values[key]
    return torch.empty(0, dtype=torch.int64)


def _set(values: Values, key: str, value: Any) -> None:
    """Sets an attribute as PyG's stores do: None removes it."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _set_inputs(
    loader: Any, metadata: Any, values: Values, src: Values, dst: Values
) -> None:
    """Writes the seeds to the stores of their type, and of a link's ends."""
    _set(values, 'input_id', metadata[0])
    if isinstance(loader, NodeLoader):
        _set(values, 'seed_time', metadata[1])
        values['batch_size'] = metadata[0].size(0)
    elif loader.neg_sampling is None or loader.neg_sampling.is_binary():
        _set(values, 'edge_label_index', metadata[1])
        _set(values, 'edge_label', metadata[2])
        _set(values, 'edge_label_time', metadata[3])
    elif loader.neg_sampling.is_triplet():
        _set(src, 'src_index', metadata[1])
        _set(dst, 'dst_pos_index', metadata[2])
        _set(dst, 'dst_neg_index', metadata[3])
        _set(src, 'seed_time', metadata[4])
        _set(dst, 'seed_time', metadata[4])
        # Those of the whole graph, if it has attributes with these names.
        values.pop('edge_label_index', None)
        values.pop('edge_label_time', None)
