"""Private parts of torch: one folder has them, and torch still has them."""

import ast
import importlib
import inspect
from functools import reduce
from pathlib import Path

import pytest
import torch

from torch_gsample import torch_private

PRIVATE = Path(torch_private.__file__).parent
PACKAGE = PRIVATE.parent
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
    'torch._C._autograd._top_saved_tensors_default_hooks': (
        None,
        'a checkpoint of a part of a fused model computes rows of the model',
    ),
    'torch._C._current_graph_task_id': (
        None,
        'checkpoints of fused models compute other rows the second time',
    ),
    'torch._C._dispatch_has_kernel_for_dispatch_key': (
        None,
        'a build without CUDA is not found before a kernel is missing',
    ),
    'torch._C._dynamo.eval_frame._FrameAction': (
        None,
        'calls of kinds that are not compiled take longer than eager ones',
    ),
    'torch._C._dynamo.eval_frame._FrameExecStrategy': (
        None,
        'calls of kinds that are not compiled take longer than eager ones',
    ),
    'torch._C._dynamo.eval_frame._debug_get_cache_entry_list': (
        None,
        'calls of one operator take longer compiled than eager',
    ),
    'torch._C._dynamo.eval_frame.get_eval_frame_callback': (
        None,
        'calls of one operator take longer compiled than eager',
    ),
    'torch._dynamo.eval_frame': (
        None,
        'a stance of torch does not hold for later calls',
    ),
    'torch.fx._symbolic_trace.is_fx_symbolic_tracing': (
        None,
        'what FX traces is a constant',
    ),
    'torch._C._is_tracing': (None, 'what torch.jit traces is a constant'),
    'torch._C._dynamo.eval_frame.set_code_exec_strategy': (
        None,
        'calls of kinds that are not compiled take longer than eager ones',
    ),
    'torch._C._functorch': (
        None,
        'gradients of an outer transform are not found: they would be 0',
    ),
    'torch._C._functorch.unwrap_if_dead': (
        None,
        'the function that torch.func.vjp returns fails',
    ),
    'torch._C._functorch.is_legacy_batchedtensor': (
        None,
        'is_grads_batched fails without saying what to use',
    ),
    'torch._C._DisableFuncTorch': (
        None,
        'what is kept with a graph is of a transform that has ended',
    ),
    'torch.autograd.forward_ad._set_fwd_grad_enabled': (
        None,
        'forward mode over forward mode would be 0',
    ),
    'torch._C._functorch.is_batchedtensor': (
        None,
        'torch.vmap of our operators fails somewhere else',
    ),
    'torch._C._is_fwd_grad_enabled': (None, 'forward gradients would be 0'),
    'torch._C._jit_resolve_packet': (
        None,
        'canonicalize names no operator of torch: no pass finds its pattern',
    ),
    'torch._C._len_torch_dispatch_stack': (
        None,
        'layers of small batches take as long again for the dispatcher',
    ),
    'torch.Tensor._make_wrapper_subclass': (None, 'no layer is captured'),
    'torch._C._set_grad_enabled': (
        None,
        'a program with no_grad inside gets gradients at the wrong nodes',
    ),
    'torch.compiler._is_compiling_flag': (
        None,
        'torch.export fails at the kernels of a fused model',
    ),
    'torch._dynamo.config.patch': (None, 'a capture takes longer'),
    'torch._dynamo.decorators.mark_unbacked': (
        ('t', 'index'),
        'each number of seeds is compiled',
    ),
    'torch._dynamo.decorators.maybe_mark_dynamic': (None, 'sizes are fixed'),
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
    'torch._dynamo.exc.Unsupported': (
        None,
        'a branch on an unknown length is an error of torch.compile',
    ),
    'torch._dynamo.exc.UserError': (
        ('error_type', 'msg'),
        'a branch on an unknown length is an error of torch.compile',
    ),
    'torch._dynamo.exc.UserErrorType': (
        None,
        'a branch on an unknown length is an error of torch.compile',
    ),
    'torch._dynamo.run': (
        ('fn',),
        'fan-outs beyond the eighth are an error, or all run uncompiled',
    ),
    'torch._dynamo.symbolic_convert.tls': (
        None,
        'torch.compile breaks the graph where a length depends on values',
    ),
    'torch._dynamo.variables.builtin.BUILTIN_TO_TENSOR_RFN_MAP': (
        None,
        'a captured A @ D is D @ A',
    ),
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
    'torch.fx.experimental.proxy_tensor.make_fx': (
        ('f',),
        'idioms as `1 / x` are opaque: no pass goes past them',
    ),
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
    '_dynamo_marked_constant': 'Dynamo traces what it is to call',
    '_dynamo_source': 'the seeds of a program are not found',
    '_expr': 'graphs of other sizes run what was exported for one',
    '_forward_hooks': 'hooks of a layer see the sum of two products',
    '_forward_pre_hooks': 'hooks of a layer see the sum of two products',
    '_is_view': 'levels of layers that return views are not found',
    '_iterator': 'workers that persist are not found after a fork',
    '_make_data_dependent_error': 'a branch on an unknown length is an error',
    '_orig_mod': 'compiled models are fused, in vain',
    '_pin_memory': 'batches are not pinned',
    '_schema': 'passes do not know the arguments of operators',
    '_shape_env': 'capture needs a configuration flag',
    '_version': 'changes in place are not noticed',
}
#: Of other packages: PyG's hooks and stores, what namedtuples have, columns
#: and JVM of Spark, and how CPython frees a lock after a fork.
OTHERS = {
    *('_gateway', '_jc', '_jvm', '_at_fork_reinit'),
    *('_edge_store_dict', '_global_store', '_mapping', '_node_store_dict'),
    *('_aggregate_forward_hooks', '_aggregate_forward_pre_hooks'),
    *('_edge_update_forward_hooks', '_edge_update_forward_pre_hooks'),
    *('_message_forward_hooks', '_message_forward_pre_hooks'),
    *('_propagate_forward_hooks', '_propagate_forward_pre_hooks'),
    *('_to_canonical', '_fields', '_asdict', '_sparse_size'),
    *('_check_input', '_edge_user_args', '_user_args'),
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


def test_one_folder_uses_private_parts_of_torch():
    own, names, attributes = own_names(), set(), set()
    for path in PACKAGE.rglob('*.py'):
        found = uses(ast.parse(path.read_text()), own)
        if path.parent == PRIVATE:
            names |= found[0]
            attributes |= found[1]
        else:
            assert not found[0], path
            assert not found[1] - OTHERS, path
    assert names == set(NAMES)
    assert attributes - OTHERS == set(ATTRIBUTES)


@pytest.mark.parametrize('name', NAMES)
def test_private_names_of_torch_exist(name):
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
