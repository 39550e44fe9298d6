"""The statements of generated programs: extract, compute, select, next hop.

Each operator takes a program that is being written and three numbers, which
choose its operands among what is known, newest first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Matrix:
    """Known facts of a matrix: equal patterns hold the same edges."""

    name: str
    pattern: str
    rows: str  # the space of its rows: equal ones have equal vectors
    cols: str
    positive: bool = True


@dataclass(frozen=True)
class Vector:
    """A vector with an entry for each item of a space."""

    name: str
    space: str
    positive: bool = True


@dataclass(frozen=True)
class Nodes:
    """Nodes of the graph."""

    name: str
    distinct: bool = True


@dataclass
class Writer:
    """A program that is being written."""

    lines: list[str] = field(default_factory=list)
    known: list[Matrix | Vector | Nodes] = field(default_factory=list)

    def new(self, kind: str, text: str) -> str:
        """Adds a statement and returns the name of its value."""
        name = f'{kind}{len(self.lines) + 1}'
        self.lines.append(f'{name} = {text}')
        return name

    def all(self, kind: type, test: Callable = lambda value: True) -> list:
        """Values of a kind, newest first."""
        known = [v for v in reversed(self.known) if isinstance(v, kind)]
        return [value for value in known if test(value)]


def choose(values, number: int):
    """One of some values, or None: the first one half of the time."""
    if not values:
        return None
    return values[number // 2 % len(values) if number % 2 else 0]


def pick(values, number: int):
    """One of some values, each as likely."""
    return values[number % len(values)]


#: Writes a statement for two or three numbers; False where nothing fits.
Operator = Callable[[Writer, int, int, int], bool | None]
OPERATORS: list[Operator] = []


def operator(weight: int) -> Callable[[Operator], Operator]:
    """Puts an operator into the table so often."""

    def add(write: Operator) -> Operator:
        OPERATORS.extend([write] * weight)
        return write

    return add


# Extract.

GRAPHS = 'A', 'A', 'A', 'B', 'C', 'D'


@operator(4)
def columns(w: Writer, a: int, b: int, c: int) -> None:
    nodes, graph = choose(w.all(Nodes), a), pick(GRAPHS, b)
    name = w.new('M', f'{graph}[:, {nodes.name}]')
    pattern = f'cols {nodes.name}'
    w.known.append(Matrix(name, pattern, 'all', nodes.name))


@operator(1)
def rows(w: Writer, a: int, b: int, c: int) -> None:
    nodes, graph = choose(w.all(Nodes), a), pick(GRAPHS, b)
    name = w.new('M', f'{graph}[{nodes.name}, :]')
    pattern = f'rows {nodes.name}'
    w.known.append(Matrix(name, pattern, nodes.name, 'all'))


@operator(1)
def both(w: Writer, a: int, b: int, c: int) -> None:
    nodes, graph = choose(w.all(Nodes), a), pick(GRAPHS, b)
    call = [f'[{nodes.name}, {nodes.name}]', f'.induce({nodes.name})']
    call = pick(call if nodes.distinct else call[:1], c)
    name = w.new('M', f'{graph}{call}')
    w.known.append(Matrix(name, f'both {name}', nodes.name, nodes.name))


@operator(1)
def mask(w: Writer, a: int, b: int, c: int) -> bool | None:
    if c % 3 == 0:
        name = w.new('M', 'A[:, held]')
        w.known.append(Matrix(name, 'held', 'all', 'held'))
        return None
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    bound = pick(['0.3', f'{M.name}.values().mean()'], b)
    name = w.new('M', f'{M.name}.masked({M.name}.values() > {bound})')
    w.known.append(Matrix(name, name, M.rows, M.cols, M.positive))
    return None


@operator(1)
def compacted(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    name = w.new(
        'M', f'{M.name}.compact({pick(["", "sorted=True", "dim=0"], b)})'
    )
    spaces = (M.rows, name) if b % 3 == 2 else (name, M.cols)
    w.known.append(Matrix(name, name, *spaces, M.positive))
    return None


@operator(4)
def hop(w: Writer, a: int, b: int, c: int) -> None:
    nodes = choose(w.all(Nodes), a)
    name = w.new('M', f'A[:, {nodes.name}].individual_sample({1 + b % 3})')
    w.known.append(Matrix(name, name, 'all', nodes.name))
    frontier(w, 0, c, 0)


# Compute.

UNARY = (
    *('{} ** 2', '{} * 2', '{} / 3', '2 * {}', '1 + {}'),
    *('torch.exp(-{})', 'torch.sqrt({})', 'torch.sigmoid({})', '1 / (1 + {})'),
    *('{}.softmax(dim=0)', '{}.div({}.sum(dim=0), dim=0)'),
    *('{}.div({}.sum(dim=1), dim=1)', 'torch.log1p({})'),
)
SIGNED = '{} - 0.3', '-{}', 'torch.sin({} * 9)', '0.2 - {}'
UNSIGN = 'torch.abs({}) + 0.01', '{}.relu() + 0.01', '{} * {} + 0.01'


@operator(6)
def unary(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    positive = True
    if not M.positive:
        text = pick([*UNSIGN, 'F.leaky_relu({})', '{}.softmax(dim=0)'], b)
        positive = text not in ('F.leaky_relu({})',)
    elif c % 6 == 5:
        text, positive = pick(SIGNED, b), False
    else:
        text = pick(UNARY, b)
    name = w.new('M', text.replace('{}', M.name))
    w.known.append(Matrix(name, M.pattern, M.rows, M.cols, positive))
    return None


@operator(5)
def of_matrices(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    N = choose(w.all(Matrix, lambda N: N.pattern == M.pattern), b)
    sign, positive = pick('+*/-', c), M.positive and N.positive
    if sign == '/' and not N.positive:
        sign = '*'
    name = w.new('M', f'{M.name} {sign} {N.name}')
    positive = positive and sign != '-'
    w.known.append(Matrix(name, M.pattern, M.rows, M.cols, positive))
    return None


@operator(5)
def with_vector(w: Writer, a: int, b: int, c: int) -> bool | None:
    fitting = [
        (M, v, dim)
        for M in w.all(Matrix)
        for v in w.all(Vector)
        for dim, space in ((0, M.cols), (1, M.rows))
        if v.space == space
    ]
    found = choose(fitting, a)
    if found is None:
        return False
    M, v, dim = found
    positive = M.positive and v.positive
    calls = [
        f'{M.name}.mul({v.name}, dim={dim})',
        f'{M.name}.add({v.name}, dim={dim})',
        f'{M.name} * {v.name}.view({"1, -1" if dim == 0 else "-1, 1"})',
    ]
    if v.positive:
        calls.append(f'{M.name}.div({v.name} + 1, dim={dim})')
    name = w.new('M', pick(calls, b))
    w.known.append(Matrix(name, M.pattern, M.rows, M.cols, positive))
    return None


@operator(5)
def reduction(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    dim, name = c % 2, pick('sum mean max degree norm min'.split(), b)
    text = f'{M.name}.{name}(dim={dim})'
    if name == 'norm':
        text = f'{M.name}.norm({1 + c // 2 % 2}, dim={dim})'
    positive = M.positive or name in ('degree', 'norm')
    space = M.cols if dim == 0 else M.rows
    w.known.append(Vector(w.new('v', text), space, positive))
    return None


@operator(2)
def of_vectors(w: Writer, a: int, b: int, c: int) -> bool | None:
    v = choose(w.all(Vector), a)
    if v is None:
        return False
    u = choose(w.all(Vector, lambda u: u.space == v.space), b)
    calls = [f'{v.name} * {u.name}', f'{v.name} + 0.5', f'{v.name} ** 2']
    calls += [f'{v.name} / ({v.name}.sum() + 1)'] if v.positive else []
    positive = v.positive and (u.positive or c % len(calls) != 0)
    name = w.new('v', pick(calls, c))
    w.known.append(Vector(name, v.space, positive))
    return None


@operator(1)
def gathered(w: Writer, a: int, b: int, c: int) -> bool | None:
    v = choose(w.all(Vector, lambda v: v.space == 'all'), a)
    nodes = choose(w.all(Nodes), b)
    if v is None:
        return False
    name = w.new('v', f'{v.name}[{nodes.name}]')
    w.known.append(Vector(name, nodes.name, v.positive))
    return None


# Select.


@operator(6)
def individual(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    given = [str(1 + c % 4)]
    bias = w.all(
        Matrix, lambda N: N.pattern == M.pattern and N.positive
    )  # newest first
    if b % 3 and bias:
        N = choose(bias, b // 3)
        given.append(N.name if b % 3 == 1 else f'{N.name}.values()')
    if c // 4 % 3 == 2:
        given.append('replace=True')
    name = w.new('M', f'{M.name}.individual_sample({", ".join(given)})')
    w.known.append(Matrix(name, name, M.rows, M.cols, M.positive))
    return None


@operator(5)
def collective(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    given = [str(3 + c % 6)]
    bias = w.all(Vector, lambda v: v.space == M.rows and v.positive)
    if b % 3 and bias:
        given.append(choose(bias, b // 3).name)
    if c // 6 % 3 == 2:
        given.append('replace=True')
    name = w.new('M', f'{M.name}.collective_sample({", ".join(given)})')
    w.known.append(Matrix(name, name, name, M.cols, M.positive))
    return None


@operator(2)
def other_selection(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    call = pick(['labor_sample', 'top'], b)
    name = w.new('M', f'{M.name}.{call}({1 + c % 3})')
    w.known.append(Matrix(name, name, M.rows, M.cols, M.positive))
    return None


# Nodes of the next hop.


@operator(5)
def frontier(w: Writer, a: int, b: int, c: int) -> bool | None:
    M = choose(w.all(Matrix), a)
    if M is None:
        return False
    text = pick(['row()', 'nodes()', 'row().unique()'], b)
    w.known.append(Nodes(w.new('n', f'{M.name}.{text}')))
    return None


@operator(1)
def same_nodes(w: Writer, a: int, b: int, c: int) -> None:
    nodes = choose(w.all(Nodes), a)
    text = pick(['.clone()', '.flip(0)'], b)
    name = w.new('n', f'{nodes.name}{text}')
    w.known.append(Nodes(name, nodes.distinct))
