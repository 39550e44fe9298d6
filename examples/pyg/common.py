"""The graphs and the arguments of these examples.

``debian`` and ``gcc`` come with torch_gsample and need no network; PyG and
OGB download the others to ``--root``.
"""

import argparse
import copy
import sys
from functools import cache

import torch
import torch_geometric.transforms as T
from torch import Tensor
from torch_geometric import datasets, seed_everything
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from torch_gsample.datasets import DebianPackages, GccChangelog

SPLITS = {'train': 'train', 'valid': 'val', 'test': 'test'}


def parse_args(real: str, bundled: str = 'debian', **defaults: int):
    """Reads the arguments of a script, and seeds all generators.

    Args:
        real (str): The data set of the script's model.
        bundled (str, optional): The one that comes with the package.
        **defaults (optional): Arguments of a script besides the usual ones,
            or another default of them.
    """
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--dataset', choices=[bundled, real], default=bundled)
    add('--root', default='data', help='where data sets are downloaded to')
    usual = {'epochs': 2, 'batch_size': 512, 'hidden': 64, 'workers': 0}
    usual |= {'seed': 0, 'max_batches': 10**9}
    for name, value in (usual | defaults).items():
        add(f'--{name.replace("_", "-")}', type=int, default=value)
    args = parser.parse_args()
    seed_everything(args.seed)
    return args


@cache
def _load(name: str, root: str) -> tuple[Data, int]:
    if name == 'debian':
        dataset = DebianPackages(
            homogeneous=True, pre_transform=T.ToUndirected()
        )
    elif name in ('reddit', 'flickr'):
        dataset = getattr(datasets, name.title())(f'{root}/{name}')
    elif name == 'cora':
        dataset = datasets.Planetoid(root, 'Cora')
    else:
        return _load_ogb(name, root)
    return dataset[0], dataset.num_classes


def _load_ogb(name: str, root: str) -> tuple[Data, int]:
    try:
        from ogb.nodeproppred import PygNodePropPredDataset
    except ImportError as error:
        sys.exit(f"--dataset {name} needs 'ogb': pip install ogb ({error})")
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    # ogb 1.3.6 does not tell torch that these are safe to load.
    torch.serialization.add_safe_globals(
        [DataEdgeAttr, DataTensorAttr, GlobalStorage]
    )
    dataset = PygNodePropPredDataset(name, root)
    data = T.ToUndirected()(dataset[0])
    # The labels of most papers are unknown.
    data.y = data.y.flatten().nan_to_num(nan=-1).long()
    for split, index in dataset.get_idx_split().items():
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[index] = True
        data[f'{SPLITS[split]}_mask'] = mask
    return data, dataset.num_classes


def load_graph(args: argparse.Namespace) -> tuple[Data, int]:
    """Returns an undirected graph with features, labels and masks, and the
    number of classes.
    """
    data, num_classes = _load(args.dataset, args.root)
    return copy.copy(data), num_classes


@cache
def _load_typed(name: str, root: str) -> tuple[HeteroData, str, int]:
    if name == 'ogb-mag':
        dataset = datasets.OGB_MAG(root, preprocess='metapath2vec')
        return T.ToUndirected()(dataset[0]), 'paper', dataset.num_classes
    dataset = DebianPackages(pre_transform=T.ToUndirected(merge=False))
    data = dataset[0]
    data['tag'].x = torch.eye(data['tag'].num_nodes)
    data['source'].x = torch.ones(data['source'].num_nodes, 1)
    return data, 'package', dataset.num_classes


def load_typed_graph(
    args: argparse.Namespace,
) -> tuple[HeteroData, str, int]:
    """Returns a heterogeneous graph, the type of its nodes that have labels,
    and the number of classes.
    """
    data, node_type, num_classes = _load_typed(args.dataset, args.root)
    return copy.copy(data), node_type, num_classes


def load_links(args: argparse.Namespace) -> tuple[EdgeType, HeteroData]:
    """Returns links with times, and a graph of them and their reverse."""
    if args.dataset == 'gcc':
        data = GccChangelog()[0]
    else:
        rated = datasets.MovieLens100K(f'{args.root}/movie-lens')[0]
        data = HeteroData()
        for node_type in rated.node_types:
            data[node_type].num_nodes = rated[node_type].num_nodes
        edges = rated['user', 'rates', 'movie']
        data['user', 'rates', 'movie'].edge_index = edges.edge_index
        data['user', 'rates', 'movie'].time = edges.time
    link = data.edge_types[0]
    return link, T.ToUndirected()(data)


def share_of_largest_class(y: Tensor, train: Tensor, test: Tensor) -> float:
    """Returns the accuracy of who always says the largest class."""
    largest = y[train].bincount().argmax()
    return float((y[test] == largest).double().mean())


def area_under_curve(score: Tensor, label: Tensor) -> float:
    """Returns how often a true pair is above a false one; ties count half."""
    true, false = score[label > 0], score[label == 0].sort().values
    below = torch.searchsorted(false, true)
    up_to = torch.searchsorted(false, true, right=True)
    return float((below + up_to).double().mean() / (2 * len(false)))
