"""PyG's ``Node2Vec`` on our walks."""

from numbers import Real

import torch
from torch import Tensor
from torch_geometric.nn.models import Node2Vec as PyGNode2Vec
from torch_geometric.utils.num_nodes import maybe_num_nodes
from typing_extensions import Unpack

from torch_gsample import ops, rng
from torch_gsample.loader.options import SubgraphOptions
from torch_gsample.loader.walk_loader import WalkLoader
from torch_gsample.ops import _check
from torch_gsample.sparse_sample import SparseSample


class Node2Vec(PyGNode2Vec):
    r"""PyG's ``Node2Vec`` on our walks, without pyg-lib.

    Embeddings are trained such that nodes close to each other on walks have a
    large product, and random nodes a small one, as in `"node2vec: Scalable
    Feature Learning for Networks" <https://arxiv.org/abs/1607.00653>`_ (KDD
    2016); with ``p = q = 1`` it is `"DeepWalk"
    <https://arxiv.org/abs/1403.6652>`_.

    It has PyG's arguments and methods, and loads PyG's ``state_dict``. Walks
    and negatives of :meth:`loader` are a function of (seed, epoch, batch), for
    any number of workers and threads. Samples without the loader use torch's
    default generator.

    Args:
        edge_index (torch.Tensor): int64 ``[2, num_edges]``. Walks go from its
            first row to its second, and stay at nodes without an out-edge.
        embedding_dim (int): The size of each embedding vector.
        walk_length (int): Number of nodes of a walk.
        context_size (int): Number of nodes of a positive or negative sample,
            at least 2: each walk has ``walk_length - context_size + 1`` of
            them.
        walks_per_node (int, optional): Walks from each node.
        p (float, optional): Return parameter; walks return less with a larger
            one.
        q (float, optional): In-out parameter; walks stay closer with a larger
            one.
        num_negative_samples (int, optional): Negatives for each positive.
        num_nodes (int, optional): Number of nodes.
        edge_weight (torch.Tensor, optional): ``[num_edges]``, nonnegative;
            walks prefer edges of large weight.
        sparse (bool, optional): Whether gradients of the embeddings are
            sparse, as for :class:`torch.optim.SparseAdam`.
        seed (int, optional): The seed of the loader's samples; default: drawn
            from torch's default generator.

    Raises:
        IndexError: If an edge is out of range.
        TypeError: If an integer argument is not an integer.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model = Node2Vec(
        ...     edge_index, 8, walk_length=4, context_size=3, seed=0
        ... )
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> for pos_rw, neg_rw in model.loader(batch_size=3, shuffle=True):
        ...     optimizer.zero_grad()
        ...     model.loss(pos_rw, neg_rw).backward()
        ...     optimizer.step()
        >>> pos_rw.shape, neg_rw.shape, model().shape
        (torch.Size([6, 3]), torch.Size([6, 3]), torch.Size([3, 8]))
    """

    def __init__(
        self,
        edge_index: Tensor,
        embedding_dim: int,
        walk_length: int,
        context_size: int,
        walks_per_node: int = 1,
        p: float = 1.0,
        q: float = 1.0,
        num_negative_samples: int = 1,
        num_nodes: int | None = None,
        sparse: bool = False,
        *,
        edge_weight: Tensor | None = None,
        seed: int | None = None,
    ):
        torch.nn.Module.__init__(self)  # PyG's own needs pyg-lib
        name = type(self).__name__
        _check.count(name, 'embedding_dim', embedding_dim)
        _check.count(name, 'context_size', context_size, least=2)
        _check.count(name, 'walk_length', walk_length, least=context_size)
        _check.count(name, 'walks_per_node', walks_per_node)
        _check.count(name, 'num_negative_samples', num_negative_samples)
        for parameter, value in (('p', p), ('q', q)):
            if not isinstance(value, Real):
                raise TypeError(
                    f"{name}: '{parameter}' must be a number (got {value!r})"
                )
            if not 0 < value < float('inf'):
                raise ValueError(
                    f"{name}: '{parameter}' must be positive and finite "
                    f'(got {value})'
                )
        _check.check_tensor(name, 'edge_index', edge_index)
        self.num_nodes = maybe_num_nodes(edge_index, num_nodes)
        self.graph = SparseSample.from_edge_index(
            edge_index.cpu(),
            None if edge_weight is None else edge_weight.detach().cpu(),
            self.num_nodes,
        )
        self._probs = None if edge_weight is None else self.graph
        _ = self.graph.csr  # made once, not by each worker
        self.seed = rng.draw_seed() if seed is None else seed
        rng.make_key(self.seed)  # checks the seed
        self._is_seeded = seed is not None
        # Attributes that PyG's methods read.
        self.EPS = 1e-15
        self.embedding_dim = embedding_dim
        self.walk_length = walk_length - 1
        self.context_size = context_size
        self.walks_per_node = walks_per_node
        self.p, self.q = p, q
        self.num_negative_samples = num_negative_samples
        self.embedding = torch.nn.Embedding(
            self.num_nodes, embedding_dim, sparse=sparse
        )
        self.reset_parameters()

    def loader(self, **options: Unpack[SubgraphOptions]) -> WalkLoader:
        """Returns a loader of :meth:`sample` over all nodes.

        Args:
            **options (optional): See
                :class:`~torch_gsample.loader.WalkLoader`.
        """
        options.setdefault('seed', self.seed if self._is_seeded else None)
        return WalkLoader(self.num_nodes, self.sample, **options)

    def pos_sample(self, batch: Tensor) -> Tensor:
        """Returns the contexts of walks from nodes.

        Args:
            batch (torch.Tensor): int64 ``[batch_size]``, the start of each
                walk.

        Returns:
            torch.Tensor: int64 ``[num_contexts, context_size]``, where
            ``num_contexts`` is ``batch_size * walks_per_node`` times the
            number of contexts of a walk.

        Raises:
            IndexError: If a node is not in the graph.
        """
        starts = batch.repeat(self.walks_per_node)
        if self.p == self.q == 1:
            walks = self.graph.random_walk(
                starts, self.walk_length, probs=self._probs
            )
        else:
            walks = self.graph.node2vec_walk(
                starts, self.walk_length, self.p, self.q, self._probs
            )
        return self._contexts(walks.nodes)

    def neg_sample(self, batch: Tensor) -> Tensor:
        """Returns contexts of nodes and uniformly drawn nodes.

        Args:
            batch (torch.Tensor): int64 ``[batch_size]``.

        Returns:
            torch.Tensor: int64 ``[num_contexts, context_size]``,
            ``num_negative_samples`` times as many as :meth:`pos_sample`.
        """
        starts = batch.repeat(self.walks_per_node * self.num_negative_samples)
        key, call_id = rng.current_program()
        drawn = ops.sample_nodes(
            self.num_nodes,
            starts.numel() * self.walk_length,
            key=key,
            call_id=call_id,
            replace=True,
        )
        drawn = drawn.view(starts.numel(), self.walk_length)
        return self._contexts(torch.cat([starts[:, None], drawn], dim=1))

    def sample(self, batch: list[int] | Tensor) -> tuple[Tensor, Tensor]:
        """Returns positive and negative contexts of nodes.

        Args:
            batch (List[int] or torch.Tensor): The nodes. In a batch of the
                loader, its index is the key of the draws.
        """
        nodes = torch.as_tensor(batch)
        number = rng.current_batch()
        if number is None:
            return self.pos_sample(nodes), self.neg_sample(nodes)
        with rng.program_scope(rng.make_key(self.seed, *number)):
            return self.pos_sample(nodes), self.neg_sample(nodes)

    def _contexts(self, walks: Tensor) -> Tensor:
        """Slides a window over walks: first those of all walks' starts."""
        windows = walks.unfold(1, self.context_size, 1).transpose(0, 1)
        return windows.reshape(-1, self.context_size)
