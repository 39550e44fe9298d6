"""Generated kernels, edge by edge."""

import math

from torch_gsample.codegen.program import Role


def _divide(a, b):
    return a / b if b else math.nan


OPERATIONS = {
    'add': lambda a, b: a + b,
    'sub': lambda a, b: a - b,
    'mul': lambda a, b: a * b,
    'div': _divide,
    'eq': lambda a, b: a == b,
    'ne': lambda a, b: a != b,
    'lt': lambda a, b: a < b,
    'le': lambda a, b: a <= b,
    'gt': lambda a, b: a > b,
    'ge': lambda a, b: a >= b,
    'logical_and': lambda a, b: a and b,
    'logical_or': lambda a, b: a or b,
    'logical_not': lambda a: not a,
    'neg': lambda a: -a,
    'abs': abs,
    'sign': lambda a: (a > 0) - (a < 0),
    'sqrt': math.sqrt,
    'reciprocal': lambda a: _divide(1, a),
    'pow': lambda a, b: a**b,
    'exp': math.exp,
    'log': math.log,
    'sigmoid': lambda a: 1 / (1 + math.exp(-a)),
    'tanh': math.tanh,
    'relu': lambda a: max(a, 0),
    'clamp_min': max,
    'clamp_max': min,
    'maximum': max,
    'minimum': min,
    'where': lambda c, a, b: a if c else b,
    'detach': lambda a: a,
    'cast': lambda a: a,
}
REDUCTIONS = {
    'sum': sum,
    'prod': math.prod,
    'amax': max,
    'amin': min,
}


def edge_map(kernel, operands, num_rows=0, num_threads=0):
    """A kernel is a program here; operands are lists."""
    places = _places(kernel, operands)
    features = range(kernel.features if kernel.wide else 1)
    values = [
        [_value(kernel, operands, kernel.root, e, col, f) for f in features]
        for e, col in enumerate(places)
    ]
    if kernel.reduce is not None:
        belongs = places
        size = num_rows
        if kernel.by is not None:
            belongs = operands[kernel.by]
        else:
            size = len(operands[kernel.pointers]) - 1
        groups = [[] for _ in range(size)]
        for place, value in zip(belongs, values, strict=True):
            groups[place].append(value)
        reduce = REDUCTIONS[kernel.reduce]
        values = [
            [reduce(v[f] for v in group) if group else kernel.fill
             for f in features]
            for group in groups
        ]  # fmt: skip
    return values if kernel.wide else [value for [value] in values]


def _places(kernel, operands):
    """The column of each edge, 0 where columns do not matter."""
    if kernel.pointers is not None:
        indptr = operands[kernel.pointers]
        return [
            col
            for col in range(len(indptr) - 1)
            for _ in range(indptr[col], indptr[col + 1])
        ]
    [count] = {
        len(values)
        for operand, values in zip(kernel.operands, operands, strict=True)
        if operand.role in (Role.EDGE, Role.INDEX)
    }
    return [0] * count


def _value(kernel, operands, node, e, col, f):
    if node.op == 'constant':
        return node.value
    if node.op == 'operand':
        operand = kernel.operands[node.value]
        value = operands[node.value]
        if operand.role == Role.GATHER:
            value = value[operands[operand.index][e]]
        elif operand.role != Role.SCALAR:
            value = value[col if operand.role == Role.COLUMN else e]
        return value[f] if operand.wide else value
    if node.op == 'sum_features':
        return sum(
            _value(kernel, operands, node.args[0], e, col, i)
            for i in range(kernel.features)
        )
    args = [_value(kernel, operands, x, e, col, f) for x in node.args]
    return OPERATIONS[node.op](*args)
