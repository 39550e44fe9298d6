"""Serves predictions of a GNN over HTTP, each from a sampled neighbourhood.

.. code-block:: sh

    pip install fastapi uvicorn
    python examples/serve_predictions.py --port 8000
    curl localhost:8000/predict --json '{"nodes": [3, 14, 15]}'

Requests that arrive together are answered by one run of the model. With
``rng_scope='epoch'`` a node draws the same neighbours whatever else is asked,
so that an answer does not depend on who asks at the same time.
"""

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data

from torch_gsample import Blocks, NeighborSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader
from torch_gsample.ops import gather_rows
from torch_gsample.vertex.nn import SAGEConv

FANOUTS = [10, 5]


class SAGE(nn.Module):
    """Two layers of GraphSAGE over exact blocks."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.first = SAGEConv(in_channels, hidden)
        self.second = SAGEConv(hidden, out_channels)

    def forward(self, x: Tensor, blocks: Blocks) -> Tensor:
        """Returns the scores of the seeds, ``[num_seeds, out_channels]``."""
        first, second = blocks
        return self.second(self.first(x, first).relu(), second)


def train(model: SAGE, data: Data, epochs: int) -> None:
    """Trains for some epochs."""
    loader = NeighborLoader(
        data,
        FANOUTS,
        input_nodes=data.train_mask,
        batch_size=1024,
        shuffle=True,
        seed=0,
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.blocks)
            F.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            optimizer.step()


class Predictor:
    """Predicts the classes of nodes. Threads may call it at the same time.

    Args:
        model (torch.nn.Module): A model of features and blocks.
        data (Data): The graph.
    """

    def __init__(self, model: nn.Module, data: Data):
        self.model, self.x = model.eval(), data.x
        self.num_nodes = data.num_nodes
        self.sampler = NeighborSampler(
            data, FANOUTS, seed=0, rng_scope='epoch', num_threads=1
        )

    @torch.no_grad()
    def __call__(self, nodes: Tensor) -> Tensor:
        """Returns the class of each node, ``[num_nodes]``."""
        distinct, place = nodes.unique(return_inverse=True)
        sample = self.sampler.tensors(distinct)
        x = gather_rows(self.x, sample.node)
        return self.model(x, sample.blocks()).argmax(1)[place]


class Batcher:
    """Answers requests that arrive together by one call.

    Args:
        predict (Predictor): What answers.
        max_nodes (int): At most about this many nodes a call.
        wait (float): Seconds to wait for further requests.
    """

    def __init__(self, predict: Predictor, max_nodes: int, wait: float):
        self.predict, self.max_nodes, self.wait = predict, max_nodes, wait
        self.calls = 0
        self._waiting: asyncio.Queue[tuple[Tensor, asyncio.Future]]

    async def ask(self, nodes: Tensor) -> Tensor:
        """Returns the answer for some nodes."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((nodes, answer))
        return await answer

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers requests inside; those left at the end are refused."""
        self._waiting = asyncio.Queue()
        with ThreadPoolExecutor(1) as worker:
            task = asyncio.create_task(self._work(worker))
            try:
                yield
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                while not self._waiting.empty():
                    self._waiting.get_nowait()[1].cancel()

    async def _work(self, worker: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            requests = await self._together()
            nodes = [nodes for nodes, _ in requests]
            try:
                out = await loop.run_in_executor(
                    worker, self.predict, torch.cat(nodes)
                )
            except BaseException as error:
                for _, answer in requests:
                    if not answer.done():
                        answer.set_exception(_failure(error))
                if not isinstance(error, Exception):
                    raise
                continue
            self.calls += 1
            parts = out.split([len(part) for part in nodes])
            for (_, answer), part in zip(requests, parts, strict=True):
                if not answer.done():  # its client may have left
                    answer.set_result(part)

    async def _together(self) -> list[tuple[Tensor, asyncio.Future]]:
        """Returns a request, and those that follow it soon."""
        requests = [await self._waiting.get()]
        size, until = len(requests[0][0]), time.monotonic() + self.wait
        while size < self.max_nodes:
            left = until - time.monotonic()
            try:
                request = await asyncio.wait_for(self._waiting.get(), left)
            except asyncio.TimeoutError:
                break
            requests.append(request)
            size += len(request[0])
        return requests


def _failure(error: BaseException) -> Exception:
    return HTTPException(503 if not isinstance(error, Exception) else 500)


class Request(BaseModel):
    """Nodes to classify."""

    nodes: list[int]


class Answer(BaseModel):
    """Their classes."""

    classes: list[int]


def make_app(predict: Predictor, max_nodes: int, wait: float) -> FastAPI:
    """Returns the application."""
    batcher = Batcher(predict, max_nodes, wait)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with batcher.running():
            yield

    app = FastAPI(title='Predictions', lifespan=lifespan)
    app.state.batcher = batcher

    @app.post('/predict')
    async def answer(request: Request) -> Answer:
        nodes = request.nodes
        if not 1 <= len(nodes) <= max_nodes:
            raise HTTPException(422, f'ask for 1 to {max_nodes} nodes')
        if not all(0 <= node < predict.num_nodes for node in nodes):
            raise HTTPException(422, f'nodes are 0 to {predict.num_nodes - 1}')
        classes = await batcher.ask(torch.tensor(nodes))
        return Answer(classes=classes.tolist())

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--host', default='127.0.0.1')
    parser.add_argument('--port', type=int, default=8000)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--hidden', type=int, default=64)
    parser.add_argument('--max-nodes', type=int, default=256)
    parser.add_argument('--wait', type=float, default=0.002, help='seconds')
    args = parser.parse_args()
    seed_everything(0)
    dataset = DebianPackages(homogeneous=True, pre_transform=T.ToUndirected())
    data = dataset[0]
    model = SAGE(data.num_features, args.hidden, dataset.num_classes)
    train(model, data, args.epochs)
    app = make_app(Predictor(model, data), args.max_nodes, args.wait)
    uvicorn.run(app, host=args.host, port=args.port, log_level='warning')


if __name__ == '__main__':
    main()
