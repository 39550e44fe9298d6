"""Super-batched programs as text."""

import copy

import torch

from tests.compiler import programs
from tests.compiler.golden import (
    INDICES,
    INDPTR,
    SEEDS,
    STATE,
    VALUE,
    aten,
    gsample,
    program,
    text,
)
from torch_gsample import algorithms
from torch_gsample.compiler.backend import note_sources
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.super_batch import super_batch
from torch_gsample.compiler.pipeline import run_passes
from torch_gsample.rng import make_key, program_scope


def asked(graph):
    """Says that batches differ in the seeds."""
    for node in graph.nodes:
        if node.op == 'placeholder':
            node.meta['batched'] = node.name in ('seeds', 'l_seeds_')
    return graph


def rewritten(function, *inputs):
    module = program(function, *inputs)
    notes = super_batch(asked(module.graph))
    module.recompile()
    return module, notes


def test_a_slice_of_several_batches():
    def f(indptr, indices, seeds):
        out = gsample.slice_cols.default(indptr, indices, seeds)
        return (out[1],)

    module, notes = rewritten(f, INDPTR, INDICES, SEEDS)
    assert notes == ['several batches run together']
    assert ir_text(module.graph) == text("""
        indptr: int64[5]
        indices: int64[9]
        seeds: int64[2]
        batch_ptr: int64[2]
        %4 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %5 = getitem(%4, 0): int64[3]
        %6 = getitem(%4, 1): int64[8]
        %7 = !ptr_of_pointers(%5, batch_ptr): int64[2]
        %8 = !lengths(%7): NoneType
        %9 = !split(%6, %8): NoneType
        return (%9)
    """)
    [parts] = module(INDPTR, INDICES, SEEDS, torch.tensor([0, 1, 1, 2]))
    assert [part.tolist() for part in parts] == [
        [0, 1, 2, 3, 3],
        [],
        [1, 2, 3],
    ]


def test_a_layer_of_several_batches():
    def f(indptr, indices, value, state, seeds):
        key = gsample.next_key.default(state)
        out = gsample.sample_columns.default(indptr, 2, key, cols=seeds)
        rows = aten.index_select.default(indices, 0, out[1])
        local = gsample.unique_nodes.default(rows, 4)
        value = aten.index_select.default(value, 0, out[1])
        return out[0], local[1], local[0], value, seeds

    module, _ = rewritten(f, INDPTR, INDICES, VALUE, STATE, SEEDS)
    assert ir_text(module.graph) == text("""
        indptr: int64[5]
        indices: int64[9]
        value: float32[9]
        state: int64[1]
        seeds: int64[2]
        batch_ptr: int64[2]
        %6 = !current_program(): 2 parts
        %7 = getitem(%6, 0): int64[1, 3]
        %8 = getitem(%6, 1): size
        %9 = gsample.sample_columns(indptr, 2, %7, %8, cols=seeds, \
ptr=batch_ptr): 2 parts
        %10 = getitem(%9, 0): int64[3]
        %11 = getitem(%9, 1): int64[4]
        %12 = !ptr_of_pointers(%10, batch_ptr): int64[2]
        %13 = aten.index_select(indices, 0, %11): int64[4]
        %14 = gsample.unique_nodes(%13, 4, False, %12): 3 parts
        %15 = getitem(%14, 0): int64[1]
        %16 = getitem(%14, 1): int64[4]
        %17 = getitem(%14, 2): int64[2]
        %18 = aten.index_select(value, 0, %11): float32[4]
        %19 = !lengths(batch_ptr): NoneType
        %20 = !split_pointers(%10, %19, %12): NoneType
        %21 = !lengths(%12): NoneType
        %22 = !split_positions(%16, %21, %17): NoneType
        %23 = !lengths(%17): NoneType
        %24 = !split(%15, %23): NoneType
        %25 = !split(%18, %21): NoneType
        %26 = !split(seeds, %19): NoneType
        return (%20, %22, %24, %25, %26)
    """)
    before = ir_text(module.graph)
    assert super_batch(module.graph) is None  # nothing is left to do
    assert ir_text(module.graph) == before
    with program_scope(torch.cat([make_key(0), make_key(1)])):
        out = module(INDPTR, INDICES, VALUE, STATE, SEEDS, torch.arange(3))
    for part, batch in zip(zip(*out, strict=True), (0, 1), strict=True):
        indptr, local, node, value, seeds = part
        with program_scope(make_key(batch)):
            key = gsample.next_key(STATE) * 0 + make_key(batch)
        want = gsample.sample_columns(INDPTR, 2, key, cols=SEEDS[batch:][:1])
        assert torch.equal(indptr, want[0])
        assert torch.equal(node[local], INDICES[want[1]])
        assert torch.equal(value, VALUE[want[1]])
        assert torch.equal(seeds, SEEDS[batch:][:1])


def test_nodes_of_several_batches_are_drawn_where_each_would_be():
    def f(value, state, seeds):
        key = gsample.next_key.default(state)
        place = aten.new_empty.default(value, [0], dtype=torch.int64)
        return (gsample.sample_nodes.default(9, 2, key, device_of=place)[0],)

    module, notes = rewritten(f, VALUE, STATE, SEEDS)
    assert notes == ['several batches run together']
    assert 'sample_nodes(9, 2, ' in ir_text(module.graph)
    assert 'device_of=%' in ir_text(module.graph)


def test_programs_without_a_mark_stay_as_they_are():
    def f(indptr, indices, seeds):
        return (gsample.slice_cols.default(indptr, indices, seeds)[1],)

    module = program(f, INDPTR, INDICES, SEEDS)
    before = ir_text(module.graph)
    assert super_batch(module.graph) is None
    assert ir_text(module.graph) == before


def test_a_node_without_a_rule_changes_nothing():
    def f(value, seeds):
        return (aten.index_select.default(value, 0, seeds).flip(0),)

    module = program(f, VALUE, SEEDS)
    before = ir_text(module.graph)
    [note] = super_batch(asked(module.graph))
    assert note.startswith('no rule for')
    assert 'flip' in note
    assert ir_text(module.graph) == before
    assert torch.equal(module(VALUE, SEEDS)[0], VALUE[SEEDS].flip(0))


def test_programs_with_trained_values_stay():
    def f(value, seeds):
        return (aten.index_select.default(value, 0, seeds),)

    module = program(f, VALUE.clone().requires_grad_(), SEEDS)
    before = ir_text(module.graph)
    [note] = super_batch(asked(module.graph))
    assert note == 'value is trained between batches: one by one'
    assert ir_text(module.graph) == before


def test_ladies_of_several_batches():
    texts, notes = [], []

    def look(gm, example_inputs):
        note_sources(gm)
        copied = copy.deepcopy(gm)
        trace = run_passes(asked(copied.graph), PASSES)
        [step] = [s for s in trace.steps if s.name == 'super_batch']
        texts.append(step.text)
        notes.append(step.notes)
        return gm.forward

    def one_layer(A, seeds):
        return algorithms.ladies(A, seeds, [8])

    torch._dynamo.reset()
    fast = torch.compile(one_layer, backend=look, fullgraph=True)
    fast(programs.graph(), programs.seeds(5))
    assert notes == [
        ('several batches run together', 'called for each batch: sum')
    ]
    assert texts == [LADIES]


PASSES = 'eliminate_common', 'fuse_extract_select', 'super_batch'
LADIES = text("""
    u0: size
    l_seeds_: int64[?]
    l_a_csc_indptr: int32[41]
    l_a_csc_indices: int32[267]
    l_a_value: float64[267]
    l_a_edge_id: int64[267]
    g_import_torch_gsample_dot_ops_dot_matrix_key_state: int64[1]
    batch_ptr: int64[2]
    %8 = gsample.slice_cols(l_a_csc_indptr, l_a_csc_indices, l_seeds_): 3 parts
    %9 = getitem(%8, 0): int32[?]
    %10 = getitem(%8, 1): int32[?]
    %11 = getitem(%8, 2): int64[?]
    %12 = !ptr_of_pointers(%9, batch_ptr): int64[2]
    %13 = aten.index_select(l_a_value, 0, %11): float64[?]
    %14 = aten.index_select(l_a_edge_id, 0, %11): int64[?]
    %15 = gsample.unique_nodes(%10, 40, True, %12): 3 parts
    %16 = getitem(%15, 0): int64[?]
    %17 = getitem(%15, 1): int32[?]
    %18 = getitem(%15, 2): int64[2]
    %19 = aten.pow.Tensor_Scalar(%13, 2): float64[?]
    %20 = !total(%18): size
    %21 = aten.new_full(%19, (%20), 0.0): float64[?]
    %22 = aten.index_add(%21, 0, %17, %19): float64[?]
    %23 = gsample.positive_weights(%22, %18): 3 parts
    %24 = getitem(%23, 0): int64[?]
    %25 = getitem(%23, 1): int64[?]
    %26 = getitem(%23, 2): int64[2]
    %27 = !current_program(): 2 parts
    %28 = getitem(%27, 0): int64[1, 3]
    %29 = getitem(%27, 1): size
    %30 = !total(%26): size
    %31 = gsample.sample_nodes(%30, 8, %28, %29, ptr=%26, \
cum_weight=%25, replace=True): 2 parts
    %32 = getitem(%31, 0): int64[?]
    %33 = getitem(%31, 1): int64[2]
    %34 = aten.index_select(%24, 0, %32): int64[?]
    %35 = gsample.slice_rows(%9, %17, %20, %34): 3 parts
    %36 = getitem(%35, 0): int32[?]
    %37 = getitem(%35, 1): int32[?]
    %38 = getitem(%35, 2): int64[?]
    %39 = !ptr_of_pointers(%36, batch_ptr): int64[2]
    %40 = aten.index_select(%16, 0, %34): int64[?]
    %41 = aten.index_select(%13, 0, %38): float64[?]
    %42 = aten.index_select(%14, 0, %38): int64[?]
    %43 = !total(%33): size
    %44 = gsample.unique_nodes(%37, %43, True, %39): 3 parts
    %45 = getitem(%44, 0): int64[?]
    %46 = getitem(%44, 1): int32[?]
    %47 = getitem(%44, 2): int64[2]
    %48 = aten.index_select(%40, 0, %45): int64[?]
    %49 = aten.pow.Tensor_Scalar(%41, 2): float64[?]
    %50 = !total(%47): size
    %51 = aten.new_full(%49, (%50), 0.0): float64[?]
    %52 = aten.index_add(%51, 0, %46, %49): float64[?]
    %53 = !lengths(%18): NoneType
    %54 = !split(%22, %53): NoneType
    %55 = each_batch(aten.sum.default, [self, dtype], [%54, None], \
batch_ptr): 2 parts
    %56 = getitem(%55, 0): float64[?]
    %57 = !batch_of(%47): int64[?]
    %58 = !expand(%56, %57, 1): float64[?]
    %59 = aten.div.Tensor(%52, %58): float64[?]
    %60 = aten.mul.Tensor(%59, 8): float64[?]
    %61 = aten.index_select(%60, 0, %46): float64[?]
    %62 = aten.div.Tensor(%41, %61): float64[?]
    %63 = !lengths(batch_ptr): NoneType
    %64 = !split_pointers(%36, %63, %39): NoneType
    %65 = !lengths(%39): NoneType
    %66 = !split_positions(%46, %65, %47): NoneType
    %67 = !lengths(%47): NoneType
    %68 = !split_size(%67, 0): NoneType
    %69 = !split_size(%67, 0): NoneType
    %70 = !split_size(%63, 0): NoneType
    %71 = !split(%62, %65): NoneType
    %72 = !split(%42, %65): NoneType
    %73 = !split(%48, %67): NoneType
    return (%64, %66, %68, %69, %70, %71, %72, %73)
""")


# Rules that programs of other tests leave open ###############################


def alone_and_together(function, *inputs, ptr):
    """Results of each batch alone, and of all in one run."""
    single = program(function, *inputs)
    together, notes = rewritten(function, *inputs)
    assert notes[0] == 'several batches run together'
    *rest, seeds = inputs
    alone = [single(*rest, part) for part in seeds.split(ptr.diff().tolist())]
    return alone, list(zip(*together(*inputs, ptr), strict=True))


IDS = torch.tensor([3, 0, 1, 2, 0, 3, 1])
PTR = torch.tensor([0, 2, 2, 6, 7])


def assert_equal(function, *inputs, ptr=PTR):
    alone, together = alone_and_together(function, *inputs, ptr=ptr)
    for first, second in zip(alone, together, strict=True):
        for a, b in zip(first, second, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)


def test_rows_are_repeated_in_their_batch():
    def f(value, seeds):
        again = aten.repeat.default(seeds, [3])
        return again, aten.index_select.default(value, 0, again)

    assert_equal(f, VALUE, IDS)


def test_rows_that_are_repeated_alike_can_be_added():
    def f(seeds):
        first = aten.repeat.default(seeds, [2])
        return (aten.add.Tensor(first, aten.repeat.default(seeds + 1, [2])),)

    assert_equal(f, IDS)


def test_orders_are_those_of_the_batch():
    def f(value, seeds):
        rows = aten.index_select.default(value, 0, seeds)
        down = aten.argsort.stable(rows, stable=True, descending=True)
        up = aten.argsort.stable(rows, stable=True)
        return down, up, aten.index.Tensor(seeds, [down])

    assert_equal(f, torch.tensor([1.0, 7.0, 1.0, 3.0]), IDS)


def test_sums_up_to_a_row_begin_with_the_batch():
    def f(seeds):
        return (aten.cumsum.default(seeds, 0),)

    assert_equal(f, IDS)


def test_sums_of_floats_round_as_in_the_batch():
    def f(value, seeds):
        rows = aten.index_select.default(value, 0, seeds)
        return (aten.cumsum.default(rows, 0),)

    assert_equal(f, VALUE / 3, IDS)


def test_ranks_are_written_in_the_batch():
    def f(value, seeds):
        rows = aten.index_select.default(value, 0, seeds)
        order = aten.argsort.stable(rows, stable=True)
        rank, place = aten.empty_like.default(order), [order]
        return (
            aten.index_put.default(rank, place, aten.cumsum.default(seeds, 0)),
        )

    assert_equal(f, torch.tensor([1.0, 7.0, 1.0, 3.0]), IDS)


def test_rows_of_a_column_keep_their_batch():
    def f(value, seeds):
        rows = aten.index_select.default(value, 0, seeds)
        wide = aten.stack.default([rows, rows * 2], 1)
        first = aten.select.int(wide, 1, 0)
        return first, aten.unsqueeze.default(first, 1)

    assert_equal(f, VALUE, IDS)


def test_in_place_changes_have_no_rule():
    def f(value, seeds):
        rows = aten.index_select.default(value, 0, seeds)
        aten.add_.Tensor(rows, 1)
        return (rows,)

    _, [note] = rewritten(f, VALUE, IDS)
    assert 'its operator is unknown' in note
