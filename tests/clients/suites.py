"""The tests of other projects to run, and their expected failures."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """Tests of another project, at one of its versions."""

    #: Where it is on GitHub, and the tag or commit.
    repository: str
    revision: str
    #: What runs, from `folder` of the checkout; `options` are pytest's.
    paths: tuple[str, ...]
    folder: str = '.'
    #: Where its package is.
    package: str = '.'
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    #: Parts of paths of tests that are skipped where PyG has no sampler.
    sampling: tuple[str, ...] = ()
    #: Tests that fail, by the reason; other parameters than these pass.
    expected: dict[str, tuple[str, ...]] = field(default_factory=dict)

    #: Those of the reasons for which tests fail at times.
    random: tuple[str, ...] = ()

    def failing(self) -> dict[str, str]:
        """Returns the reason of each test that is expected to fail."""
        return {
            name: reason
            for reason, names in self.expected.items()
            for name in names
        }


_SPARSE = "`SparseTensor` is torch-sparse's"
_BOTH = 'calls operators of pyg-lib and of torch-sparse, to compare them'
_BACKWARD = 'PyG refuses temporal sampling of out-neighbours; ours does it'
_NO_EDGES = (
    'our loaders refuse a graph without `edge_index`; it may have none in it'
)
_ROOT_FIRST = (
    'PyG sorts the nodes of a subgraph by id, ours begins with its root; both '
    'say where it is, by `root_n_id`'
)

_ONE_DRAW = (
    "TGM's own sampler draws one of two neighbours, the test expects one: it "
    'fails at times without our classes, too'
)

_LEAP_DAY = (
    'reads random days without a year; 1900 has no 29 February: it fails at '
    'times without our classes, too'
)

_NOT_INSTALLED = "needs transformers or pcst_fast, of PyG's extra `rag`"

_PYG_EXPECTED = {
    _NOT_INSTALLED: (
        'test/llm/test_rag_loader.py::test_rag_loader_integration',
        'test/llm/utils/test_rag_backend_utils.py::test_topk_zero',
        'test/llm/utils/test_rag_backend_utils.py'
        '::test_apply_retrieval_via_pcst_isolated_node',
    ),
    _SPARSE: (
        'test/loader/test_hgt_loader.py::test_hgt_loader',
        'test/loader/test_neighbor_sampler.py::test_neighbor_sampler_basic',
        'test/loader/test_neighbor_sampler.py'
        '::test_neighbor_sampler_invalid_kwargs',
        'test/utils/test_trim_to_layer.py::test_trim_sparse_tensor',
    ),
    _BOTH: (
        'test/loader/test_neighbor_loader.py'
        '::test_pyg_lib_and_torch_sparse_homo_equality',
        'test/loader/test_neighbor_loader.py'
        '::test_pyg_lib_and_torch_sparse_hetero_equality',
    ),
    _BACKWARD: tuple(
        'test/sampler/test_sampler_neighbor_sampler.py'
        f'::test_neighbor_sampler_backwards_not_supported[{kind}]'
        for kind in ('False-data', 'False-remote', 'True-data', 'True-remote')
    ),
    _NO_EDGES: (
        'test/loader/test_mixin.py::test_multithreading_neighbor_loader',
    ),
    _ROOT_FIRST: ('test/loader/test_shadow.py::test_shadow_k_hop_sampler',),
}

#: Tests of replaced classes, and of code built on them.
_PYG = {
    'repository': 'pyg-team/pytorch_geometric',
    'paths': (
        'test/data',
        'test/explain',
        'test/llm/test_rag_loader.py',
        'test/llm/utils',
        'test/loader',
        'test/nn/conv/test_hgt_conv.py',
        'test/nn/conv/test_pna_conv.py',
        'test/nn/models',
        'test/sampler',
        'test/transforms',
        'test/utils',
    ),
    'sampling': (
        'test/data/lightning',
        'test/llm/test_rag_loader',
        'test/loader',
        'test/nn/conv/test_pna_conv',
        'test/nn/models/test_basic_gnn',
        'test/nn/models/test_node2vec',
        'test/sampler',
        'test/utils/test_trim_to_layer',
    ),
}

SUITES = {
    'pyg': Suite(**_PYG, revision='2.8.0', expected=_PYG_EXPECTED),
    'pyg-master': Suite(
        **_PYG,
        revision='5c6461b2305ad068a6d61165b3c55852a11aaa41',
        expected=_PYG_EXPECTED,
    ),
    'relbench': Suite(
        repository='snap-stanford/relbench',
        revision='dd8d6ef5dc2a6c41b768bf98538b48def58147c3',
        paths=('test',),
    ),
    'pygod': Suite(
        repository='pygod-team/pygod',
        revision='c84dccafa9bf587cd03cfd3e89b9be7a8f3337e8',
        paths=('pygod/test',),
        # Its files have pickled graphs.
        env={'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD': '1'},
    ),
    'tgm': Suite(
        repository='tgm-team/tgm',
        revision='5183dc9de1aa66457ad2744170b03dbc00d55fe4',
        paths=('test/unit/test_hooks', 'test/unit/test_data'),
        options=('-m', 'not gpu'),
        expected={
            _ONE_DRAW: (
                'test/unit/test_hooks/test_neighbor_sampler_hook.py'
                '::test_init_basic_sampled_graph_2_hop',
            )
        },
        random=(_ONE_DRAW,),
    ),
    'pytorch-frame': Suite(
        repository='pyg-team/pytorch-frame',
        revision='f6ff914e6668a48831be020b2b7f5db11f43089f',
        paths=('test/data',),
        expected={
            _LEAP_DAY: (
                'test/data/test_stats.py::test_compute_col_stats_timestamp',
            )
        },
        random=(_LEAP_DAY,),
    ),
    'lightning': Suite(
        repository='Lightning-AI/pytorch-lightning',
        revision='2.6.5',
        folder='tests',
        package='src',
        paths=(
            'tests_pytorch/utilities/test_combined_loader.py',
            'tests_pytorch/utilities/test_data.py',
            'tests_pytorch/loops/test_fetchers.py',
        ),
    ),
}
