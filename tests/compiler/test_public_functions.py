"""Public functions of torch on one tensor are operators that passes know.

The calls are generated: of all functions and methods that can be overridden,
those that take one tensor, and a few numbers where they need more.
"""

import logging
import operator
import subprocess
import sys
import warnings

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn import functional as F
from torch.overrides import get_overridable_functions

from torch_gsample import torch_private
from torch_gsample.compiler.ir import is_pure
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.verify import verify
from torch_gsample.torch_private import dynamo

#: Values, ids and masks: each function gets one of them.
VALUES = torch.linspace(0.1, 0.9, 12).view(3, 4)
IDS = torch.arange(12).view(3, 4) % 5
MASK = IDS > 2
#: More arguments, tried in turn until torch takes them.
MORE = ((), (0,), (1,), (0, 1), ((0, 1),), (2.0,), ((3, 4),), (torch.int64,))
#: What stays as it is, and why.
OPAQUE = {
    'it draws': (
        'bernoulli multinomial poisson rrelu F.alpha_dropout F.dropout '
        'F.dropout1d F.dropout2d F.dropout3d F.feature_alpha_dropout '
        'F.gumbel_softmax F.rrelu .bernoulli .bernoulli_ .cauchy_ '
        '.exponential_ .log_normal_ .multinomial .normal_ '
        '.random_ .uniform_'
    ),
    'it gives its tensor another shape': (
        '.detach_ .resize_ .set_ .squeeze_ .swapaxes_ .swapdims_ .t_ '
        '.transpose_ .unsqueeze_'
    ),
    'its result has another dtype than its tensor': (
        '.eq_ .ge_ .greater_ .greater_equal_ .gt_ .le_ .less_ .less_equal_ '
        '.logical_not_ .lt_ .ne_ .not_equal_'
    ),
    'it takes a constant of several numbers': 'unravel_index',
    'it has no twin that returns a new tensor': (
        '.fill_diagonal_ .polygamma_ .requires_grad_'
    ),
}
#: What has no values, and what Dynamo cannot capture.
OTHERS = {
    *('empty_like', 'F.one_hot', 'corrcoef', 'cov', '.corrcoef', '.cov'),
    *('lobpcg', 'fbgemm_pack_gemm_matrix_fp16', '.share_memory_'),
    *('.to_mkldnn',),
}


def functions():
    """Public functions on tensors by name, and how they are called."""
    found = {}
    for namespace, listed in get_overridable_functions().items():
        prefix = {torch: '', F: 'F.', Tensor: '.'}.get(namespace)
        if prefix is None:
            continue
        for function in listed:
            name = getattr(function, '__name__', '')
            if name.startswith('_') or getattr(namespace, name, None) is None:
                continue
            found[prefix + name] = function
    return found


FUNCTIONS = functions()


def taken_by(name):
    """The first tensor, and more arguments, that a function takes."""
    for tensor in (VALUES, IDS, MASK, VALUES[0], VALUES[:, :3]):
        for more in MORE:
            try:
                out = run(name, tensor.clone(), more)
            except Exception:  # torch does not take these
                continue
            if is_tensors(out):
                return tensor, more
    return None


def run(name, x, more):
    """Calls a function, or a method."""
    if name.startswith('.'):
        return getattr(x, name[1:])(*more)
    return FUNCTIONS[name](x, *more)


def is_tensors(value):
    values = value if isinstance(value, (tuple, list)) else [value]
    return all(isinstance(v, Tensor) for v in values)


def captured(name, tensor, more):
    """The program `y = x.clone(); return f(y), y`, as Dynamo captures it."""
    graph, mode = fx.Graph(), new_mode()
    x = graph.placeholder('x')
    y = graph.call_function(torch.ops.aten.clone.default, (x,))
    if name.startswith('.'):
        call = graph.call_method(name[1:], (y, *more))
    else:
        call = graph.call_function(FUNCTIONS[name], (y, *more))
    with dynamo.examples_of(mode, True):
        x.meta['example_value'] = fake = mode.from_tensor(tensor)
        y.meta['example_value'] = fake.clone()
        value = run(name, y.meta['example_value'], more)
    call.meta['example_value'] = value
    results = [call]
    if isinstance(value, (tuple, list)):
        results = []
        for i, item in enumerate(value):
            results.append(graph.call_function(operator.getitem, (call, i)))
            results[-1].meta['example_value'] = item
    graph.output((*results, y))
    return fx.GraphModule({}, graph)


def new_mode():
    mode = torch_private.FakeTensor.__init__.__globals__['FakeTensorMode']
    return mode(shape_env=ShapeEnv(), static_shapes=True)


@pytest.fixture
def quiet():
    """Silences torch's warnings of deprecated or failing functions."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures('quiet')
def test_they_are_known_and_equal():
    assert assert_known(sorted(FUNCTIONS.keys() - OTHERS)) > 550


def assert_known(names):
    """Checks functions, and counts those that take one tensor."""
    left = {name for names in OPAQUE.values() for name in names.split()}
    opaque, seen = set(), 0
    for name in names:
        found = taken_by(name)
        if found is None:
            continue
        tensor, more = found
        module = captured(name, tensor, more)
        canonicalize(module.graph)
        verify(module.graph)
        calls = [n for n in module.graph.nodes if n.op.startswith('call')]
        if not all(map(is_pure, calls)):
            opaque.add(name)
        if name in left:
            continue
        module.recompile()
        y = tensor.clone()
        want = run(name, y, more)
        want = [*(want if isinstance(want, (tuple, list)) else [want]), y]
        got = module(tensor.clone())
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(
                *(a, b), rtol=0, atol=0, equal_nan=True, msg=name
            )
        seen += 1
    assert sorted(opaque - left) == []
    assert sorted(left.intersection(names) - opaque) == []
    return seen


PATCHED = """
from torch import Tensor
plain = Tensor.__getitem__
Tensor.__getitem__ = lambda x, index: plain(x, index)
from tests.compiler.test_public_functions import assert_known
assert_known(['block_diag', 'cartesian_prod', 'meshgrid', 'atleast_2d'])
"""


def test_a_tensor_is_no_list_where_indexing_is_patched():
    # Which makes of each tensor a sequence, for the rest of the process.
    subprocess.run([sys.executable, '-W', 'ignore', '-c', PATCHED], check=True)
