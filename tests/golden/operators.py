"""What golden tests call of `torch_gsample.ops`: the only file to follow it.

Functions take a graph of `tests.golden.graphs` and return a dictionary of
fields: a tensor for each relation or node type, hop by hop where there are
hops. A homogeneous graph has one relation and one type.
"""

from typing import Any

import torch
from torch import Tensor

from tests.golden.graphs import WIDE, Graph, columns, mixed, some_nodes
from tests.ops.layers import sample_typed_layers
from tests.ops.neighbors import sample_typed
from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(3, 1, 4)
KEYS = torch.cat([make_key(3, 1, batch) for batch in range(3)])


def cumulated(graph: Graph, i: int = 0) -> Tensor:
    csc = columns(graph, i)
    return ops.cumulate_weights(csc.indptr, csc.weight)


def seeds_of(graph: Graph, count: int) -> list[Tensor]:
    """Some nodes of each type; one of the first type comes twice."""
    out = [some_nodes(n, count, i) for i, n in enumerate(graph.sizes.values())]
    out[0] = torch.cat([out[0], out[0][:1]])
    return out


def _arguments(
    graph: Graph, seeds: list[Tensor], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A graph, and its weights and times where options name them."""
    parts = range(len(graph.relations))
    dtypes = options.pop('dtypes', WIDE)
    options = {'key': KEY} | options
    found = [columns(graph, i, dtypes) for i in parts]
    if options.pop('weighted', False):
        options['cum_weight'] = [cumulated(graph, i) for i in parts]
    if options.pop('timed', False):
        options['disjoint'] = True
        options['edge_time'] = [csc.time for csc in found]
        options['seed_time'] = [mixed(s.numel(), 9, 40) for s in seeds]
    indptr = [csc.indptr for csc in found]
    indices = [csc.indices for csc in found]
    if not graph.is_typed:
        for name in ('cum_weight', 'edge_time', 'seed_time'):
            if name in options:
                [options[name]] = options[name]
        return (indptr[0], indices[0], seeds[0]), options
    ids = {name: i for i, name in enumerate(graph.types)}
    names = [edges.name for edges in graph.relations]
    ends = [(ids[src], ids[dst]) for src, _, dst in names]
    return (indptr, indices, ends, [*graph.sizes.values()], seeds), options


def sample_neighbors(
    graph: Graph,
    num_seeds: int,
    fanouts: list[int],
    max_edges: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A sample hop by hop, padded to `max_edges` a relation if given."""
    args, options = _arguments(graph, seeds_of(graph, num_seeds), options)
    if not graph.is_typed:
        args, options = _as_typed(graph, args, options)
    relations = len(graph.relations)
    most = None if max_edges is None else [max_edges] * relations
    out = sample_typed(*args, [fanouts] * relations, max_edges=most, **options)
    fields = out._asdict()
    if max_edges is not None:
        fields['fault'] = False  # there is none: it would have been an error
    return fields


def sample_layers(
    graph: Graph, num_seeds: int, fanouts: list[int], **options: Any
) -> dict[str, Any]:
    """Layers: an item of each field is that of a hop."""
    args, options = _arguments(graph, seeds_of(graph, num_seeds), options)
    if not graph.is_typed:
        args, options = _as_typed(graph, args, options)
    options['key'] = [KEY] * len(fanouts)
    out = sample_typed_layers(
        *args, [fanouts] * len(graph.relations), **options
    )
    # Without trees: a tensor without elements for each type.
    none = [[node[:0] for node in of_hop] for of_hop in out.node]
    return out._asdict() | {'batch': out.batch or none}


def _as_typed(
    graph: Graph, args: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """A homogeneous graph as one with a type and a relation."""
    indptr, indices, seeds = args
    for name in ('cum_weight', 'edge_time', 'seed_time'):
        if name in options:
            options[name] = [options[name]]
    sizes = [*graph.sizes.values()]
    return ([indptr], [indices], [(0, 0)], sizes, [seeds]), options


def sample_columns(
    graph: Graph, k: int, batched: bool = False, **options: Any
) -> dict[str, Tensor]:
    """Edges of some columns, of three batches if they are batched."""
    if options.pop('weighted', False):
        options['cum_weight'] = cumulated(graph)
    if batched:
        options['ptr'] = batches(options['cols'].numel())
    key = KEYS if batched else KEY
    indptr, edge = ops.sample_columns(
        columns(graph).indptr, k, key=key, **options
    )
    return {'indptr': indptr, 'edge': edge}


def batches(size: int) -> Tensor:
    """Where three batches begin; the second one is empty."""
    return torch.tensor([0, size // 3, size // 3, size])


def sample_nodes(graph: Graph, k: int, kind: str, **options: Any) -> Any:
    """Nodes of a graph, for one batch or for three."""
    [size] = graph.sizes.values()
    weight = mixed(size, 11, 9) / 8
    whole = torch.tensor([0, size])
    if kind == 'one':
        return {'node': ops.sample_nodes(size, k, key=KEY, **options)}
    if kind == 'weighted':
        cum_weight = ops.cumulate_weights(whole, weight)
        options['cum_weight'] = cum_weight
        return {'node': ops.sample_nodes(size, k, key=KEY, **options)}
    if kind == 'own':
        ptr = torch.tensor([0, size // 3, size // 2, size])
        out = ops.sample_nodes(size, k, key=KEYS, ptr=ptr, **options)
    else:  # each batch chooses from all nodes
        if kind != 'batches':
            options['cum_weight'] = ops.cumulate_weights(whole, weight)
        out = torch.ops.gsample.sample_nodes(size, k, KEYS, **options)
    return dict(zip(('node', 'ptr'), out, strict=True))


def unique_nodes(
    graph: Graph, count: int, batched: bool, sorted: bool
) -> dict[str, Tensor]:
    [size] = graph.sizes.values()
    ids = mixed(count, 12, size)
    if not batched:
        out = ops.unique_nodes(ids, size, sorted)
        return dict(zip(('node', 'local'), out, strict=True))
    out = ops.unique_nodes(ids, size, sorted, ptr=batches(count))
    return dict(zip(('node', 'local', 'ptr'), out, strict=True))


def slice_cols(graph: Graph, cols: Tensor, **options: Any) -> Any:
    csc = columns(graph)
    return _matrix(ops.slice_cols(csc.indptr, csc.indices, cols, **options))


def mask_columns(graph: Graph) -> dict[str, Tensor]:
    csc = columns(graph)
    out = ops.mask_columns(csc.indptr, csc.indices % 3 > 0)
    return dict(zip(('indptr', 'edge'), out, strict=True))


def slice_rows(
    graph: Graph, rows: Tensor, cols: Tensor | None, batched: bool
) -> dict[str, Tensor]:
    csc, [size] = columns(graph), graph.sizes.values()
    if not batched:
        out = ops.slice_rows(csc.indptr, csc.indices, size, rows, cols)
        return _matrix(out)
    many = torch.arange(4) * size if cols is None else batches(cols.numel())
    out = ops.slice_rows(
        *(csc.indptr, csc.indices, size, rows, cols),
        row_ptr=batches(rows.numel()),
        col_ptr=many,
    )
    return _matrix(out)


def slice_rows_of_parts(graph: Graph, rows: Tensor) -> dict[str, Tensor]:
    """Each batch has columns of its own, side by side in one matrix."""
    csc, [size] = columns(graph), graph.sizes.values()
    out = ops.slice_rows(
        *(csc.indptr, csc.indices, size, rows),
        row_ptr=batches(rows.numel()),
        col_ptr=batches(size),
        whole=False,
    )
    return _matrix(out)


def _matrix(out: Any) -> dict[str, Tensor]:
    return dict(zip(('indptr', 'indices', 'edge'), out, strict=True))


def sample_frontier(graph: Graph, k: int, **options: Any) -> Any:
    """Edges of columns that were read out of a larger graph."""
    csc, [size] = columns(graph), graph.sizes.values()
    count = size // 2
    indptr = csc.indptr[: count + 1]
    if options.pop('weighted', False):
        options['cum_weight'] = ops.cumulate_weights(
            indptr, csc.weight[: int(indptr[-1])]
        )
    if options.pop('timed', False):
        options['edge_time'] = csc.time[: int(indptr[-1])]
        options['column_time'] = mixed(count, 13, 40)
    if options.pop('rooted', False):
        options['root'] = mixed(count, 14, 5)
    out = ops.sample_columns(
        indptr.long(),
        k,
        key=KEY,
        start=csc.indptr[:count] + 5,
        id=torch.arange(count) + 3,
        **options,
    )
    return dict(zip(('indptr', 'edge'), out, strict=True))


def positive_weights(size: int, batched: bool) -> dict[str, Tensor]:
    weight = mixed(size, 15, 4).float() / 8
    if not batched:
        out = ops.formats.positive_weights(weight)
    else:
        out = ops.formats.positive_weights(weight, ptr=batches(size))
    return dict(zip(('index', 'cum_weight', 'ptr'), out, strict=False))


def sum_columns(graph: Graph, width: int | None, turned: bool) -> Tensor:
    """Values are no multiples: sums depend on their order."""
    csc = columns(graph)
    size = csc.indices.numel()
    shape = (size,) if width is None else (size, width)
    value = mixed(size * (width or 1), 16, 1000).view(shape).float() / 7
    perm = torch.arange(size).flip(0) if turned else None
    return ops.sum_columns(csc.indptr, value, perm)


def walk(graph: Graph, kind: str, length: int, **options: Any) -> Any:
    """Walks from some nodes; node2vec's with and without sorted rows."""
    csc = columns(graph)
    [seeds] = seeds_of(graph, 20)
    if options.pop('weighted', False):
        options['cum_weight'] = cumulated(graph)
    if kind == 'random':
        args = csc.indptr, csc.indices, seeds, length
        return ops.random_walk(*args, key=KEY, **options)
    indices = csc.indices
    if options.get('is_sorted'):
        col = torch.arange(csc.indptr.numel() - 1)
        col = col.repeat_interleave(csc.indptr.diff())
        indices = indices[(col * (1 << 20) + indices).argsort(stable=True)]
    args = csc.indptr, indices, seeds, length, 2.0, 0.5
    return ops.node2vec_walk(*args, key=KEY, **options)


def metapath_walk(graph: Graph, path: list[int], **options: Any) -> Any:
    """Walks along relations, each from columns to rows."""
    parts = [columns(graph, i) for i in range(len(graph.relations))]
    dst = graph.relations[path[0]].name[2]
    seeds = some_nodes(graph.sizes[dst], 12)
    return ops.metapath_walk(
        [part.indptr for part in parts],
        [part.indices for part in parts],
        path,
        seeds,
        key=KEY,
        **options,
    )


def forest_fire(graph: Graph, p: float, **options: Any) -> Tensor:
    csc = columns(graph)
    seeds = some_nodes(csc.indptr.numel() - 1, 3)
    return ops.forest_fire(
        csc.indptr, csc.indices, seeds, p, key=KEY, **options
    )


def frontier_walk(graph: Graph, length: int, **options: Any) -> Any:
    csc = columns(graph)
    seeds = some_nodes(csc.indptr.numel() - 1, 5)
    return ops.frontier_walk(
        csc.indptr, csc.indices, seeds, length, key=KEY, **options
    )


def match_edges(graph: Graph) -> Tensor:
    """Columns with rows in the opposite order."""
    csc, size = columns(graph), graph.relations[0].row.numel()
    col = torch.arange(csc.indptr.numel() - 1)
    place = (
        torch.arange(size) + col.repeat_interleave(csc.indptr.diff()) * size
    )
    order = (place - 2 * torch.arange(size)).argsort()
    num_rows = max(graph.sizes.values())
    return ops.match_edges(
        csc.indptr,
        csc.indices,
        num_rows,
        csc.indptr,
        csc.indices[order],
        num_rows,
    )


def has_edges(graph: Graph) -> Tensor:
    """Five nodes in each column, and each column's own first ones."""
    csc = columns(graph)
    n, size = csc.indptr.numel() - 1, max(graph.sizes.values())
    rows = mixed(5 * n, 20, size)
    rows[::5] = csc.indices[csc.indptr[:-1].clamp(max=csc.indices.numel() - 1)]
    ptr = torch.arange(n + 1) * 5
    return ops.has_edges(csc.indptr, csc.indices, ptr, rows)


def negative_sample(graph: Graph, kind: str, **options: Any) -> Tensor:
    [size] = graph.sizes.values()
    ids = mixed(60, 17, 50)
    if kind == 'weighted':
        options['cum_weight'] = ops.cumulate_weights(
            torch.tensor([0, size]), mixed(size, 18, 5) / 8
        )
    if kind == 'timed':
        time = mixed(size, 19, 40)
        options['order'] = time.argsort(stable=True)
        options['order_time'] = time[options['order']]
        options['max_time'] = mixed(60, 20, 40)
    if kind == 'true':
        csc = columns(graph)
        row = torch.arange(size).repeat_interleave(csc.indptr.diff())
        order = (row * (1 << 20) + csc.indices).argsort(stable=True)
        options['anchor'] = mixed(60, 21, size)
        options['anchor'][::3] = 7
        options['indptr'], options['indices'] = csc.indptr, csc.indices[order]
    return ops.negative_sample(ids, size, key=KEY, **options)


def induce_subgraph(graph: Graph, batched: bool) -> Any:
    csc, [size] = columns(graph), graph.sizes.values()
    nodes = some_nodes(size, 40)
    batch = mixed(40, 22, 3).sort().values if batched else None
    out = ops.induce_subgraph(
        csc.indptr, csc.indices, size, nodes, nodes, batch, batch
    )
    return dict(zip(('row', 'col', 'edge'), out, strict=True))


def coo_to_csc(graph: Graph, i: int, index_dtype: Any) -> Any:
    edges = graph.relations[i]
    sizes = graph.sizes[edges.name[0]], graph.sizes[edges.name[2]]
    out = ops.coo_to_csc(edges.row, edges.col, *sizes, index_dtype)
    return dict(zip(('indptr', 'indices', 'perm'), out, strict=True))


def cumulate_weights(graph: Graph, dtype: torch.dtype) -> Tensor:
    csc = columns(graph)
    return ops.cumulate_weights(csc.indptr, csc.weight.to(dtype))


def labor_scale(graph: Graph, k: int) -> Tensor:
    csc = columns(graph)
    return ops.labor.labor_scale(csc.indptr, csc.weight.double() + 1 / 8, k)


def next_keys(count: int) -> Tensor:
    """Keys of draws outside of any program, from torch's generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return torch.cat([ops.next_key() for _ in range(count)])
