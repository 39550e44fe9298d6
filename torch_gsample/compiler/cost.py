r"""Costs of a program's operators: predicted and measured.

The predicted time of an operator with :math:`n` elements is :math:`c_0 + c \,
n`. If a program has several equivalent forms (``choose``), its first calls
compute all of them and measure the operators of each; then the fastest form is
kept.
"""

import copy
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor
from torch.fx import Graph, GraphModule, Interpreter, Node

from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.compiler.ir import choose, placeholders, tensors_of
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.locks import new_lock
from torch_gsample.torch_private import OpOverload, schema_of

#: Assumed number of edges of a batch: those of about a thousand columns.
BATCH_EDGES = 1 << 14
#: Number of measured calls. The first one also fills caches and tables.
_CALLS = 4
#: A candidate must take less than this share of the written form's time.
_GAIN = 0.95

#: Seconds per call.
CALL = 3e-6
#: Nanoseconds per element.
_ELEMENT = {
    'gsample::unique_nodes': 20.0,
    'gsample::slice_rows': 4.0,
    'gsample::slice_cols': 4.0,
    'gsample::coo_to_csc': 60.0,
    'gsample::positive_weights': 2.0,
    'gsample::sample_layers': 15.0,
    'gsample::sample_neighbors': 20.0,
    'gsample::random_walk': 20.0,
    'gsample::node2vec_walk': 30.0,
    'gsample::induce_subgraph': 20.0,
    'aten::index_add': 2.0,
    'aten::index_select': 3.0,
    'aten::index': 3.0,
    'aten::repeat_interleave': 3.0,
    'aten::segment_reduce': 2.0,
    'aten::bincount': 2.0,
}
_OTHER = 0.7
#: Seconds per element of slices and sorts, rounded; minimum times of single
#: operators on a power-law graph with 1.2 M edges and slices of 64 to 8,192
#: of its rows, on one thread of a Zen 5.
EDGE_COST = {
    'near': 1.5e-9,  # an edge of the slice, from contiguous storage
    'search': 1.0e-9,  # an examined edge, from scattered storage
    'hit': 30e-9,  # an edge found in a graph: a cache miss
    'near hit': 3e-9,  # an edge found in a slice
    'gather': 2.5e-9,
    'sort': 12e-9,  # an edge sorted to its promised position
    'transpose': 5e-9,  # an edge sorted by row
    'pointer': 0.8e-9,  # a column or row whose pointer is written
    'expand': 1.3e-9,  # a column or row, and each of its edges
}
#: A value cached for a graph should pay off within this many calls.
CALLS_OF_A_GRAPH = 1000
#: Operators that read no more input than they write.
_GATHERS = frozenset(
    {
        'aten::index_select',
        'aten::index',
        'gsample::slice_cols',
        'gsample::sample_columns',
        'gsample::sample_nodes',
        'gsample::sample_layers',
        'gsample::sample_neighbors',
        'gsample::random_walk',
        'gsample::node2vec_walk',
        'gsample::induce_subgraph',
    }
)


# Predicted ###################################################################


def predict(graph: Graph, nodes: set[Node]) -> float:
    """Predicts the seconds of some nodes of a program per call.

    Values cached for a graph cost nothing.
    """
    known = [_numel(t, 0) for n in placeholders(graph) for t in tensors_of(n)]
    batch = min(BATCH_EDGES, max(known, default=0) or BATCH_EDGES)
    return sum(
        predict_operator(
            node.target,
            [t for n in node.all_input_nodes for t in tensors_of(n)],
            tensors_of(node),
            batch,
        )
        for node in nodes
        if isinstance(node.target, OpOverload)
        and not node.meta.get('invariant')
    )


def predict_operator(
    target: Any, inputs: list[Tensor], outputs: list[Tensor], unknown: int = 0
) -> float:
    """Predicts the seconds of an operator; 0 for other nodes.

    Args:
        target (Callable): An operator, or a kernel of edge work.
        inputs (List[torch.Tensor]): Its inputs.
        outputs (List[torch.Tensor]): Its outputs.
        unknown (int, optional): Replaces unknown sizes.
    """
    schema = schema_of(target)
    if schema is None and not isinstance(target, EdgeKernel):
        return 0.0
    name = 'edge_map' if schema is None else schema.name
    tensors = outputs if name in _GATHERS else [*inputs, *outputs]
    elements = max((_numel(t, unknown) for t in tensors), default=0)
    return CALL + 1e-9 * _ELEMENT.get(name, _OTHER) * elements


def _numel(tensor: Tensor, unknown: int) -> int:
    return math.prod(
        size if isinstance(size, int) else unknown for size in tensor.shape
    )


# Candidates ##################################################################


def sites(graph: Graph) -> dict[str, list[str]]:
    """Returns the sites of choices, with the names of their candidates."""
    return {
        str(node.args[0]): list(node.kwargs)
        for node in graph.nodes
        if node.target is choose
    }


def candidates(graph: Graph, site: str) -> dict[str, set[Node]]:
    """Returns the nodes that only one candidate needs, for each candidate."""
    labels = sites(graph)[site]
    used = {label: _used(graph, site, label) for label in labels}
    return {
        label: used[label].difference(
            *(used[other] for other in labels if other != label)
        )
        for label in labels
    }


def _used(graph: Graph, site: str, label: str) -> set[Node]:
    """Returns the nodes that are used if a candidate is chosen."""
    used: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op != 'output' and node not in used:
            continue
        chosen = node.target is choose and node.args[0] == site
        used.update([node.kwargs[label]] if chosen else node.all_input_nodes)
    return used


def resolve(graph: Graph, picks: Mapping[str, str]) -> None:
    """Keeps the chosen candidates, and drops nodes of the others."""
    for node in list(graph.nodes):
        if node.target is choose and node.args[0] in picks:
            node.replace_all_uses_with(node.kwargs[picks[node.args[0]]])
            graph.erase_node(node)
    eliminate_dead(graph)


# Measured ####################################################################

_as_written: ContextVar[bool] = ContextVar(
    'torch_gsample_as_written', default=False
)


@contextmanager
def layouts_as_written() -> Iterator[None]:
    """Runs programs in their written form, without a choice.

    Candidates round differently in the last bits, so processes could differ.
    """
    token = _as_written.set(True)
    try:
        yield
    finally:
        _as_written.reset(token)


class Measured:
    """A program that chooses its layouts by measurement.

    All candidates return equal values, so calls may run any of them. It can be
    called from any number of threads.

    Args:
        module (GraphModule): A program with choices.
        lower (Callable): Makes a function of a program; its second argument
            runs the graph.
        settle (Callable): Keeps the chosen candidates.
    """

    def __init__(
        self,
        module: GraphModule,
        lower: Callable[..., Callable[..., Any]],
        settle: Callable[[GraphModule, Mapping[str, str]], None],
    ):
        self._module, self._lower, self._settle = module, lower, settle
        self._lock, self._calls = new_lock(), 0
        self._seconds: list[dict[tuple[str, str], float]] = []
        #: The chosen candidate of each site, and the seconds of each.
        self.decisions: dict[str, tuple[str, dict[str, float]]] = {}
        graph = module.graph
        for site in sites(graph):
            for label, nodes in candidates(graph, site).items():
                for node in nodes:
                    node.meta['candidate'] = site, label
        self._function = lower(copy.deepcopy(module), self._run)
        self._as_written = copy.deepcopy(module)

    def __call__(self, *args: Any) -> Any:
        """Runs the program."""
        function = self._written if _as_written.get() else self._function
        return function(*args)

    @property
    def is_settled(self) -> bool:
        """Whether the choice is made."""
        return bool(self.decisions)

    def forget(self) -> None:
        """Drops values cached for its inputs."""
        functions: list[Any] = [self._function, self.__dict__.get('_written')]
        for function in functions:
            if hasattr(function, 'forget'):
                function.forget()

    @functools.cached_property
    def _written(self) -> Callable[..., Any]:
        """The function of the written form."""
        found = sites(self._as_written.graph)
        picks = {site: labels[0] for site, labels in found.items()}
        self._settle(self._as_written, picks)
        return self._lower(self._as_written)

    def _run(self, module: GraphModule, *args: Any) -> Any:
        with self._lock:
            measures, self._calls = self._calls > 0, self._calls + 1
        clock = _Clock(module)
        out = clock.run(*args)
        with self._lock:
            if measures and not self.decisions:
                self._seconds.append(clock.seconds)
                if len(self._seconds) == _CALLS:
                    self._decide()
        return out

    def _decide(self) -> None:
        picks = {}
        for site, labels in sites(self._module.graph).items():
            seconds = {
                label: min(  # other load only adds time
                    call.get((site, label), 0.0) for call in self._seconds
                )
                for label in labels
            }
            best = min(labels, key=seconds.__getitem__)
            written = labels[0]
            if seconds[best] > _GAIN * seconds[written]:
                best = written
            picks[site] = best
            self.decisions[site] = best, seconds
        self._settle(self._module, picks)
        self._function = self._lower(self._module)

    def report(self) -> str:
        """Describes the choice and the time of each candidate."""
        return '\n'.join(
            f'{site}: {best}, measured {spell(seconds)}'
            for site, (best, seconds) in self.decisions.items()
        )


def spell(seconds: dict[str, float]) -> str:
    """Lists the times of candidates."""
    return ', '.join(f'{k} {v * 1e3:.2f} ms' for k, v in seconds.items())


class _Clock(Interpreter):
    """Runs a program, and sums the seconds of each candidate."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.seconds: dict[tuple[str, str], float] = {}

    def run_node(self, n: Node) -> Any:
        candidate = n.meta.get('candidate')
        if candidate is None:
            return super().run_node(n)
        start = time.perf_counter()
        out = super().run_node(n)
        taken = time.perf_counter() - start
        self.seconds[candidate] = self.seconds.get(candidate, 0.0) + taken
        return out
