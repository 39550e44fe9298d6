"""Small programs, and the text that a pass makes of them."""

import textwrap

import torch
from torch import fx

from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.verify import verify
from torch_gsample.rng import make_key

aten, gsample = torch.ops.aten, torch.ops.gsample
KEY, STATE = make_key(3), torch.zeros(1, dtype=torch.int64)
INDPTR = torch.tensor([0, 3, 4, 4, 9])
INDICES = torch.tensor([1, 2, 3, 0, 0, 1, 2, 3, 3])
VALUE = torch.linspace(0.1, 0.9, 9)
SEEDS = torch.tensor([3, 0])


class _Examples(fx.Interpreter):
    def run_node(self, n):
        n.meta['example_value'] = value = super().run_node(n)
        return value


def program(function, *inputs):
    """The graph of a function, with what each node gives for inputs."""
    module = fx.symbolic_trace(function)
    _Examples(module).run(*inputs)
    for node in module.graph.nodes:
        node.meta['is_argument'] = node.name == 'seeds'
    return module


def after(rewrite, function, *inputs):
    """The text after a pass, which must not change the results."""
    module = program(function, *inputs)
    rewrite(module.graph)
    verify(module.graph)
    text = ir_text(module.graph)
    module.recompile()
    expected, got = function(*inputs), module(*inputs)
    for a, b in zip(expected, got, strict=True):
        assert torch.equal(a, b)
    inputs_end = text.rindex(': ', 0, text.index('%')) if '%' in text else 0
    return text[text.index('\n', inputs_end) + 1 :] if inputs_end else text


def text(lines):
    return textwrap.dedent(lines).lstrip('\n')
