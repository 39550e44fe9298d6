"""Several hops over several relations, for one operator."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.hop_chains import num_nodes
from torch_gsample.compiler.ir import aten, call, example
from torch_gsample.ops.sample_layers import FRONTIERS


@dataclass
class TypedChain:
    """Hops over several relations, one after the other.

    Items of `samples` and `columns` are hops, with an item for each relation
    or type; the first columns are seeds.
    """

    hops: list[Node]
    tensors: list[tuple[Node, Node, Node | None]]
    ends: list[int]
    sizes: list[Any]  # for types: nodes, or the pointers of their columns
    samples: list[list[Node | None]]
    columns: list[list[Node | None]]
    rule: str = 'row'
    sorted: bool = False
    drops: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """The chain's text in notes."""
        return (
            f'{len(self.samples)} hops of {len(self.tensors)} relations, '
            f"frontier '{self.rule}'"
        )

    @property
    def slots(self) -> list[list[tuple[Node | None, Node]]]:
        """For each output, its hop, and the source of its rows."""
        indices = [of[1] for of in self.tensors]
        return [list(zip(hop, indices, strict=True)) for hop in self.samples]

    @property
    def next_columns(self) -> list[list[Node | None]]:
        """The columns that each output replaces."""
        return self.columns[1:]

    def inputs(self) -> list[Node]:
        """Returns nodes that must be computed before the first hop."""
        first = [node for node in self.columns[0] if node is not None]
        return [*first, *(n for hop in self.hops for n in _fixed(hop))]

    def arguments(self, graph: Graph) -> tuple[Any, dict[str, Any]]:
        """Returns the arguments of `sample_layers` for the hops."""
        weighted = any(weight is not None for *_, weight in self.tensors)
        empty = None
        if weighted or None in self.columns[0]:
            like = self.hops[0].kwargs['cols']
            empty = call(graph, aten.new_empty.default, (like, [0]))
        flat = [sample for hop in self.samples for sample in hop]
        options = {
            'frontier': FRONTIERS.index(self.rule),
            'sorted': self.sorted,
            'replace': self.hops[0].kwargs.get('replace', False),
            'return_frontier': len(self.columns) > len(self.samples),
        }
        default = {'frontier': FRONTIERS.index('nodes')}
        return (
            [
                empty if tensor is None else tensor
                for of in self.tensors
                for tensor in (of if weighted else of[:2])
            ],
            self.ends,
            [
                num_nodes(graph, size) if is_tensor(size) else size
                for size in self.sizes
            ],
            [empty if node is None else node for node in self.columns[0]],
            [k for r in range(len(self.tensors)) for k in self._fanouts(r)],
            [(sample or self.hops[0]).args[2] for sample in flat],
            [_call_id(sample) for sample in flat],
        ), {k: v for k, v in options.items() if v != default.get(k, False)}

    def _fanouts(self, relation: int) -> Iterator[Any]:
        """Yields fan-outs of a relation: 0 where it is not sampled."""
        for hop in self.samples:
            sample = hop[relation]
            yield 0 if sample is None else sample.args[1]


def _fixed(hop: Node) -> list[Node]:
    """Returns the arguments of a hop other than columns."""
    given = [*hop.args, hop.kwargs.get('cum_weight')]
    return [item for item in given if isinstance(item, Node)]


def _call_id(sample: Node | None) -> Any:
    """Returns the call id of a hop."""
    return sample.args[3] if sample and len(sample.args) > 3 else 0


def is_tensor(value: Any) -> bool:
    """Whether a value is a node with a tensor."""
    return isinstance(value, Node) and isinstance(example(value), torch.Tensor)
