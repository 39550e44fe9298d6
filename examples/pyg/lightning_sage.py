"""GraphSAGE under Lightning: PyG's ``LightningNodeData``.

.. code-block:: sh

    pip install pytorch-lightning
    gsample run examples/pyg/lightning_sage.py
    gsample run examples/pyg/lightning_sage.py --dataset reddit
"""

import sys

import torch
import torch.nn.functional as F
from common import load_graph, parse_args, share_of_largest_class
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.lightning import LightningNodeData
from torch_geometric.nn import GraphSAGE

try:
    import pytorch_lightning as pl
except ImportError as error:
    sys.exit(f'This needs Lightning: pip install pytorch-lightning ({error})')


class Model(pl.LightningModule):
    """What Lightning calls for each batch."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.gnn = GraphSAGE(in_channels, hidden, 2, out_channels, dropout=0.5)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        out = self.gnn(batch.x, batch.edge_index)
        return out[: batch.batch_size], batch.y[: batch.batch_size]

    def training_step(self, batch: Data, index: int) -> Tensor:
        loss = F.cross_entropy(*self(batch))
        self.log('loss', loss, batch_size=batch.batch_size)
        return loss

    def test_step(self, batch: Data, index: int) -> None:
        out, y = self(batch)
        accuracy = (out.argmax(dim=1) == y).float().mean()
        self.log('accuracy', accuracy, batch_size=batch.batch_size)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> None:
    args = parse_args('reddit')
    data, num_classes = load_graph(args)
    batches = LightningNodeData(
        data,
        input_train_nodes=data.train_mask,
        input_test_nodes=data.test_mask,
        loader='neighbor',
        num_neighbors=[25, 10],
        batch_size=args.batch_size,
        num_workers=args.workers,
    )
    model = Model(data.num_features, args.hidden, num_classes)
    trainer = pl.Trainer(
        accelerator='auto',
        devices=1,
        max_epochs=args.epochs,
        limit_train_batches=min(args.max_batches, 10**6),
        limit_test_batches=min(args.max_batches, 10**6),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
    )
    trainer.fit(model, batches)
    print(f'Loss {trainer.callback_metrics["loss"]:.4f}')
    (result,) = trainer.test(model, batches, verbose=False)
    share = share_of_largest_class(data.y, data.train_mask, data.test_mask)
    print(f'Largest class: test accuracy {share:.4f}')
    print(f'GraphSAGE: test accuracy {result["accuracy"]:.4f}')


if __name__ == '__main__':
    main()
