"""Graphs on disk: ``gsample convert``, ``compact``, ``info``, ``verify``."""

import argparse
import sys
from pathlib import Path
from typing import Any

from torch_gsample.cli import output
from torch_gsample.storage import ChunkedGraph, FeatureFile

_CHUNK = ('start', 'nodes', 'first', 'edges', 'offset')


def convert(args: argparse.Namespace) -> None:
    """Writes edge files, tables or an old graph as a graph on disk.

    Args:
        args (argparse.Namespace): The input, the output and options.

    Raises:
        ValueError: If an option of edge files is used with another input.
    """
    source = args.edges if len(args.edges) > 1 else args.edges[0]
    options = _writing(args)
    data: Any = source
    if args.tables is not None or args.append:
        graph, report = _convert_tables(args, source, options)
        _print_graph(args, graph, report)
        return
    if isinstance(source, str) and Path(source).is_dir():
        if given := _options_of_files(args):
            raise ValueError(
                f'convert: {given[0]} is for edge files; a graph on disk '
                f'stores its own columns and counts (got {source})'
            )
        data = ChunkedGraph(source)
    else:
        options |= {
            'num_nodes': args.num_nodes,
            'columns': args.columns,
            'weight_attr': args.weight,
            'time_attr': args.time,
        }
    _print_graph(args, ChunkedGraph.write(args.graph, data, **options), {})


def _print_graph(
    args: argparse.Namespace, graph: ChunkedGraph, report: dict[str, Any]
) -> None:
    if args.json:
        tables = {'tables': report} if report else {}
        output.print_json({**_summary(graph), **tables})
        return
    print(graph)
    for name, found in report.items():
        if found.get('null') or found.get('dangling'):
            print(
                f'{name}: {found["null"]} null, {found["dangling"]} dangling'
            )


def _writing(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of all that write a graph on disk."""
    chunk = {} if args.chunk is None else {'chunk_bytes': args.chunk}
    return {
        **chunk,
        'memory_limit': args.memory,
        'progress': sys.stderr.isatty(),
        'directories': args.stripe,
    }


def _options_of_files(args: argparse.Namespace) -> list[str]:
    """Returns the options of edge files in the arguments."""
    names = 'num_nodes', 'columns', 'weight', 'time'
    given = [name for name in names if getattr(args, name) is not None]
    return [f'--{name.replace("_", "-")}' for name in given]


def _convert_tables(
    args: argparse.Namespace, path: Any, options: dict[str, Any]
) -> tuple[ChunkedGraph, dict[str, Any]]:
    """Writes or appends tables; returns the graph and a report."""
    given = _options_of_files(args)
    if isinstance(path, list) or given:
        raise ValueError(
            'convert: --tables requires one database or folder, and excludes '
            f'options of edge files (got {given or [path]})'
        )
    # Imports DuckDB, which only tables need.
    from torch_gsample.relational import append_tables, convert_tables

    if args.append:
        if args.tables or args.stripe:
            raise ValueError(
                'convert: --append excludes a manifest and --stripe, as the '
                'folder stores its own'
            )
        folder = append_tables(args.graph, path, memory_limit=args.memory)
    else:
        manifest = args.tables or None
        options['whole_process'] = True
        folder = convert_tables(args.graph, path, manifest, **options)
    return folder.graph, folder.report


def compact(args: argparse.Namespace) -> None:
    """Merges the rows that were appended to tables on disk.

    Args:
        args (argparse.Namespace): The graph and options.
    """
    # Imports DuckDB, which only tables need.
    from torch_gsample.relational import compact_tables

    options = {**_writing(args), 'whole_process': True}
    folder = compact_tables(args.graph, args.output, **options)
    _print_graph(args, folder.graph, folder.report)


def info(args: argparse.Namespace) -> None:
    """Prints counts, degrees and the chunk table.

    Args:
        args (argparse.Namespace): The graph.

    Raises:
        ValueError: If it is a file.
    """
    if Path(args.graph).is_file():
        raise ValueError(
            f'info: the graph must be a folder (got the file {args.graph}); '
            f'gsample verify checks feature files'
        )
    graph = ChunkedGraph(args.graph)
    relations = [_relation(graph, r) for r in graph.meta.relations]
    if args.json:
        output.print_json({**_summary(graph), 'relations': relations})
        return
    print(graph)
    print(f'format: version {graph.meta.version}')
    for directory in graph.meta.directories:
        print(f'directory: {directory}')
    for node_type, count in graph.num_nodes.items():
        print(f'nodes {node_type or ""}: {count:,}')
    for relation in relations:
        name = '-'.join(relation['edge_type'] or '')
        print()
        output.heading(f'edges {name}: {relation["num_edges"]:,}')
        arrays = [f'{k} of {v} bytes' for k, v in relation['bytes'].items()]
        print(f'arrays: {", ".join(arrays)}')
        degrees = [
            [f'{low}' if low >= high else f'{low}-{high}', f'{count:,}']
            for low, high, count in relation['in_degrees']
        ]
        head = ['in-degree', 'nodes']
        output.table(head, degrees, head)
        chunks = [
            [i, *(row[name] for name in _CHUNK)]
            for i, row in enumerate(relation['chunks'])
        ]
        output.table(['chunk', *_CHUNK], chunks, ['chunk', *_CHUNK])


def verify(args: argparse.Namespace) -> int:
    """Checks every byte of a graph or a feature file.

    Args:
        args (argparse.Namespace): The graph or the file.
    """
    problem = None
    kind = FeatureFile if Path(args.graph).is_file() else ChunkedGraph
    try:
        found = kind(args.graph)
        found.verify()
    except ValueError as error:
        problem = str(error)
    if args.json:
        output.print_json({'whole': problem is None, 'problem': problem})
    elif problem is None:
        print(f'{found} is whole')
    else:
        print(f'gsample: {problem}', file=sys.stderr)
    return int(problem is not None)


def _summary(graph: ChunkedGraph) -> dict[str, Any]:
    edges = graph.num_edges.items()
    return {
        'path': str(graph.path),
        'num_nodes': {k or '': n for k, n in graph.num_nodes.items()},
        'num_edges': {'-'.join(k or ''): n for k, n in edges},
        'bytes': graph.num_bytes,
        'version': graph.meta.version,
        'directories': graph.meta.directories,
    }


def _relation(graph: ChunkedGraph, relation: Any) -> dict[str, Any]:
    degrees = graph.degree_histogram(relation).tolist()
    return {
        'edge_type': relation.edge_type,
        'num_edges': relation.num_edges,
        'bytes': {k: v for k, v in relation.widths.items() if v > 0},
        # Lowest and highest degree, and number of nodes in this range.
        'in_degrees': [
            ((1 << bits) >> 1, (1 << bits) - 1, count)
            for bits, count in enumerate(degrees)
            if count > 0
        ],
        'chunks': [
            dict(zip(_CHUNK, row, strict=False))
            for row in relation.chunks.tolist()
        ],
    }
