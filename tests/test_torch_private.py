"""Private parts of torch: one file has them, and torch still has them."""

import ast
import importlib
import inspect
from functools import reduce
from pathlib import Path

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from torch_gsample import torch_private

PACKAGE = Path(torch_private.__file__).parent
#: What the package uses, the first parameters where Python knows them, and
#: what breaks without it.
NAMES = {
    'torch._C._AutoDispatchBelowAutograd': (
        None,
        'features of small batches take longer than their samples',
    ),
    'torch._C.DisableTorchFunctionSubclass': (
        None,
        'the rows of fused models call themselves without end',
    ),
    'torch._C._disabled_torch_function_impl': (
        None,
        'edges made of those of a batch would have its blocks, too',
    ),
    'torch._C._are_functorch_transforms_active': (
        None,
        'torch.func gets wrong gradients of our operators without an error',
    ),
    'torch._C._current_graph_task_id': (
        None,
        'checkpoints of fused models compute other rows the second time',
    ),
    'torch._C._dispatch_has_kernel_for_dispatch_key': (
        None,
        'a build without CUDA is not found before a kernel is missing',
    ),
    'torch._C._functorch.is_batchedtensor': (
        None,
        'torch.vmap of our operators fails somewhere else',
    ),
    'torch._C._is_fwd_grad_enabled': (
        None,
        'forward-mode gradients would be zero',
    ),
    'torch._C._jit_resolve_packet': (
        None,
        'canonicalize names no operator of torch: no pass finds its pattern',
    ),
    'torch._C._len_torch_dispatch_stack': (
        None,
        'layers of small batches take as long again for the dispatcher',
    ),
    'torch._C._set_grad_enabled': (
        None,
        'a program with no_grad inside gets gradients at the wrong nodes',
    ),
    'torch._dynamo.decorators.mark_unbacked': (
        ('t', 'index'),
        'each number of seeds is compiled',
    ),
    'torch._dynamo.exc.BackendCompilerFailed': (
        None,
        'an error of a pass reads as one of the program',
    ),
    'torch._dynamo.exc.FailOnRecompileLimitHit': (
        None,
        'too many compilations have no advice',
    ),
    'torch._dynamo.exc.TorchDynamoException': (
        None,
        'what cannot be captured has no advice',
    ),
    'torch._dynamo.exc.TorchRuntimeError': (
        None,
        'an error of the program reads as one of the compiler',
    ),
    'torch._dynamo.source.GlobalSource': (
        ('global_name',),
        'guards of modules are compared at each call: calls are slower',
    ),
    'torch._dynamo.source.LocalSource': (
        ('local_name',),
        'the seeds of a program are not found: no super-batches',
    ),
    'torch._dynamo.source.TypeSource': (
        ('base',),
        'guards of classes are compared at each call: calls are slower',
    ),
    'torch._dynamo.variables.builtin': (None, 'a captured A @ D is D @ A'),
    'torch._library.fake_impl.allocate_size': (
        ('shape_env',),
        'capture needs a configuration flag',
    ),
    'torch._ops.OpOverload': (None, 'passes find no operator'),
    'torch._ops.OpOverloadPacket': (None, 'passes find no operator'),
    'torch._subclasses.fake_tensor.FakeTensor': (
        None,
        'passes have no examples of what they add',
    ),
    'torch._utils.ExceptionWrapper': (
        ('exc_info', 'where'),
        'errors of workers lose their traceback',
    ),
    'torch.autograd.forward_ad._current_level': (
        None,
        'forward-mode gradients would be zero',
    ),
    'torch.autograd.profiler._is_profiler_enabled': (
        None,
        'batches have no ranges in profiles',
    ),
    'torch.cuda._is_in_bad_fork': (None, 'a forked process hangs on a GPU'),
    'torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode': (
        None,
        'canonicalize fails where a layout depends on a size',
    ),
    'torch.fx.experimental.symbolic_shapes.guard_or_false': (
        ('a',),
        'checks of sizes cannot be captured',
    ),
    'torch.ops.aten._assert_scalar.default': (
        None,
        'assertions stay in programs, and hinder passes',
    ),
    'torch.utils._python_dispatch.TorchDispatchMode': (
        None,
        'memory budgets are not measured',
    ),
    'torch.utils._pytree.tree_leaves': (('tree',), 'nothing is found nested'),
    'torch.utils._pytree.tree_map': (
        ('func', 'tree'),
        'fused models see no tensors in lists and dicts',
    ),
    'torch.utils._pytree.tree_map_only': (
        ('type_or_types_or_pred', 'func', 'tree'),
        'values for a GPU are not pinned',
    ),
    'torch.utils.data.dataloader._SingleProcessDataLoaderIter': (
        ('loader',),
        'each batch takes 6 us longer, for a range of no profile',
    ),
    'torch.utils.data.DataLoader._get_iterator': (
        ('self',),
        'features are joined to samples twice, as by PyG',
    ),
}
#: Attributes of torch's objects, and what breaks without them.
ATTRIBUTES = {
    '_backward_hooks': 'hooks of a layer see the sum of two products',
    '_backward_pre_hooks': 'hooks of a layer see the sum of two products',
    '_collate_fn': 'to end workers that persist takes 5 seconds for each',
    '_compiled_call_impl': 'compiled models are fused, in vain',
    '_dynamo_source': 'the seeds of a program are not found',
    '_forward_hooks': 'hooks of a layer see the sum of two products',
    '_forward_pre_hooks': 'hooks of a layer see the sum of two products',
    '_is_view': 'levels of layers that return views are not found',
    '_iterator': 'workers that persist are not found after a fork',
    '_orig_mod': 'compiled models are fused, in vain',
    '_pin_memory': 'batches are not pinned',
    '_schema': 'passes do not know the arguments of operators',
    '_shape_env': 'capture needs a configuration flag',
    '_version': 'changes in place are not noticed',
}
#: Of other packages: PyG's hooks and stores, and what namedtuples have.
OTHERS = {
    *('_edge_store_dict', '_global_store', '_mapping', '_node_store_dict'),
    *('_aggregate_forward_hooks', '_edge_update_forward_hooks'),
    *('_message_forward_hooks', '_message_forward_pre_hooks'),
    *('_propagate_forward_hooks', '_propagate_forward_pre_hooks'),
    *('_to_canonical', '_fields', '_asdict', '_sparse_size'),
}


def is_private(path):
    """Whether a name of torch is not for users."""
    parts = path.split('.')
    return parts[0] == 'torch' and (
        path.startswith('torch.fx.experimental')
        or any(p.startswith('_') and not p.endswith('__') for p in parts)
    )


def uses(tree, own):
    """Private names of torch in a file, and attributes that are not our own.

    Args:
        tree (ast.Module): The file.
        own (Set[str]): Names that the package sets.
    """
    names, attributes, aliases, inner = set(), set(), {}, set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                path = f'{node.module}.{alias.name}'
                aliases[alias.asname or alias.name] = path
                names |= {path} if is_private(path) else set()
        elif isinstance(node, ast.Import):
            names |= {a.name for a in node.names if is_private(a.name)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node not in inner:
            inner.update(ast.walk(node))
            first, *rest = ast.unparse(node).split('.')
            path = '.'.join([aliases.get(first, first), *rest])
            if is_private(path) and not is_private(aliases.get(first, '')):
                names.add(path)
            elif path.partition('.')[0] not in ('self', 'cls', 'torch'):
                attributes.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            attributes |= {node.value} & {*ATTRIBUTES}
    attributes = {a for a in attributes if a[:1] == '_' and a[:2] != '__'}
    return names, (attributes - own) | (attributes & {*ATTRIBUTES})


def own_names():
    """Names that files of the package define or set."""
    found = set()
    for path in PACKAGE.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                stored = isinstance(node.ctx, ast.Store)
                found |= {getattr(node, 'id', '')} if stored else set()
                found |= {getattr(node, 'attr', '')} if stored else set()
    return found


def test_one_file_uses_private_parts_of_torch():
    own, private = own_names(), Path(torch_private.__file__)
    for path in PACKAGE.rglob('*.py'):
        names, attributes = uses(ast.parse(path.read_text()), own)
        if path == private:
            assert names == set(NAMES)
            assert attributes - OTHERS == set(ATTRIBUTES)
        else:
            assert not names, path
            assert not attributes - OTHERS, path


@pytest.mark.parametrize('name', NAMES)
def test_torch_has_what_the_package_uses(name):
    parameters, breaks = NAMES[name]
    parts, at = name.split('.'), 1
    found = torch
    while at < len(parts):
        path = '.'.join(parts[: at + 1])
        try:
            found = importlib.import_module(path)
        except ImportError:
            break
        at += 1
    missing = f'torch {torch.__version__} has no {name}: {breaks}'
    try:
        found = reduce(getattr, parts[at:], found)
    except AttributeError:
        pytest.fail(missing)
    if parameters is not None:
        known = tuple(inspect.signature(found).parameters)
        assert known[: len(parameters)] == parameters, missing


# What they do ################################################################


def test_operators_have_schemas():
    add = torch.ops.aten.add.Tensor
    assert torch_private.schema_of(add).arguments[0].name == 'self'
    assert torch_private.schema_of(len) is None
    assert torch_private.overload_name('add', (torch.ones(1), 2), {}) in (
        *('Tensor', 'Scalar'),
    )
    with pytest.raises(RuntimeError):
        torch_private.overload_name('add', ('a',), {})
    assert torch_private.has_kernel('aten::add.Tensor', 'CPU')
    assert not torch_private.has_kernel('gsample::next_key', 'XLA')


def test_changes_in_place_are_counted():
    tensor = torch.zeros(2)
    before = torch_private.version_of(tensor)
    tensor.add_(1)
    assert torch_private.version_of(tensor) == before + 1


def test_operators_below_autograd_have_no_gradients():
    x = torch.ones(2, requires_grad=True)
    with torch_private.below_autograd():
        assert (x * 2).grad_fn is None
    assert (x * 2).grad_fn is not None


def test_transforms_are_seen():
    assert not torch_private.is_transformed()
    seen = []

    def look(x):
        reached = torch_private.is_reached_by_transform(x)
        seen.append((torch_private.is_transformed(), reached))
        return x

    torch.vmap(look)(torch.ones(2))
    torch.func.grad(look)(torch.tensor(1.0))
    torch.func.jvp(look, (torch.ones(1),), (torch.ones(1),))
    assert seen == [(True, True)] * 3


def test_loaders_have_what_is_read():
    loader = torch.utils.data.DataLoader([1, 2])
    assert torch_private.iterator_of(loader) is None
    assert torch_private.pins_memory(iter(loader)) is False
    iterator = torch_private.new_iterator(loader)
    assert iterator._collate_fn is loader.collate_fn
    with torch.autograd.profiler.profile() as seen:
        assert next(iterator).tolist() == [1]
    assert next(iterator).tolist() == [2]
    assert iterator._num_yielded == 2
    with pytest.raises(StopIteration):
        next(iterator)
    assert iterator._num_yielded == 2
    assert any('__next__' in event.name for event in seen.function_events)
    assert torch_private.is_cuda_lost() is False
    with torch.autograd.profiler.profile():
        assert torch_private.is_profiling()


def test_sizes_of_fake_tensors_are_unknown():
    mode = torch_private.FakeTensor.__init__.__globals__['FakeTensorMode']
    with mode(shape_env=ShapeEnv()):
        like = torch.empty(2)
        size, other = map(torch_private.unknown_size, (like, like))
        # Without a configuration flag, by the fake kernel of an operator.
        node = torch.ops.gsample.unique_nodes(like.long(), 4, False)[0]
    assert torch_private.are_same(size, size + 0)
    assert not torch_private.are_same(size, other)
    assert not isinstance(node.shape[0], int)
    assert torch_private.unknown_size(torch.empty(2)) == 1


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('scale', torch.ones(3))

    def forward(self, seeds, values):
        with torch.no_grad(), torch.autocast('cpu'):
            return seeds * self.scale.sum() + values


def test_captured_programs_have_what_passes_read():
    torch._dynamo.reset()
    programs, kept, all_guards = [], [], []

    def look(gm, example_inputs):
        programs.append(gm.graph)
        return gm.forward

    def keep(guards):
        chosen = torch_private.may_change(guards)
        all_guards.extend(guards)
        kept.extend(g.name for g, c in zip(guards, chosen, strict=True) if c)
        return chosen

    layer, seeds = Layer(), torch.arange(3)
    vars(seeds).update(torch_private.unknown_length())
    fast = torch.compile(
        torch_private.own_copy(layer.forward.__func__),
        backend=look,
        fullgraph=True,
        options={'guard_filter_fn': keep},
    )
    fast(layer, seeds, torch.ones(1))
    [graph] = programs
    inputs = [node for node in graph.nodes if node.op == 'placeholder']
    names = [torch_private.argument_of(node) for node in inputs]
    assert {'seeds', 'values', None} <= {*names}
    [buffer] = [n for n in inputs if torch_private.is_of_module(n)]
    assert buffer.meta['example_value'].shape == (3,)
    targets = {node.target for node in graph.nodes}
    assert torch_private.SET_GRAD_ENABLED in targets
    called = [getattr(target, '__name__', '') for target in targets]
    for start in (torch_private.ENTERS, torch_private.EXITS):
        assert any(name.startswith(start) for name in called)
    assert len(kept) < len(all_guards)
    assert 'seeds' in kept
    assert not [name for name in kept if '__import_torch' in name]
    [fake] = [
        node.meta['example_value']
        for node, name in zip(inputs, names, strict=True)
        if name == 'seeds'
    ]
    assert isinstance(fake.shape[0], torch.SymInt)
