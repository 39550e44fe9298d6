"""Attributes that a sampler computes for a batch.

PyG's loaders look up the attributes of a graph by the ids of a sample.
Attributes that the sampler itself computes, such as the weights of sampled
edges, travel with its output, and the loaders of :mod:`torch_gsample.loader`
write them to the batch.
"""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput


@dataclass
class SampledAttributes:
    """Attributes of the nodes and the edges of a sample.

    Args:
        node (Dict[NodeType, Dict[str, torch.Tensor]]): For each node type
            (:obj:`None` in a homogeneous graph), tensors by name, with a row
            for each sampled node.
        edge (Dict[EdgeType, Dict[str, torch.Tensor]]): For each edge type,
            tensors by name, with a row for each sampled edge.
    """

    node: dict[Any, dict[str, Tensor]] = field(default_factory=dict)
    edge: dict[Any, dict[str, Tensor]] = field(default_factory=dict)

    def keep_edges(self, edge_type: Any, kept: Tensor) -> None:
        """Keeps the attributes of the edges at the positions ``kept``."""
        values = self.edge.get(edge_type, {})
        self.edge[edge_type] = {
            name: value.index_select(0, kept) for name, value in values.items()
        }

    def write_to(self, batch: Any) -> None:
        """Sets the attributes of a batch.

        Args:
            batch (Data or HeteroData): A batch of this sample.

        Raises:
            ValueError: If the number of nodes or edges differs.
        """
        for level, by_type in (('nodes', self.node), ('edges', self.edge)):
            for group, values in by_type.items():
                store = batch if group is None else batch[group]
                ids = store.n_id if level == 'nodes' else store.edge_index[0]
                for name, value in values.items():
                    if value.shape[0] != ids.shape[0]:
                        raise ValueError(
                            f"SampledAttributes: '{name}' must have a row for "
                            f'each of the {ids.shape[0]} {level} of the batch '
                            f'(got {value.shape[0]}): the sample was changed '
                            'after its attributes were computed'
                        )
                    store[name] = value


@dataclass
class AttributedOutput(SamplerOutput):
    """A ``SamplerOutput`` with computed attributes."""

    attributes: SampledAttributes = field(default_factory=SampledAttributes)


@dataclass
class HeteroAttributedOutput(HeteroSamplerOutput):
    """A ``HeteroSamplerOutput`` with computed attributes."""

    attributes: SampledAttributes = field(default_factory=SampledAttributes)
