"""Compiles a program and shows the compiler's steps and costs."""

import copy
import operator
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Interpreter, Node

from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.cost import predict_operator
from torch_gsample.compiler.errors import line_of
from torch_gsample.compiler.explanation import Explanation, OperatorTime
from torch_gsample.compiler.ir import (
    SIZE_OPERATORS,
    is_operator,
    may_change,
    placeholders,
)
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.lowering import lower, split_invariant, take_keys
from torch_gsample.compiler.options import Options
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.torch_private import tree_leaves

_ROUNDS = 7
#: Calls in which a compiled program measures its choices, and their seconds.
_WARM_UP, _WARM_UP_SECONDS = 10, 3.0
#: Nodes without work.
_SIZES = SIZE_OPERATORS | {operator.getitem}


def explain(
    program: Callable[..., Any],
    *args: Any,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Explanation:
    """Compiles a program and shows each step of the compiler.

    The program runs a few times to measure it. The state of torch's default
    generator is restored. A program that changes its arguments runs once and
    is not measured.

    Args:
        program (Callable): A function, a module, or a result of
            :func:`torch_gsample.compile`.
        *args (Any): Its arguments.
        options (Dict[str, Any], optional): Compiler options; default: those of
            the compiled program.
        **kwargs (Any): Its keyword arguments.

    Returns:
        Explanation: The text of the program after each pass that changed it;
        the name, reason, time and decisions of each pass; generated sources;
        predicted and measured times. It prints as text, and as a page in
        notebooks.

    Raises:
        CompileError: If the program cannot be captured.
        TypeError: If ``program`` cannot be called, or computes nothing with
            tensors.
        ValueError: If an option is unknown.

    Example:
        >>> import torch
        >>> import torch_gsample as gsample
        >>> def sampler(A, seeds):
        ...     return A[:, seeds].individual_sample(2)
        >>> edge_index = torch.tensor([[1, 1, 2], [0, 2, 0]])
        >>> A = gsample.SparseSample.from_edge_index(edge_index)
        >>> explanation = gsample.explain(sampler, A, torch.tensor([0, 2]))
        >>> [step.name for step in explanation.trace.steps][:2]
        ['canonicalize', 'raise_selections']
    """
    if not isinstance(program, Compiled):
        program = Compiled(program, options=options)
    elif options is not None:
        program = Compiled(program.__wrapped__, options=options)
    with torch.random.fork_rng(devices=[]):
        captured = _Captured(program.options)
        disks = _disks((args, kwargs))
        for disk in disks:
            disk.log_reads()
        program.capture(captured, args, kwargs)
        if not hasattr(captured, 'module'):  # nothing was compiled
            raise TypeError(
                "explain: 'program' must be a function that computes with "
                f'tensors (got {program.name!r})'
            )
        out = Explanation(program.name, captured.trace, captured.module.graph)
        out.reads = '\n'.join(x for disk in disks for x in disk.logged_reads())
        if not _changes_inputs(out.graph):
            _measure(out, captured)
            eager = program.__wrapped__
            out.eager = _median(lambda: eager(*args, **kwargs))
    return out


def _disks(arguments: Any) -> list[Any]:
    """Returns the matrices on disk among the arguments of a program."""
    leaves = tree_leaves(arguments)
    found = [x._disk for x in leaves if isinstance(x, SparseSample)]
    return [disk for disk in found if disk is not None]


def _changes_inputs(graph: Graph) -> bool:
    changed = may_change(graph)
    return any(
        node in changed
        # The state from which keys are drawn is not an argument.
        and not all(is_operator(user) for user in node.users)
        for node in placeholders(graph)
    )


class _Captured:
    """A backend that stores its compiled graphs, and the inputs of a call."""

    def __init__(self, options: dict[str, Any]):
        self.options = Options.read(options)

    def __call__(self, gm: GraphModule, example_inputs: Any) -> Any:
        self.module, self.trace = optimize(gm, self.options)
        self.function = lower(copy.deepcopy(self.module))

        def run(*inputs: Any) -> Any:
            self.inputs = inputs
            return self.function(*inputs)

        return run


def _measure(out: Explanation, captured: _Captured) -> None:
    """Measures the compiled program and its operators."""
    inputs = captured.inputs
    out.compiled = _median(lambda: captured.function(*inputs))
    out.choices = getattr(captured.function, 'report', str)()
    module = copy.deepcopy(captured.module)
    kept = split_invariant(module)
    take_keys(module.graph)
    if kept is not None:
        start = time.perf_counter()
        inputs = (*inputs, *kept(inputs))
        out.once = time.perf_counter() - start
    clocks = [_Clock(module) for _ in range(_ROUNDS)]
    for clock in clocks:
        clock.run(*inputs)
    lines = ir_text(module.graph).splitlines()
    for node, line in zip(module.graph.nodes, lines, strict=True):
        if node in clocks[0].seconds:
            seconds = statistics.median(c.seconds[node] for c in clocks)
            predicted = clocks[0].predicted[node]
            out.operators.append(
                OperatorTime(
                    line,
                    seconds,
                    predicted,
                    line_of(
                        node.meta.get('stack_trace') or '', with_text=True
                    ),
                    getattr(node.target, 'source', ''),
                )
            )


class _Clock(Interpreter):
    """Runs a program, and records the time of its operators."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.seconds: dict[Node, float] = {}
        self.predicted: dict[Node, float] = {}

    def run_node(self, n: Node) -> Any:
        given = self.fetch_args_kwargs_from_env(n)
        start = time.perf_counter()
        out = super().run_node(n)
        seconds = time.perf_counter() - start
        if n.op in ('call_function', 'call_method') and n.target not in _SIZES:
            self.seconds[n] = seconds
            self.predicted[n] = predict_operator(
                n.target, _tensors(given), _tensors(out)
            )
        return out


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in tree_leaves(value) if isinstance(t, Tensor)]


def _median(call: Callable[[], Any]) -> float:
    """Returns the seconds of a call of a program that has made its choices."""
    end = time.perf_counter() + _WARM_UP_SECONDS
    for _ in range(_WARM_UP):
        call()
        if time.perf_counter() > end:
            break
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
