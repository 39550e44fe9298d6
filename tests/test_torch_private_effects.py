"""Effects of torch's private parts that the package relies on."""

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import torch_gsample.ops  # noqa: F401
from torch_gsample import torch_private
from torch_gsample.torch_private import direct, dynamo


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


def test_private_attributes_of_loaders_exist():
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
        size, other = map(dynamo.unknown_size, (like, like))
        # Without a configuration flag, by the fake kernel of an operator.
        node = torch.ops.gsample.unique_nodes(like.long(), 4, False)[0]
    assert dynamo.are_same(size, size + 0)
    assert not dynamo.are_same(size, other)
    assert not isinstance(node.shape[0], int)
    assert dynamo.unknown_size(torch.empty(2)) == 1


def test_a_capture_can_go_on_at_unknown_lengths():
    seen = []

    @torch.compiler.assume_constant_result
    def look(allowed):
        dynamo.capture_unknown_lengths([eager] if allowed else [])
        output = dynamo.tls.current_tx.output
        seen.append(output.shape_env.settings)
        return True

    def eager(gm, example_inputs):
        return gm.forward

    def program(x, allowed):
        look(allowed)
        return x.unique() + 1

    fast, x = torch.compile(program, backend=eager), torch.arange(3)
    for allowed in (False, True):
        torch._dynamo.reset()
        assert fast(x, allowed).tolist() == [1, 2, 3]
    name = 'allow_dynamic_output_shape_ops'
    assert not any(getattr(s, name) for s in seen[:-1])
    assert getattr(seen[-1], name) is True
    assert not torch._dynamo.config.capture_dynamic_output_shape_ops


def test_dynamo_calls_constant_results_while_it_captures():
    seen = []

    @torch_private.constant_result
    def look():
        seen.append(torch.compiler.is_dynamo_compiling())
        return 2

    def program(x):
        return x * look()

    fast = torch.compile(program, backend='eager', fullgraph=True)
    for _ in range(2):
        assert fast(torch.ones(1)).tolist() == [2]
    assert seen == [False]  # traced, it would not be called at all


def test_a_function_runs_only_as_it_was_compiled():
    def program(x, k):
        return x * k, torch.compiler.is_compiling()

    copy = dynamo.own_copy(program)
    options = {'backend': 'eager', 'fullgraph': True, 'dynamic': False}
    fast = torch.compile(copy, **options)
    assert fast(torch.ones(2), 3)[1]
    only = dynamo.only_as_compiled(fast)
    for k, is_compiled in ((3, True), (4, False), (3, True)):
        out = only(torch.ones(2), k)
        assert out[0].tolist() == [k, k]
        assert out[1] is is_compiled


def test_captures_do_not_cache_fake_tensors():
    seen = []

    def look(gm, example_inputs):
        seen.append(torch._guards.detect_fake_mode().cache_enabled)
        return gm.forward

    copy = dynamo.own_copy(lambda x: x + 1)
    function = direct.Direct(torch.compile(copy, backend=look))
    with torch._dynamo.config.patch(fake_tensor_cache_enabled=True):
        assert function(torch.ones(2)).tolist() == [2, 2]
        assert torch._dynamo.config.fake_tensor_cache_enabled
    assert seen == [False]


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('scale', torch.ones(3))

    def forward(self, seeds, values):
        with torch.no_grad(), torch.autocast('cpu'):
            return seeds * self.scale.sum() + values


def test_private_attributes_of_captured_programs_exist():
    torch._dynamo.reset()
    programs, kept, all_guards = [], [], []

    def look(gm, example_inputs):
        programs.append(gm.graph)
        return gm.forward

    def keep(guards):
        chosen = dynamo.may_change(guards)
        all_guards.extend(guards)
        kept.extend(g.name for g, c in zip(guards, chosen, strict=True) if c)
        return chosen

    layer, seeds = Layer(), torch.arange(3)
    vars(seeds).update(dynamo.unknown_length())
    fast = torch.compile(
        dynamo.own_copy(layer.forward.__func__),
        backend=look,
        fullgraph=True,
        options={'guard_filter_fn': keep},
    )
    fast(layer, seeds, torch.ones(1))
    [graph] = programs
    inputs = [node for node in graph.nodes if node.op == 'placeholder']
    names = [dynamo.argument_of(node) for node in inputs]
    assert {'seeds', 'values', None} <= {*names}
    [buffer] = [n for n in inputs if dynamo.is_of_module(n)]
    assert buffer.meta['example_value'].shape == (3,)
    targets = {node.target for node in graph.nodes}
    assert dynamo.SET_GRAD_ENABLED in targets
    called = [getattr(target, '__name__', '') for target in targets]
    for start in (dynamo.ENTERS, dynamo.EXITS):
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
