"""Graphs and checks that the tests of the algorithms share."""

import ast
import inspect
import math
import textwrap

import torch

from torch_gsample import SparseSample
from torch_gsample.rng import make_key, program_scope


def undirected(pairs, num_nodes, **kwargs) -> SparseSample:
    u, v = torch.tensor(sorted(pairs)).T
    edge_index = torch.stack([torch.cat([u, v]), torch.cat([v, u])])
    return SparseSample.from_edge_index(
        edge_index, num_nodes=num_nodes, **kwargs
    )


def random_graph(num_nodes=30, degree=4.0, seed=0) -> SparseSample:
    """Connected: a path and random edges, no duplicates."""
    generator = torch.Generator().manual_seed(seed)
    p = degree / num_nodes
    draws = torch.rand(num_nodes, num_nodes, generator=generator)
    pairs = {(i, i + 1) for i in range(num_nodes - 1)}
    pairs |= {
        (i, j)
        for i in range(num_nodes)
        for j in range(i + 1, num_nodes)
        if draws[i, j] < p
    }
    return undirected(pairs, num_nodes)


def neighbors(A) -> dict[int, set[int]]:
    """The out-neighbours of each node."""
    out = {v: set() for v in range(A.num_rows)}
    for u, v in zip(*A.to_edge_index().tolist(), strict=True):
        out[u].add(v)
    return out


def body_lines(function) -> int:
    """Lines of code of a function: no docstring, comments, blank lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    body = tree.body[bool(ast.get_docstring(tree)) :]
    lines = set()
    for node in body:
        lines |= set(range(node.lineno, node.end_lineno + 1))
    source = textwrap.dedent(inspect.getsource(function)).splitlines()
    code = [source[i - 1].strip() for i in sorted(lines)]
    return sum(bool(line) and not line.startswith('#') for line in code)


def chi_square_p(observed, expected) -> float:
    """The probability of counts at least as far from what is expected."""
    from scipy.stats import chi2

    x = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(chi2.sf(x, len(observed) - 1))


def within_4_standard_errors(samples, truth) -> bool:
    """Whether the mean of samples (dim 0) may be the truth."""
    samples = samples.double()
    error = samples.std(0) / math.sqrt(samples.shape[0])
    return bool(((samples.mean(0) - truth).abs() <= 4 * error + 1e-9).all())


def dense_ppr(A, alpha):
    """All personalised PageRanks, a column each, by a dense solve."""
    dense = A.to_dense().double()
    total = dense.sum(0)
    step = torch.where(total > 0, dense / total.clamp(min=1e-300), 0)
    step += torch.diag((total == 0).double())
    eye = torch.eye(A.num_cols, dtype=torch.float64)
    return torch.linalg.solve(eye - (1 - alpha) * step, alpha * eye)


def flat(out):
    """All tensors in the result of a program."""
    if isinstance(out, torch.Tensor):
        return [out]
    if isinstance(out, SparseSample):
        edges = *out.edges(), out.edge_id
        return [*edges, out.values(), out.nodes()]
    return [t for item in out for t in flat(item)]


def run(program, seed=0):
    with program_scope(make_key(seed)):
        return flat(program())


def same(a, b) -> bool:
    return len(a) == len(b) and all(map(torch.equal, a, b))
