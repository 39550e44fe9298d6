"""Each operator of `torch_gsample.ops`, on the graphs that it takes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tests.golden import batch_operators
from tests.golden import operators as op
from tests.golden.graphs import GRAPHS, mixed, some_nodes
from torch_gsample import ops

#: The operator that makes samples, for each graph.
NEIGHBORS = {
    'plain': {},
    'replace': {'replace': True},
    'disjoint': {'disjoint': True},
    'no edges': {'return_edge_id': False, 'call_id': 7},
    'plain@narrow': {'dtypes': (torch.int64, torch.int32)},
    'plain@narrowest': {'dtypes': (torch.int32, torch.int32)},
    'weighted': {'weighted': True},
    'weighted replace': {'weighted': True, 'replace': True},
    'weighted disjoint': {'weighted': True, 'disjoint': True},
    'timed': {'timed': True},
    'timed replace': {'timed': True, 'replace': True},
    'timed last': {'timed': True, 'temporal_strategy': 'last'},
    'timed window': {'timed': True, 'time_window': 9},
    'timed weighted': {'timed': True, 'weighted': True},
    'timed everything': {
        'timed': True,
        'weighted': True,
        'temporal_strategy': 'last',
        'time_window': 20,
        'replace': True,
    },
}
#: Fan-outs for each path of a column: few, all, none, and more than fit in a
#: group of draws.
FANOUTS = {'few': [5, 3], 'all': [-1, 2], 'many': [40, 0], 'one': [1, 1, 1]}
LAYERS = {
    'nodes': {},
    'row': {'frontier': 'row'},
    'frontier': {'return_frontier': True},
    'replace': {'replace': True},
    'weighted': {'weighted': True, 'frontier': 'row'},
    'weighted replace': {'weighted': True, 'replace': True},
    'narrow': {'dtypes': (torch.int32, torch.int32)},
}
ONE_TYPE = {
    'new': {'frontier': 'new'},
    'unseen': {'frontier': 'unseen', 'return_frontier': True},
    'sorted': {'sorted': True},
    'call ids': {'call_id': [5, 2]},
}
TYPES = {
    'disjoint': {'disjoint': True},
    'timed': {'timed': True},
    'timed last': {'timed': True, 'temporal_strategy': 'last'},
    'timed window': {'timed': True, 'weighted': True, 'time_window': 9},
}


def _samples(name: str, cases: dict[str, Callable[[], Any]]) -> None:
    graph = GRAPHS[name]()
    for option, options in NEIGHBORS.items():
        cases[f'sample_neighbors/{name}/{option}'] = partial(
            op.sample_neighbors, graph, 20, [5, 3], **options
        )
        cases[f'sample_neighbors/{name}/padded {option}'] = partial(
            op.sample_neighbors, graph, 9, [5, 3], max_edges=400, **options
        )
    if not graph.is_typed:
        cases[f'sample_batches/{name}/plain'] = partial(
            batch_operators.sample_batches, graph, [5, 3]
        )
        cases[f'sample_layer_batches/{name}/plain'] = partial(
            batch_operators.sample_layer_batches, graph, [5, 3]
        )
    for option, fanouts in FANOUTS.items():
        cases[f'sample_neighbors/{name}/{option}'] = partial(
            op.sample_neighbors, graph, 9, fanouts
        )
        cases[f'sample_layers/{name}/{option}'] = partial(
            op.sample_layers, graph, 9, fanouts
        )
    for option, options in (
        LAYERS | (TYPES if graph.is_typed else ONE_TYPE)
    ).items():
        cases[f'sample_layers/{name}/{option}'] = partial(
            op.sample_layers, graph, 20, [5, 3], **options
        )


def _columns(name: str, cases: dict[str, Callable[[], Any]]) -> None:
    graph = GRAPHS[name]()
    [size] = graph.sizes.values()
    some, many = some_nodes(size, 9), some_nodes(size, 30, 1)
    columns = {
        'plain': {'k': 3},
        'all': {'k': -1, 'cols': some},
        'replace': {'k': 4, 'replace': True},
        'weighted': {'k': 4, 'weighted': True},
        'weighted replace': {'k': 4, 'weighted': True, 'replace': True},
        'columns': {'k': 5, 'cols': many, 'call_id': 3},
        'ids': {'k': 2, 'cols': some, 'id': some + 100},
        'batches': {'k': 3, 'cols': many, 'batched': True},
        'weighted batches': {
            'k': 3,
            'cols': many,
            'batched': True,
            'weighted': True,
        },
    }
    for option, options in columns.items():
        cases[f'sample_cols/{name}/{option}'] = partial(
            op.sample_columns, graph, **options
        )
    frontier = {
        'plain': {},
        'all': {'k': -1},
        'rooted': {'rooted': True, 'relation': 2},
        'weighted': {'weighted': True},
        'weighted replace': {'weighted': True, 'replace': True},
        'timed': {'timed': True, 'time_window': 9},
        'timed last': {'timed': True, 'temporal_strategy': 'last'},
        'timed weighted': {'timed': True, 'weighted': True},
    }
    for option, options in frontier.items():
        cases[f'sample_frontier/{name}/{option}'] = partial(
            op.sample_frontier, graph, **{'k': 4, **options}
        )
    cases[f'mask_columns/{name}'] = partial(op.mask_columns, graph)
    cases[f'slice_cols/{name}'] = partial(op.slice_cols, graph, some)
    for option, cols in (('some', some), ('all', None)):
        for batched in (False, True):
            text = f'{option}{", batches" if batched else ""}'
            cases[f'slice_rows/{name}/{text}'] = partial(
                op.slice_rows, graph, many, cols, batched
            )
    cases[f'slice_rows/{name}/parts'] = partial(
        op.slice_rows_of_parts, graph, many
    )


def _nodes(name: str, cases: dict[str, Callable[[], Any]]) -> None:
    graph = GRAPHS[name]()
    for replace in (False, True):
        for kind in ('one', 'weighted', 'batches', 'own', 'weighted batches'):
            text = f'{kind}{", replace" if replace else ""}'
            cases[f'sample_nodes/{name}/{text}'] = partial(
                op.sample_nodes, graph, 9, kind, replace=replace
            )
    for batched in (False, True):
        for order in (False, True):
            text = f'{"batches" if batched else "one"}'
            text += ', sorted' if order else ''
            cases[f'unique_nodes/{name}/{text}'] = partial(
                op.unique_nodes, graph, 300, batched, order
            )
        text = 'batches' if batched else 'one'
        cases[f'induce_subgraph/{name}/{text}'] = partial(
            op.induce_subgraph, graph, batched
        )
    for kind in ('plain', 'weighted', 'timed', 'true'):
        cases[f'negative_sample/{name}/{kind}'] = partial(
            op.negative_sample, graph, kind
        )
    cases[f'negative_sample/{name}/sources'] = partial(
        op.negative_sample, graph, 'plain', target=False, call_id=3
    )


def _walks(name: str, cases: dict[str, Callable[[], Any]]) -> None:
    graph = GRAPHS[name]()
    walks = {
        'plain': {},
        'restart': {'restart': 0.25, 'call_id': 2},
        'weighted': {'weighted': True},
    }
    for option, options in walks.items():
        cases[f'random_walk/{name}/{option}'] = partial(
            op.walk, graph, 'random', 8, **options
        )
    walks = {
        'plain': {},
        'sorted': {'is_sorted': True},
        'weighted': {'weighted': True},
    }
    for option, options in walks.items():
        cases[f'node2vec_walk/{name}/{option}'] = partial(
            op.walk, graph, 'node2vec', 8, **options
        )
    cases[f'frontier_walk/{name}'] = partial(op.frontier_walk, graph, 40)
    cases[f'match_edges/{name}'] = partial(op.match_edges, graph)
    cases[f'has_edges/{name}'] = partial(op.has_edges, graph)
    cases[f'forest_fire/{name}'] = partial(op.forest_fire, graph, 0.375)


def _formats(name: str, cases: dict[str, Callable[[], Any]]) -> None:
    graph = GRAPHS[name]()
    for dtype in (None, torch.int64):
        cases[f'coo_to_csc/{name}/{dtype}'] = partial(
            op.coo_to_csc, graph, 0, dtype
        )
    for dtype in (torch.float32, torch.float64):
        cases[f'cumulate_weights/{name}/{dtype}'] = partial(
            op.cumulate_weights, graph, dtype
        )
    cases[f'labor_scale/{name}'] = partial(op.labor_scale, graph, 3)
    for width in (None, 3):
        for turned in (False, True):
            text = f'{width}{", permuted" if turned else ""}'
            cases[f'sum_columns/{name}/{text}'] = partial(
                op.sum_columns, graph, width, turned
            )


def cases() -> dict[str, Callable[[], Any]]:
    """Each case by its name, which begins with that of the operator."""
    out: dict[str, Callable[[], Any]] = {}
    for name in GRAPHS:
        _samples(name, out)
    for name in ('small', 'hub'):
        _columns(name, out)
        _nodes(name, out)
        _walks(name, out)
        _formats(name, out)
    typed = GRAPHS['typed']()
    out['coo_to_csc/typed'] = partial(op.coo_to_csc, typed, 3, None)
    out['metapath_walk/typed'] = partial(
        op.metapath_walk, typed, [0, 1, 0, 1, 4]
    )
    out['metapath_walk/typed/restart'] = partial(
        op.metapath_walk, typed, [1, 0], restart=0.5
    )
    for batched in (False, True):
        text = 'batches' if batched else 'one'
        out[f'positive_weights/{text}'] = partial(
            op.positive_weights, 90, batched
        )
    out['random_uniform'] = lambda: ops.random_uniform(
        mixed(50, 30, 40), key=op.KEY, call_id=3
    )
    out['gather_rows'] = lambda: ops.gather_rows(
        torch.arange(640).view(40, 16) / 4, mixed(70, 31, 40)
    )
    out['next_key'] = partial(op.next_keys, 3)
    indptr = torch.cat([torch.tensor([0]), mixed(40, 32, 9).cumsum(0)])
    for dtype in (torch.int32, torch.int64):
        out[f'configuration_model/{dtype}'] = partial(
            ops.configuration_model, indptr, 3, dtype
        )
    for scale in (9, 33):
        out[f'rmat_edges/{scale}'] = partial(
            ops.rmat_edges, scale, 500, [0.5, 0.25, 0.125, 0.125], 1
        )
    return out
