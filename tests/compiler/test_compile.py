"""``gsample.compile``: seeds, modes, copies, threads and processes."""

import copy
import pickle
import threading
from unittest import mock

import pytest
import torch
import torch.multiprocessing as mp
from torch_geometric.sampler import SamplerOutput

import torch_gsample as gsample
from tests.algorithms.graphs import features
from tests.compiler.programs import A, tensors
from torch_gsample import algorithms
from torch_gsample.compiler import Compiled, compiled
from torch_gsample.rng import make_key, program_scope


def two_hops(A, seeds, fanouts=(3, 2)):
    """Two layers."""
    layers = []
    for k in fanouts:
        layers.append(A[:, seeds].individual_sample(k))
        seeds = layers[-1].row()
    return layers


@gsample.compile
def decorated(A, seeds):
    """A docstring."""
    return two_hops(A, seeds)


def run(program, *args, seed=1):
    with program_scope(make_key(seed)):
        return program(*args)


def assert_same(first, second):
    first, second = tensors(first), tensors(second)
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        if a.is_floating_point():
            torch.testing.assert_close(a, b)
        else:
            assert torch.equal(a, b)


# Seeds #######################################################################


def test_one_compilation_serves_all_sizes(compilations):
    fast = gsample.compile(two_hops, strict=True)
    for size in (9, 1, 0, 23, 39):
        seeds = torch.arange(size)
        assert_same(run(fast, A, seeds), run(two_hops, A, seeds))
        assert '_dynamo_unbacked_indices' not in vars(seeds)
    assert len(compilations) == 1


@pytest.mark.parametrize('first', [0, 1, 40])
def test_sizes_that_dynamo_likes_to_fix_are_no_exception(compilations, first):
    fast = gsample.compile(two_hops)
    for size in (first, 5, 0, 1, 7):
        seeds = torch.arange(size)
        assert_same(run(fast, A, seeds), run(two_hops, A, seeds))
    # As many seeds as nodes are taken for an attribute of these.
    assert len(compilations) == (2 if first == 40 else 1)


def test_seeds_in_dictionaries_and_tuples_are_found(compilations):
    def program(A, seeds, pair, *, more):
        first, second = pair
        ids = torch.cat([seeds['a'], seeds['b'], first, second, more])
        return two_hops(A, ids)

    fast = gsample.compile(program)
    for size in (4, 1, 0, 7):
        ids = torch.arange(size)
        args = A, {'a': ids, 'b': ids + 1}, (ids + 2, ids[:2])
        with program_scope(make_key(1)):
            out = fast(*args, more=ids)
        with program_scope(make_key(1)):
            assert_same(out, program(*args, more=ids))
    assert len(compilations) == 1


def test_attributes_of_nodes_and_edges_are_no_seeds():
    def program(A, seeds, node_type, edge_type):
        A = A.with_value(edge_type.double() + 1)
        assert node_type.shape[0] == A.num_rows
        return A[:, seeds].individual_sample(2), node_type[seeds]

    args = torch.arange(40) % 2, torch.arange(A.num_edges) % 5
    fast = gsample.compile(program)
    for seeds in (torch.arange(5), torch.arange(9)):
        assert_same(run(fast, A, seeds, *args), run(program, A, seeds, *args))


def test_modes_are_compiled_for_themselves(compilations):
    weight = torch.ones(A.num_edges, dtype=torch.float64, requires_grad=True)

    def program(A, seeds):
        return A.with_value(A.values() * weight)[:, seeds].sum(dim=0)

    fast, seeds = gsample.compile(program), torch.arange(5)
    for _ in range(2):
        with torch.no_grad():
            assert not fast(A, seeds).requires_grad
        assert fast(A, seeds).requires_grad
        with torch.inference_mode():
            assert fast(A, seeds).is_inference()
    assert len(compilations) == 3


def test_the_number_of_threads_is_no_mode(compilations):
    fast, threads = gsample.compile(two_hops), torch.get_num_threads()
    expected = run(fast, A, torch.arange(5))
    torch.set_num_threads(threads + 1)
    assert_same(run(fast, A, torch.arange(5)), expected)
    assert len(compilations) == 1


# Compiled code ############################################################


def compared(program, *args):
    """What Dynamo compares at each call of a compiled program."""
    noted = []
    real = compiled.may_change

    def keep(guards):
        noted.extend(g for g, k in zip(guards, real(guards), strict=True) if k)
        return real(guards)

    with mock.patch.object(compiled, 'may_change', keep):
        gsample.compile(program)(A, *args)
    return noted


@pytest.mark.parametrize('program', [two_hops, algorithms.shadow])
def test_guards_compare_changeable_values_only(program):
    noted = compared(program, torch.arange(3), (2, 2))
    names = {guard.name for guard in noted}
    assert {'A', 'A.value', 'seeds'} <= names
    assert not [n for n in names if 'type(' in n or '__import_torch' in n]
    # What would be evaluated in Python, and always holds.
    kinds = {guard.guard_type for guard in noted}
    assert not kinds & {'SHAPE_ENV', 'AUTOGRAD_SAVED_TENSORS_HOOKS'}


def test_relations_of_sizes_are_compared():
    noted = compared(
        lambda A, s, t: A[:, s + t].col_ids, torch.arange(3), torch.arange(3)
    )
    assert 'SHAPE_ENV' in {guard.guard_type for guard in noted}


def test_hooks_of_saved_tensors_are_called():
    fast, saved = gsample.compile(lambda A, s: (A[:, s] ** 2).sum()), []
    values = A.values().clone().requires_grad_()
    matrix = A.with_value(values)

    def pack(tensor):
        saved.append(tensor)
        return tensor

    fast(matrix, torch.arange(5)).backward()
    expected, values.grad = values.grad, None
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = fast(matrix, torch.arange(5))
    out.backward()
    assert saved
    assert torch.equal(values.grad, expected)


STEP = 1


def test_globals_of_a_program_may_change(compilations):
    global STEP

    def program(A, seeds):
        return A[:, seeds + STEP].col_ids

    fast, seeds = gsample.compile(program), torch.arange(5)
    for STEP in (1, 2):
        assert torch.equal(fast(A, seeds), seeds + STEP)
    assert len(compilations) == 2


def test_it_is_a_decorator():
    seeds = torch.arange(5)
    assert_same(run(decorated, A, seeds), run(two_hops, A, seeds))
    assert decorated.__doc__ == 'A docstring.'
    assert decorated.__name__ == 'decorated'
    assert repr(decorated) == 'compile(decorated)'

    class Sampler:
        k = 2

        @gsample.compile(passes=['eliminate_dead'])
        def sample(self, A, seeds):
            return A[:, seeds].individual_sample(self.k)

    assert isinstance(Sampler.sample, Compiled)
    assert Sampler.sample.options == {'passes': ['eliminate_dead']}
    out = run(Sampler().sample, A, seeds)
    assert_same(out, run(Sampler.sample.__wrapped__, Sampler(), A, seeds))


def test_modules_keep_their_parameters_and_gradients():
    x, seeds = features(40), torch.arange(9)
    torch.manual_seed(0)
    module = algorithms.PassSampler(3, 4).double()
    fast, grads = gsample.compile(module), []
    assert list(fast.parameters()) == list(module.parameters())
    for function in (module, fast):
        module.zero_grad()
        first, second = run(function, A, seeds, [3, 2], x)
        ((first.T @ x).square().sum() + (second.T @ x).sum()).backward()
        grads.append([p.grad.clone() for p in module.parameters()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)
    with pytest.raises(AttributeError, match='no attribute'):
        _ = fast.nothing


def test_compilations_of_one_function_do_not_share_their_limit():
    for k in range(1, 12):
        run(gsample.compile(two_hops), A, torch.arange(4), (k,))


def test_graphs_of_other_functions_are_known_in_size():
    """What depends on them alone is computed once: sizes must be fixed."""
    for size in (40, 30, 20):
        B = A.induce(torch.arange(size))
        out = gsample.explain(algorithms.fastgcn, B, torch.arange(3), [4])
        assert '\n^' in out.trace.text


def test_it_is_captured_in_other_compiled_functions():
    fast = gsample.compile(two_hops)
    outer = torch.compile(
        lambda A, s: fast(A, s), backend='eager', fullgraph=True
    )
    torch.manual_seed(1)
    out = outer(A, torch.arange(5))
    torch.manual_seed(1)
    assert_same(out, two_hops(A, torch.arange(5)))


def test_a_graph_that_the_program_changes_is_changed():
    def program(A, seeds):
        A.value.mul_(2)
        out = A[:, seeds].individual_sample(2)
        A.value = A.values() + 1
        return out

    graphs = [A.with_value(A.values().clone()) for _ in range(2)]
    fast, seeds = gsample.compile(program), torch.arange(5)
    for _ in range(2):
        assert_same(
            run(fast, graphs[0], seeds), run(program, graphs[1], seeds)
        )
    torch.testing.assert_close(graphs[0].value, graphs[1].value)


# Copies ######################################################################


def test_a_decorated_function_is_pickled_by_name():
    decorated(A, torch.arange(3))
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated


@pytest.mark.parametrize('copied', [copy.deepcopy, None])
def test_a_copy_compiles_again(copied):
    copied = copied or (lambda fast: pickle.loads(pickle.dumps(fast)))
    torch.manual_seed(0)
    module = algorithms.AsGCN(3).double()
    x, seeds = features(40), torch.arange(9)
    for program, args in ((two_hops, ()), (module, ([8, 8], x))):
        fast = gsample.compile(program, strict=True)
        expected = run(fast, A, seeds, *args)
        other = copied(fast)
        assert other is not fast
        assert other.options == {'strict': True}
        assert fast.is_compiled > other.is_compiled
        assert_same(run(other, A, seeds, *args), expected)


# Threads and processes #######################################################


def test_threads_that_come_first_compile_once(compilations):
    fast, seeds = gsample.compile(two_hops), torch.arange(9)
    start, out = threading.Barrier(6), {}

    def work(i):
        start.wait()
        for _ in range(3):
            out[i] = run(fast, A, seeds[: i + 1], seed=i)

    threads = [threading.Thread(target=work, args=[i]) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compilations) == 1
    for i in range(6):
        assert_same(out[i], run(two_hops, A, seeds[: i + 1], seed=i))


def test_other_threads_do_not_notice_a_compilation():
    """Eager programs draw by their keys while another thread compiles."""
    seeds, out = torch.arange(9), []
    expected = run(two_hops, A, seeds)

    def backend(gm, example_inputs):
        thread = threading.Thread(
            target=lambda: out.append(run(two_hops, A, seeds))
        )
        thread.start()
        thread.join()
        return gm.forward

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert_same(out, [expected])


def child(queue, seeds):
    torch.set_num_threads(1)  # as in the workers of a loader
    queue.put([t.tolist() for t in tensors(run(decorated, A, seeds))])


def test_a_fork_waits_for_compilations():
    """A child would find locks held by threads that it does not have."""
    fast, seeds = gsample.compile(two_hops), torch.arange(9)
    thread = threading.Thread(target=fast, args=[A, seeds])
    context = mp.get_context('fork')
    queue = context.Queue()
    process = context.Process(target=child, args=[queue, seeds])
    thread.start()
    process.start()
    expected = [t.tolist() for t in tensors(run(two_hops, A, seeds))]
    assert queue.get(timeout=300) == expected
    thread.join()
    process.join()


def test_outputs_of_samplers_are_joined_when_they_are_read():
    def program(A, seeds):
        first = A[:, seeds].individual_sample(2)
        second = A[:, first.nodes()].individual_sample(2)
        return gsample.SparseSample.to_sampler_output([first, second])

    fast, seeds = gsample.compile(program), torch.tensor([3, 1])
    with program_scope(make_key(1)):
        want = program(A, seeds)
    with program_scope(make_key(1)):
        out = copy.deepcopy(fast(A, seeds))
    out.metadata = 'mine'
    assert isinstance(out, SamplerOutput)
    for name in ('node', 'row', 'col', 'edge'):
        assert torch.equal(getattr(out, name), getattr(want, name))
    assert out.num_sampled_nodes == want.num_sampled_nodes
    assert out.num_sampled_edges == want.num_sampled_edges
    assert (out.batch, out.metadata) == (None, 'mine')
    twice = fast(A, torch.tensor([1, 1]))
    with pytest.raises(ValueError, match=r"'seeds' must be distinct nodes"):
        twice.node  # noqa: B018 (computes it)
