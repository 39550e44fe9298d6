"""Random data of the shapes of well-known datasets, in the place of them."""

import torch
import torch_geometric.datasets
from torch import Tensor
from torch_geometric.data import (
    Data,
    HeteroData,
    InMemoryDataset,
    TemporalData,
)
from torch_geometric.transforms import ToUndirected

#: Features and classes.
_SIZES = {
    'Flickr': (500, 7),
    'Planetoid': (1433, 7),
    'Reddit': (602, 41),
    'ogbn-arxiv': (128, 40),
    'ogbn-products': (100, 47),
    'ogbn-papers100M': (128, 172),
}
_NODES = 600


class Toy(InMemoryDataset):
    """A data set that is made, and not downloaded.

    Args:
        graphs (List[Data or HeteroData]): What is in it.
        options (Dict[str, Any]): What the script passed to its class.
    """

    def __init__(self, graphs: list, options: dict):
        transforms = options.get('transform'), options.get('pre_transform')
        super().__init__(None, transforms[0])
        if transforms[1] is not None:
            graphs = [transforms[1](graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)

    @property
    def num_classes(self) -> int:
        if isinstance(self.data, HeteroData):
            return int(self.data['paper'].y.max()) + 1
        return super().num_classes

    def get_idx_split(self) -> dict[str, Tensor]:
        parts = torch.arange(_NODES).split([300, 150, 150])
        return dict(zip(('train', 'valid', 'test'), parts, strict=True))


def edges(sources: int, destinations: int, count: int) -> Tensor:
    ends = (
        torch.randint(sources, (count,)),
        torch.randint(destinations, (count,)),
    )
    return torch.stack(ends)


def masks(count: int) -> dict[str, Tensor]:
    part = torch.arange(count) % 4
    return {
        'train_mask': part < 2,
        'val_mask': part == 2,
        'test_mask': part == 3,
    }


def nodes(features: int, classes: int) -> Data:
    """Nodes to classify, with edges in both directions."""
    one = edges(_NODES, _NODES, 2000)
    return Data(
        x=torch.randn(_NODES, features),
        edge_index=torch.cat([one, one.flip(0)], 1).unique(dim=1),
        y=torch.arange(_NODES) % classes,
        **masks(_NODES),
    )


def ogb(name: str) -> Data:
    data = nodes(*_SIZES[name])
    data.y = data.y[:, None]
    for mask in masks(1):
        del data[mask]
    return data


def proteins(split: str) -> list[Data]:
    """PPI's graphs, with several labels a node."""
    return [
        Data(
            x=torch.randn(100, 50),
            edge_index=edges(100, 100, 800),
            y=(torch.rand(100, 121) < 0.3).float(),
        )
        for _ in range(4 if split == 'train' else 2)
    ]


def academic() -> HeteroData:
    """ogbn-mag with features of all types."""
    counts = {
        'paper': _NODES,
        'author': 500,
        'institution': 40,
        'field_of_study': 80,
    }
    data = HeteroData()
    for node_type, count in counts.items():
        data[node_type].x = torch.randn(count, 128)
    data['paper'].y = torch.arange(_NODES) % 349
    data['paper'].year = torch.randint(2010, 2020, (_NODES,))
    for mask, value in masks(_NODES).items():
        data['paper'][mask] = value
    for src, name, dst in (
        ('author', 'affiliated_with', 'institution'),
        ('author', 'writes', 'paper'),
        ('paper', 'cites', 'paper'),
        ('paper', 'has_topic', 'field_of_study'),
    ):
        index = edges(counts[src], counts[dst], 1500)
        data[src, name, dst].edge_index = index
    return data


class Academic240M:
    """MAG240M, with features of all types."""

    def to_pyg_hetero_data(self) -> HeteroData:
        data = academic()
        del data['field_of_study']
        del data['paper', 'has_topic', 'field_of_study']
        data = ToUndirected()(data)
        data.num_classes = 349
        return data


def ratings() -> HeteroData:
    """MovieLens, with embedded titles."""
    data = HeteroData()
    data['movie'].x = torch.randn(200, 404)
    data['user'].num_nodes = 60
    store = data['user', 'rates', 'movie']
    store.edge_index = edges(60, 200, 3000)
    store.edge_label = torch.randint(1, 6, (3000,))
    store.time = torch.randint(1_000_000, (3000,))
    return data


def shop() -> HeteroData:
    """Taobao's clicks."""
    data = HeteroData()
    for node_type, count in (('user', 200), ('item', 150), ('category', 9)):
        data[node_type].num_nodes = count
    store = data['user', 'to', 'item']
    store.edge_index = edges(200, 150, 3000)
    store.time = torch.randint(1_000_000, (3000,))
    store.behavior = torch.randint(4, (3000,))
    data['item', 'to', 'category'].edge_index = torch.stack(
        [torch.arange(150), torch.arange(150) % 9]
    )
    return data


def interactions() -> TemporalData:
    """JODIE's edits of Wikipedia."""
    src, dst = edges(100, 60, 1200)
    return TemporalData(
        src=src,
        dst=dst + 100,
        t=torch.arange(1200),
        msg=torch.randn(1200, 172),
        y=torch.zeros(1200),
    )


def install() -> None:
    """Puts them in the place of classes of PyG and OGB."""
    torch.manual_seed(0)

    def one(make):
        return lambda *args, **options: Toy([make()], options)

    names = {
        'OGB_MAG': one(academic),
        'MovieLens': one(ratings),
        'Taobao': one(shop),
        'JODIEDataset': lambda *args, **options: [interactions()],
        'PPI': lambda root, split='train', **options: Toy(
            proteins(split), options
        ),
    }
    for name in ('Flickr', 'Planetoid', 'Reddit'):
        names[name] = one(lambda name=name: nodes(*_SIZES[name]))
    for name, make in names.items():
        setattr(torch_geometric.datasets, name, make)
    try:
        import ogb.lsc as lsc
        import ogb.nodeproppred as package
    except ImportError:
        return
    lsc.MAG240MDataset = Academic240M
    package.PygNodePropPredDataset = lambda name, *args, **options: Toy(
        [ogb(name)], options
    )
