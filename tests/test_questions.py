"""Questions of users: each is answered within two clicks of the index.

One click leads from the index to a page, the second to a section of it.
"""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / 'docs'

#: The question; the page and the section, and words that the answer has.
QUESTIONS = """
What is a seed, a hop, a fan-out?
    concepts#why-sample fan-out
Why not train on the whole graph?
    concepts#why-sample hubs
Which fan-outs and batch size do I start with?
    concepts#what-sampling-does-to-the-result Start with
How do I install it?
    installation# pip install
Which torch and Python versions work?
    installation# 3.10
Does it build without a GPU?
    installation# nvcc
What does each extra install?
    installation#extras viz
How do I train my first model?
    quick_start#train-a-model NeighborLoader
How do I get the same batch again?
    quick_start#reproducibility seed
How do I plot a batch?
    quick_start#plot-a-batch plot_batch
How do I run a PyG script unchanged?
    migration#run-a-script-unchanged gsample run
What changes when I come from DGL?
    migration#from-dgl DGL
What changes when I come from pyg-lib?
    migration#from-pyg-lib pyg-lib
Which loaders are there?
    sampling#loaders LinkNeighborLoader
How do I sample by edge weights?
    howto/weighted_sampling# weight_attr
How do I train on edge features?
    howto/edge_features# edge_attr
How do fan-outs and batch size change a batch?
    howto/fanouts# nodes a seed
How many workers and threads do I need?
    howto/workers# num_workers
How do I predict for all nodes in memory?
    howto/inference# inference(loader)
How do I train on an OGB data set?
    howto/ogb# PygNodePropPredDataset
How do I train with PyTorch Lightning?
    howto/lightning# trainer.fit
How do I train with Accelerate?
    howto/accelerate# accelerator.prepare
How do I sample before a time?
    sampling#temporal-sampling time_attr
How do I sample negative edges?
    sampling#link-prediction true_negatives
How do I use HGT sampling?
    sampling#hgt-sampling HGT
How do I use my own sampler in a loader?
    sampling#your-own-sampler-in-pygs-loaders ProgramSampler
How much memory does a sampler take?
    sampling#memory share_memory
How do I resume in the middle of an epoch?
    howto/resume# state_dict
How do I keep features in bfloat16 or int8?
    howto/quantization# quantize_rows
How do I use GraphSAINT?
    loaders# GraphSAINT
Does the number of workers change samples?
    randomness# workers
How are seeds shuffled?
    randomness#shuffling shuffle
Does it work under PyG's own loaders?
    randomness#under-pygs-own-loaders PyG
How do I count sampled nodes and edges?
    observability#counts stats
How do I profile a loader?
    observability#profiles profile
How do I log to TensorBoard?
    observability#tensorboard TensorBoard
How do I train with DistributedDataParallel?
    distributed#sharding-an-epoch world_size
How do processes share one graph?
    distributed#shared-memory graph
How do I serve predictions?
    serving# thread
How do I compile the model once?
    static_shapes# torch.compile
How do I write my own sampler?
    sparse_sample# individual_sample
How do I run LADIES or FastGCN?
    algorithms# LADIES
How do I compile a sampler?
    compiler#in-samplers-and-loaders compile
Why does my sampler not compile?
    compiler#limitations while
How do I see what the compiler did?
    compiler#explain-a-compiled-program explain
How do I run a model on exact blocks?
    fuse#supported-models fuse
How do I sample on a GPU?
    gpu#loading-batches-on-a-gpu device
How do I use a graph larger than memory?
    storage#choose-a-sampler ChunkedGraph
How do I read features from disk?
    storage#features-on-disk DiskFeatureStore
How do I compute all nodes' outputs?
    storage#inference-over-all-nodes infer
How do I sample on Spark?
    spark#mini-batches Spark
How do I train on a database?
    relational#from-tables-to-a-graph from_tables
What does this error mean?
    troubleshooting#loaders-and-samplers num_neighbors
Can samples be trusted?
    correctness#distributions chi
Is it biased on hubs?
    correctness#sampling-bias-compared-with-pyg-lib hub
Which data sets come with it?
    datasets# DebianPackages
How fast is it on my machine?
    command_line#gsample-bench gsample bench
"""
LINES = QUESTIONS.strip().splitlines()
ITEMS = [
    (question, *answer.split(maxsplit=1))
    for question, answer in zip(LINES[::2], LINES[1::2], strict=True)
]


def slug(title: str) -> str:
    """The anchor of a heading, as MyST and GitHub make it."""
    return re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')


def sections(page: str) -> dict[str, str]:
    """The text below each heading of a page, and all of it under ``''``."""
    text = (DOCS / f'{page}.md').read_text()
    out = {'': text}
    headings = [*re.finditer(r'^(#+) (.+)$', text, re.MULTILINE)]
    for i, heading in enumerate(headings):
        below = [h for h in headings[i + 1 :] if len(h[1]) <= len(heading[1])]
        end = below[0].start() if below else len(text)
        out[slug(heading[2])] = text[heading.end() : end]
    return out


def pages_of_the_index() -> set[str]:
    """Pages that the index links, or lists in its navigation."""
    text = (DOCS / 'index.md').read_text()
    trees = re.findall(r'```\{toctree\}\n(.*?)```', text, re.DOTALL)
    listed = {line for tree in trees for line in tree.split()}
    return {*re.findall(r'\]\((\w+)\.md', text), *listed}


@pytest.mark.parametrize('item', ITEMS, ids=lambda item: item[0])
def test_a_question_is_answered_within_two_clicks(item):
    _, place, word = item
    page, anchor = place.split('#')
    assert page in pages_of_the_index()
    answer = sections(page)[anchor]
    assert word.lower() in answer.lower()


def test_howto_guides_lead_to_sections():
    """The index names each guide, and headings that other pages have."""
    links = re.findall(r'\]\(([\w/]+)\.md#?([\w-]*)\)', sections('howto')[''])
    for page, anchor in links:
        assert anchor in sections(page), (page, anchor)
    guides = {f'howto/{p.stem}' for p in (DOCS / 'howto').glob('*.md')}
    assert guides == {page for page, _ in links if '/' in page}
    assert guides <= pages_of_the_index()


def test_all_code_of_howto_guides_runs():
    """Doctest runs what has prompts: a block without them is not tested."""
    for path in (DOCS / 'howto').glob('*.md'):
        blocks = re.findall(r'```(\w*)\n(.*?)```', path.read_text(), re.DOTALL)
        assert blocks
        for language, code in blocks:
            assert language == 'python', path
            assert code.startswith('>>> '), path
            assert code.endswith('\n\n'), path


def test_there_are_forty_questions():
    assert len({question for question, *_ in ITEMS}) >= 40
