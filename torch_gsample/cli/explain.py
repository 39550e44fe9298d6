"""``gsample explain``."""

import argparse
import ast
import difflib
import inspect
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch_geometric.data import HeteroData

from torch_gsample import SparseSample, algorithms
from torch_gsample import explain as explain_program
from torch_gsample.cli import output
from torch_gsample.cli.open_graph import open_graph
from torch_gsample.storage import ChunkedGraph

#: Default arguments of programs, by name.
_VALUES = {
    'fanouts': [10, 5],
    'k': 10,
    'length': 4,
    'num_walks': 8,
    'num_hops': 1,
    'p': 0.5,
    'q': 2.0,
}
_SEEDS = ('seeds', 'roots', 'outputs')


def explain(args: argparse.Namespace) -> None:
    """Compiles a program for a graph, and shows the compiler's steps.

    Args:
        args (argparse.Namespace): The program, the graph and arguments.
    """
    output.check_output(args.html, ('.html',))
    program = _program(args.program)
    A = _matrix(args.graph)
    seeds = torch.arange(min(args.num_seeds, A.num_cols))
    given = _arguments(args, program, A, seeds)
    try:
        out = explain_program(program, **given)
    except TypeError as error:  # the program's own, by a wrong --arg
        shown = ' '.join(f'--arg {n}={text}' for n, text in args.arg)
        raise TypeError(
            f'explain: {args.program} must run with these arguments (got '
            f'{shown or "none"}): {error}'
        ) from error
    if args.html is not None:
        out.to_html(args.html)
    if args.json:
        steps = [
            {'name': s.name, 'seconds': s.seconds, 'text': s.text}
            for s in out.trace.steps
        ]
        seconds = {
            'eager': out.eager,
            'compiled': out.compiled,
            'once': out.once,
        }
        output.print_json(
            {
                'program': out.name,
                'captured': out.trace.captured,
                'steps': steps,
                'seconds': seconds,
                'html': args.html,
            }
        )
    elif args.html is not None:
        print(f'written to {args.html}')
    else:
        print(str(out), end='')


def programs() -> dict[str, Callable[..., Any]]:
    """Returns the algorithms with known arguments."""
    named = {n: getattr(algorithms, n) for n in algorithms.__all__}
    known = {'A', *_SEEDS, *_VALUES}
    return {
        name: value
        for name, value in named.items()
        if inspect.isfunction(value)
        and _required(value) <= known
        and inspect.signature(value).parameters['A'].annotation is SparseSample
    }


def _required(program: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(program).parameters.values()
    return {p.name for p in parameters if p.default is p.empty}


def _program(name: str) -> Callable[..., Any]:
    if ':' not in name:
        if name not in algorithms.__all__:
            near = difflib.get_close_matches(name, algorithms.__all__, 1)
            hint = f': did you mean {near[0]!r}?' if near else ''
            raise ValueError(
                f'explain: the program must be module:function or one of '
                f'{", ".join(programs())} (got {name!r}{hint})'
            )
        return getattr(algorithms, name)
    module, _, attribute = name.partition(':')
    sys.path.insert(0, os.getcwd())
    found = getattr(import_module(module), attribute, None)
    if not callable(found):
        raise ValueError(
            f'explain: {module} must have a function {attribute!r} (got '
            f'{type(found).__name__})'
        )
    return found


def _matrix(name: str) -> SparseSample:
    """Returns the edges of all types of a graph as one matrix."""
    with open_graph(name) as graph:
        if isinstance(graph, ChunkedGraph):
            raise ValueError(
                f'{name}: programs require a graph in memory: a .pt file, '
                f'debian or gcc'
            )
        if isinstance(graph, HeteroData):
            graph = graph.to_homogeneous()
        size = graph.num_nodes
        return SparseSample.from_edge_index(graph.edge_index, num_nodes=size)


def _arguments(
    args: argparse.Namespace,
    program: Callable[..., Any],
    A: SparseSample,
    seeds: torch.Tensor,
) -> dict[str, Any]:
    """Returns the arguments of a program."""
    parameters = list(inspect.signature(program).parameters)
    values: dict[str, Any] = {**_VALUES, **dict.fromkeys(_SEEDS, seeds)}
    if ':' in args.program:  # a user's, with any names
        values.update(zip(parameters[:2], (A, seeds), strict=False))
    values['A'] = A
    for name, text in args.arg:
        if name not in parameters:
            raise ValueError(
                f'explain: {args.program} takes {", ".join(parameters)} (got '
                f'--arg {name}={text})'
            )
        try:
            values[name] = ast.literal_eval(text)
        except (SyntaxError, ValueError) as error:
            raise ValueError(
                f'explain: the value of {name} must be a number, a string, '
                f'or a list of them (got {text!r})'
            ) from error
    required = _required(program)
    missing = [n for n in parameters if n in required and n not in values]
    if missing:
        raise ValueError(
            f'explain: {args.program} needs --arg {missing[0]}=...; for '
            f'tensors, write a function of the graph and the seeds, and pass '
            f'module:function'
        )
    given = {name for name, _ in args.arg}
    wanted = required | given | ({'A'} & set(parameters))
    return {name: values[name] for name in parameters if name in wanted}
