"""The planted mistakes: what is changed where, and which tests must fail.

Each old text stands once in its file. What a mistake would mean to a user is
its reason to be here.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake, and the arguments of pytest for tests that must fail."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: str


CORE = [
    Mutant(
        'fewer rounds',
        'csrc/core/philox.h',
        'kPhiloxRounds = 10',
        'kPhiloxRounds = 9',
        'another generator than the documented one',
        'tests/core',
    ),
    Mutant(
        'one half of a block',
        'csrc/core/philox.h',
        '.half(slot & 1)',
        '.half(0)',
        'two slots draw the same number',
        'tests/core',
    ),
    Mutant(
        'relations share a stream',
        'csrc/core/philox.h',
        'static_cast<uint32_t>(key.epoch), call | relation << 16,',
        'static_cast<uint32_t>(key.epoch), call | relation,',
        'two relations draw alike',
        'tests/core',
    ),
    Mutant(
        'Floyd off by one',
        'csrc/core/select.h',
        'bounded(draw(slot), last + 1)',
        'bounded(draw(slot), last)',
        'the last edge is drawn too rarely',
        'tests/core',
    ),
    Mutant(
        'small weights are lost',
        'csrc/core/weighted.h',
        'return value + ((value == 0) & (mantissa != 0));',
        'return value;',
        'an edge of a tiny weight is never drawn',
        'tests/core',
    ),
    Mutant(
        'coin of a walk',
        'csrc/core/walk.h',
        '(2 * step + 1)',
        '(2 * step)',
        'a candidate and its coin are one draw',
        'tests/core',
    ),
    Mutant(
        'negatives that are edges',
        'csrc/core/negative.h',
        'return at < end && args.indices[at] == node;',
        'return at < end && args.indices[at] == node + 1;',
        'true negatives are edges of the graph',
        'tests/core',
    ),
]
EXTENSION = [
    Mutant(
        'sort is not stable',
        'csrc/cpu/formats.cpp',
        'const indptr_t to = place[col[i]]++;',
        'const indptr_t to = place[col[begin + end - 1 - i]]++;',
        'edges get the ids of others',
        'tests/ops/test_formats.py',
    ),
    Mutant(
        'last row is not checked',
        'csrc/cpu/formats.cpp',
        'static_cast<uint64_t>(indices[i]) >= rows',
        'static_cast<uint64_t>(indices[i]) > rows',
        'a malformed graph is read out of bounds',
        'tests/ops/test_formats.py',
    ),
    Mutant(
        'local ids by order of nodes',
        'csrc/cpu/unique_nodes.cpp',
        'local[i] = static_cast<id_t>(found);',
        'local[i] = static_cast<id_t>(size);',
        'repeated nodes get ids of others',
        'tests/ops/test_slice_matrix.py -k unique',
    ),
    Mutant(
        'trees are mixed',
        'csrc/cpu/induce_subgraph.cpp',
        'return tree * static_cast<uint64_t>(args.num_rows) + node;',
        'return tree + node;',
        'edges connect nodes of two trees',
        'tests/ops/test_subgraph.py',
    ),
    Mutant(
        'walks draw once for two steps',
        'csrc/cpu/random_walk.cpp',
        'block_[lane] = step / 2;',
        'block_[lane] = step / 4;',
        'steps of a walk repeat',
        'tests/ops/test_walk.py',
    ),
    Mutant(
        'fire returns',
        'csrc/cpu/forest_fire.cpp',
        '.entry(edge - begin)',
        '.entry(0)',
        'the fire spreads to the first edges',
        'tests/ops/test_forest_fire.py',
    ),
]
RANDOMNESS = [
    Mutant(
        'draws of a program are not numbered',
        'torch_gsample/rng.py',
        'return self.key, self.num_calls - 1',
        'return self.key, 0',
        'all layers of a program draw alike',
        'tests/algorithms/test_graphsage.py tests/golden -k "graphsage"',
    ),
    Mutant(
        'batches of a shard are numbered by themselves',
        'torch_gsample/loader/numbering.py',
        'OwnIndex(indices, BatchNumber(place.epoch, number))',
        'OwnIndex(indices, BatchNumber(place.epoch, done - 1))',
        'the number of processes changes samples',
        'tests/loader/test_sharding.py',
    ),
    Mutant(
        'a shard takes the first of a round',
        'torch_gsample/loader/epochs.py',
        'return range(min(first + rank, total), total, step)',
        'return range(min(first, total), total, step)',
        'processes train on the same batches',
        'tests/loader/test_sharding.py',
    ),
    Mutant(
        'a state counts the batches of one process',
        'torch_gsample/loader/epochs.py',
        'self.first + self._handed * self.step',
        'self.first + self._handed',
        'a resumed run of several processes trains on batches again',
        'tests/loader/test_state.py -k processes',
    ),
    Mutant(
        'negatives of a round are equal',
        'torch_gsample/samplers/link/batch.py',
        '* rounds + item // max(num_pos, 1)',
        '* rounds',
        'an edge has one negative, several times',
        'tests/samplers/test_links.py tests/samplers/test_negatives.py '
        'tests/golden -k "not golden or links or triplet or binary"',
    ),
    Mutant(
        'neighbours of the other direction',
        'torch_gsample/samplers/link/negatives.py',
        'csc if self.graph.is_transposed else csc.transpose()',
        'csc.transpose() if self.graph.is_transposed else csc',
        'true negatives are edges of the graph',
        'tests/samplers/test_negatives.py',
    ),
    Mutant(
        'draws of Spark have another hash',
        'torch_gsample/graph_sampling/draws.py',
        'return _mix(_mix(src) + dst)',
        'return _mix(_mix(dst) + src)',
        'samples of whole graphs change',
        'tests/golden -k "disk and random_"',
    ),
]
ALGORITHMS = [
    Mutant(
        'LADIES without squares',
        'torch_gsample/algorithms/ladies.py',
        'p = (sub**2).sum(dim=1)',
        'p = sub.sum(dim=1)',
        'another distribution than the paper has',
        'tests/algorithms/test_ladies.py',
    ),
    Mutant(
        'FastGCN is biased',
        'torch_gsample/algorithms/fastgcn.py',
        'S.div(k * probs.probs[S.row()], dim=1)',
        'S.div(probs.probs[S.row()], dim=1)',
        'the estimate is k times too large',
        'tests/algorithms/test_fastgcn.py',
    ),
    Mutant(
        'LABOR divides by nothing',
        'torch_gsample/algorithms/labor.py',
        'values / p.to(values.dtype)',
        'values * 1',
        'the estimate is too small',
        'tests/algorithms/test_labor.py',
    ),
    Mutant(
        'AS-GCN has no variance term',
        'torch_gsample/algorithms/as_gcn.py',
        '/ max(k - 1, 1)',
        '/ k',
        'the loss of the sampler is biased',
        'tests/algorithms/test_as_gcn.py',
    ),
    Mutant(
        'PASS has no gradient',
        'torch_gsample/algorithms/pass_sampler.py',
        'torch.exp(log_q - log_q.detach())',
        'torch.exp((log_q - log_q).detach())',
        'the sampler never learns',
        'tests/algorithms/test_pass_sampler.py',
    ),
    Mutant(
        'VR-GCN weighs by the sample',
        'torch_gsample/algorithms/vr_gcn.py',
        'S.mul(sub.degree(dim=0) / S.degree(dim=0), dim=0)',
        'S.mul(S.degree(dim=0) / S.degree(dim=0), dim=0)',
        'the estimate is too small',
        'tests/algorithms/test_vr_gcn.py',
    ),
    Mutant(
        'bandits start again',
        'torch_gsample/algorithms/exp3.py',
        'self.log_weight += (',
        'self.log_weight = self.log_weight * 0 + (',
        'what was learned is lost at each update',
        'tests/algorithms/test_gcn_bs.py tests/algorithms/test_thanos.py',
    ),
    Mutant(
        'a node that is reached twice has a longer way',
        'torch_gsample/algorithms/seal.py',
        'distance[without] = -2',
        'distance[without] = -1',
        'paths lead through the other end',
        'tests/algorithms/test_shadow_seal.py',
    ),
    Mutant(
        'HGT without squares',
        'torch_gsample/algorithms/hgt.py',
        'budget**2',
        'budget',
        'another distribution than the paper has',
        'tests/algorithms/test_hgt.py tests/golden -k "hgt"',
    ),
    Mutant(
        'ties by the last',
        'torch_gsample/sparse_sample/select.py',
        'by.argsort(descending=True, stable=True)',
        'by.flip(0).argsort(descending=True, stable=True)',
        'the top edges are those of others',
        'tests/sparse_sample/test_subset.py',
    ),
    Mutant(
        'LABOR draws by edge',
        'torch_gsample/sparse_sample/labor.py',
        'ops.random_uniform(row_of_edge(matrix),',
        'ops.random_uniform(matrix.edge_id,',
        'columns no longer share rows',
        'tests/algorithms/test_labor.py',
    ),
]
COMPILER = [
    Mutant(
        'numbers of two types are equal',
        'torch_gsample/compiler/passes/eliminate_common.py',
        'return type(value), value',
        'return value',
        'x / 2 and x / 2.0 are merged',
        'tests/compiler/test_passes.py',
    ),
    Mutant(
        'a gradient is merged away',
        'torch_gsample/compiler/passes/eliminate_common.py',
        'key = *call, _needs_gradient(node), _frozen(entered)',
        'key = *call, _frozen(entered)',
        'what runs under no_grad stands for what does not',
        'tests/compiler/test_modes.py tests/compiler/test_passes.py',
    ),
    Mutant(
        'mutated values are hoisted',
        'torch_gsample/compiler/passes/hoist_invariant.py',
        'invariant = is_of_graph(node) and node not in changed',
        'invariant = is_of_graph(node)',
        'a value stays as it was before it was changed',
        'tests/compiler/test_passes.py',
    ),
    Mutant(
        'casts of autocast are hoisted',
        'torch_gsample/compiler/passes/hoist_invariant.py',
        'and not mode[node][1]',
        'and True',
        'precision is that of another call',
        'tests/compiler/test_modes.py',
    ),
    Mutant(
        'hops of different options are fused',
        'torch_gsample/compiler/hop_chains.py',
        'first.args[0] is second.args[0] and given[0] == given[1]',
        'first.args[0] is second.args[0]',
        'the second hop has the options of the first',
        'tests/compiler/test_fuse_hops.py',
    ),
    Mutant(
        'a mask is dropped',
        'torch_gsample/compiler/passes/rewrite_unique.py',
        'mask.args[3] is False',
        'mask.args[3] is None',
        'nodes that were left out come back',
        'tests/compiler/test_rewrite_unique.py',
    ),
    Mutant(
        'batches see each other',
        'torch_gsample/compiler/super_batch/segments.py',
        'return total[1:] - total[ptr[batch]]',
        'return total[1:]',
        'a sum goes on from batch to batch',
        'tests/compiler/test_super_batch.py',
    ),
]
CACHES = [
    Mutant(
        'changes by NumPy are not seen',
        'torch_gsample/snapshot.py',
        'memory[positions].tobytes() == elements',
        'True',
        'values of an old graph are used',
        'tests/compiler/test_cache.py tests/compiler/test_forget.py',
    ),
    Mutant(
        'a damaged chunk is whole',
        'torch_gsample/storage/checked_blocks.py',
        '        if damaged >= 0:\n',
        '        if False:\n',
        'a fault of the disk decides samples',
        'tests/storage/test_damage.py -k streaming',
    ),
    Mutant(
        'a new file is the old one',
        'torch_gsample/storage/checksums.py',
        'or self._file != identity:',
        'or not self._file:',
        'a file that was replaced is never checked',
        'tests/storage/test_damage.py',
    ),
    Mutant(
        'folders of killed processes stay',
        'torch_gsample/owned_folder.py',
        '        remove_leftovers(parent)\n',
        '',
        'the disk fills up',
        'tests/test_owned_folder.py',
    ),
    Mutant(
        'a fork removes the folder of its parent',
        'torch_gsample/owned_folder.py',
        'if self._process == os.getpid():',
        'if True:',
        'a worker that ends takes the files with it',
        'tests/test_owned_folder.py',
    ),
    Mutant(
        'factors of a loop are taken out',
        'torch_gsample/vertex/plan/factors.py',
        'return self._product([*rest, total])',
        'return self._product([total])',
        'gradients lose a factor',
        'tests/vertex/test_programs.py',
    ),
    Mutant(
        'equal operands get the gradient twice',
        'torch_gsample/codegen/operations.py',
        'constant(0.5, g.dtype)',
        'constant(1, g.dtype)',
        'the gradient of a maximum is too large',
        'tests/codegen tests/vertex/test_programs.py',
    ),
]
MUTANTS = [
    *(*CORE, *EXTENSION, *RANDOMNESS, *ALGORITHMS, *COMPILER, *CACHES),
]
