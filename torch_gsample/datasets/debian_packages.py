"""The graph of Debian packages, and what bundled data sets share."""

import os.path as osp
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import resources
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.data.data import BaseData

Arrays = Mapping[str, np.ndarray]
EdgeType = tuple[str, str, str]


def bundled_file(name: str) -> IO[bytes]:
    folder = resources.files('torch_gsample.datasets') / 'data'
    return (folder / name).open('rb')


@contextmanager
def open_bundled(name: str) -> Iterator[Arrays]:
    """Opens a bundled :obj:`.npz` file; arrays are read on first access."""
    with bundled_file(name) as f, np.load(f) as arrays:
        yield arrays


def decode_names(array: np.ndarray) -> list[str]:
    """Splits newline-joined UTF-8 bytes of type :obj:`uint8`."""
    text = array.tobytes().decode()
    return text.split('\n') if text else []


def edge_key(edge_type: EdgeType) -> str:
    return 'edge/' + '__'.join(edge_type)


def to_hetero_data(arrays: Arrays) -> HeteroData:
    """Returns the node counts and the edges of a bundled graph."""
    data = HeteroData()
    node_types = decode_names(arrays['node_types'])
    counts = arrays['num_nodes'].tolist()
    for node_type, num_nodes in zip(node_types, counts, strict=True):
        data[node_type].num_nodes = num_nodes
    for key in arrays:
        if key.startswith('edge/'):
            src, rel, dst = key.removeprefix('edge/').split('__')
            data[src, rel, dst].edge_index = to_long(arrays[key])
    return data


def to_long(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))


class BundledDataset(InMemoryDataset):
    """One graph that is installed with the package.

    Without :obj:`root`, the graph is built in memory and nothing is written.
    Otherwise, the graph is stored in :obj:`root/{variant}/processed`, as by
    other PyG datasets.
    """

    file: str

    def __init__(
        self,
        root: str | None = None,
        transform: Callable | None = None,
        pre_transform: Callable | None = None,
        force_reload: bool = False,
    ) -> None:
        self._keep = root is not None
        super().__init__(
            root, transform, pre_transform, force_reload=force_reload
        )
        if self._keep:
            self.load(self.processed_paths[0], data_cls=HeteroData)
        else:
            self._data = self._make()

    @property
    def variant(self) -> str:
        return self.file.removesuffix('.npz')

    @property
    def has_process(self) -> bool:
        return self._keep

    @property
    def raw_file_names(self) -> list[str]:
        return []

    @property
    def processed_dir(self) -> str:
        return osp.join(self.root, self.variant, 'processed')

    @property
    def processed_file_names(self) -> list[str]:
        return ['data.pt']

    def process(self) -> None:
        self.save([self._make()], self.processed_paths[0])

    def _make(self) -> BaseData:
        with open_bundled(self.file) as arrays:
            data = self._build(arrays)
        return data if self.pre_transform is None else self.pre_transform(data)

    def _build(self, arrays: Arrays) -> BaseData:
        raise NotImplementedError

    def _names(self, key: str) -> list[str]:
        with open_bundled(self.file) as arrays:
            return decode_names(arrays[key])

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def class_names(self) -> list[str]:
        """The name of each label, read at the first access."""
        return self._names('class_names')


class DebianPackages(BundledDataset):
    r"""The packages of Debian 12.15 (:obj:`main`, :obj:`amd64`), their source
    packages and their tags.

    Nodes of type :obj:`"package"` have the 1,000 most common words of the
    one-line descriptions as binary features, followed by four numbers:
    :math:`\log(1 + \textrm{installed size in KiB})`,
    :math:`\log(1 + \textrm{download size in bytes})`, whether the package is
    for all architectures, and whether it names a homepage. The numbers are
    standardised by the mean and standard deviation of the training nodes.
    Package names are not a feature, as they reveal the label. The label
    :obj:`y` is the section of the package (:obj:`-1` without a section, which
    does not occur in this release), and the split keeps packages that are
    built from the same source together.

    An edge :obj:`("package", "depends", "package")` leads from the package
    that states the dependency to the package that fulfils it.
    A virtual package is replaced by each of its providers, alternatives all
    become edges, and there are no self loops and no duplicate edges.
    Edges are sorted by source, then by destination, and no reverse edges are
    added: use :class:`~torch_geometric.transforms.ToUndirected` for that.

    Args:
        root (str, optional): Folder for the processed graph, about 260 MB. If
            set to :obj:`None`, it is built in memory, and nothing is written
            to disk. (default: :obj:`None`)
        homogeneous (bool, optional): If set to :obj:`True`, returns a
            :class:`~torch_geometric.data.Data` object of the packages and the
            union of all relations between them. Edges that occur in several
            relations are kept once, hence there is no :obj:`edge_type`.
            (default: :obj:`False`)
        transform (callable, optional): A function that takes in the graph and
            returns a transformed version, called at every access.
            (default: :obj:`None`)
        pre_transform (callable, optional): A function that takes in the graph
            and returns a transformed version, called once when the graph is
            processed. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the graph again even
            if it is found in :obj:`root`. (default: :obj:`False`)

    Shapes:
        - :obj:`data["package"].x`: :obj:`float32` :math:`(63436, 1004)`
        - :obj:`data["package"].y`: :obj:`int64` :math:`(63436)`
        - :obj:`data["package"].{train,val,test}_mask`: :obj:`bool`
          :math:`(63436)`
        - :obj:`data[edge_type].edge_index`: :obj:`int64` :math:`(2, |E|)`

    Nodes of type :obj:`"source"` and :obj:`"tag"` have :obj:`num_nodes` only.
    The names of all nodes, classes and features are attributes of the dataset
    (:obj:`package_names`, :obj:`source_names`, :obj:`tag_names`,
    :obj:`class_names`, :obj:`feature_names`), lists of strings that are
    decoded at the first access.
    :obj:`num_features` is a dictionary over node types unless
    :obj:`homogeneous=True`.

    **Example:**

    .. code-block:: python

        >>> import torch_geometric.transforms as T
        >>> from torch_gsample.datasets import DebianPackages
        >>> dataset = DebianPackages(pre_transform=T.ToUndirected())
        >>> data = dataset[0]
        >>> data['package'].x.shape
        torch.Size([63436, 1004])
        >>> i = dataset.package_names.index('python3-torch')
        >>> dataset.class_names[data['package'].y[i]]
        'python'
        >>> data['tag', 'rev_has_tag', 'package'].num_edges
        112118

    **STATS:**

    .. list-table::
        :widths: 30 10 10
        :header-rows: 1

        * - Node/Edge type
          - #nodes/#edges
          - #features
        * - package (58 classes; split 32,780 / 15,131 / 15,525)
          - 63,436
          - 1,004
        * - source
          - 34,169
          -
        * - tag
          - 598
          -
        * - package, depends, package
          - 274,536
          -
        * - package, pre_depends, package
          - 995
          -
        * - package, recommends, package
          - 34,196
          -
        * - package, suggests, package
          - 30,724
          -
        * - package, enhances, package
          - 1,873
          -
        * - package, breaks, package
          - 5,928
          -
        * - package, conflicts, package
          - 2,269
          -
        * - package, replaces, package
          - 4,230
          -
        * - source, builds, package
          - 63,436
          -
        * - source, build_depends, package
          - 271,941
          -
        * - package, has_tag, tag
          - 112,118
          -
        * - :obj:`homogeneous=True`
          - 348,131
          - 1,004

    **Source and terms:** Made by ``tools/make_debian_packages.py`` from the
    signed indexes of the release dated 2026-07-11. Relations, sections and
    sizes are facts; of the descriptions, only single words are kept.
    """

    file = 'debian_packages.npz'

    def __init__(
        self,
        root: str | None = None,
        homogeneous: bool = False,
        transform: Callable | None = None,
        pre_transform: Callable | None = None,
        force_reload: bool = False,
    ) -> None:
        self.homogeneous = homogeneous
        super().__init__(root, transform, pre_transform, force_reload)

    @property
    def variant(self) -> str:
        suffix = '_homogeneous' if self.homogeneous else ''
        return super().variant + suffix

    def _build(self, arrays: Arrays) -> BaseData:
        packages = package_attributes(arrays)
        if self.homogeneous:
            return Data(edge_index=union_edges(arrays), **packages)
        data = to_hetero_data(arrays)
        data['package'].update(packages)
        del data['package'].num_nodes  # now implied by x
        return data

    @cached_property
    def package_names(self) -> list[str]:
        """The name of each package, read at the first access."""
        return self._names('name/package')

    @cached_property
    def source_names(self) -> list[str]:
        """The name of each source package, read at the first access."""
        return self._names('name/source')

    @cached_property
    def tag_names(self) -> list[str]:
        """The name of each tag, read at the first access."""
        return self._names('name/tag')

    @cached_property
    def feature_names(self) -> list[str]:
        """The words and the four numbers that the columns of x stand for."""
        numbers = ['log_installed_size', 'log_size', 'arch_all', 'homepage']
        return self._names('vocab') + numbers


def package_attributes(arrays: Arrays) -> dict[str, Any]:
    """Returns features, labels and masks of the packages."""
    split = torch.from_numpy(arrays['split/package'])
    return {
        'x': package_features(arrays),
        'y': to_long(arrays['y/package']),
        'train_mask': split == 0,
        'val_mask': split == 1,
        'test_mask': split == 2,
    }


def package_features(arrays: Arrays) -> Tensor:
    """Returns the binary words and the standardised numbers side by side."""
    indptr, indices = arrays['x/package/indptr'], arrays['x/package/indices']
    num = arrays['x/package/num'].astype(np.float64)
    train = num[arrays['split/package'] == 0]
    std = train.std(axis=0)
    num = (num - train.mean(axis=0)) / np.where(std > 0, std, 1)

    num_words = len(decode_names(arrays['vocab']))
    x = torch.zeros(len(num), num_words + num.shape[1])
    row = np.repeat(np.arange(len(num)), np.diff(indptr))
    x[torch.from_numpy(row), to_long(indices)] = 1
    x[:, num_words:] = torch.from_numpy(num)
    return x


def union_edges(arrays: Arrays) -> Tensor:
    """Returns the coalesced union of all relations between packages."""
    edges = [
        arrays[key].astype(np.int64)
        for key in arrays
        if key.startswith('edge/package__') and key.endswith('__package')
    ]
    src, dst = np.concatenate(edges, axis=1)
    num_nodes = len(arrays['y/package'])
    return torch.from_numpy(
        np.stack(np.divmod(np.unique(src * num_nodes + dst), num_nodes))
    )
