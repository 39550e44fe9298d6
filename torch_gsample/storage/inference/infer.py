"""Full-graph inference: each layer for all nodes, before the next one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from torch_gsample.memory import bytes_of
from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.feature_format import DTYPES
from torch_gsample.storage.inference.budget import Budget
from torch_gsample.storage.inference.columns import in_degrees
from torch_gsample.storage.inference.hubs import splits
from torch_gsample.storage.inference.layer_file import LayerFile
from torch_gsample.storage.inference.problem import Problem
from torch_gsample.storage.inference.rows import FileRows, Rows
from torch_gsample.storage.inference.run import LayerRun
from torch_gsample.storage.inference.tiles import Tiles
from torch_gsample.storage.inference.work_folder import (
    WorkFolder,
    fingerprint_of_graph,
    fingerprint_of_model,
)
from torch_gsample.storage.read_model import DiskModel


def infer(
    model: nn.Module,
    graph: Any,
    features: Any,
    *,
    out: str | Path,
    layers: Iterable[Any] | None = None,
    edge_features: Any = None,
    memory: int | str = '2GiB',
    dtype: torch.dtype = torch.float32,
    num_threads: int | None = None,
    disk: DiskModel | None = None,
    direct: bool = False,
    progress: bool = False,
    restart: bool = False,
) -> FeatureFile | dict[str, FeatureFile]:
    r"""Computes a model's outputs for all nodes, in bounded memory.

    Layers run one after the other, each for all nodes and with all in-edges,
    like PyG's ``BasicGNN.inference``. The rows of a layer are written to a
    file next to the result. After a kill, a call with the same arguments
    resumes after the last chunk on disk.

    A call of a layer computes a tile: some thousands of destinations, with the
    distinct sources of their in-edges. Tiles depend only on the graph and the
    widths of rows, and one thread computes each. So the result has the same
    bits for any ``memory`` and ``num_threads``, if layers are functions of
    their arguments.

    Args:
        model (torch.nn.Module): The model, in evaluation mode and on the CPU:
            a :class:`~torch_geometric.nn.models.basic_gnn.BasicGNN`, a
            ``ModuleList`` or ``Sequential`` of layers, or any module with
            ``layers``.
        graph (ChunkedGraph or Any): The graph on disk, or in memory as for
            :func:`as_graph`.
        features (Any): A row for each node: a :class:`FeatureFile`, tensor,
            array or ``np.memmap``; a dictionary of these by node type; or
            a :class:`DiskFeatureStore` with the attribute ``'x'``. Rows are
            converted to the dtype of the parameters.
        out (str or Path): The file of the result, which must not exist; in a
            graph with types, a folder with a file for each type.
        layers (Iterable[Callable], optional): The layers of a model, one for
            each hop: PyG's layers, ``HeteroConv``, or functions ``layer((
            x_src, x_dst), edge_index)`` that return a row for each
            destination. In a graph with types, functions take dictionaries of
            both by edge type and return one by node type, for one destination
            type a call. Destinations are the first rows of the sources of
            their type. A tuple is a layer and functions of its rows:
            ``(conv, F.relu)``.
        edge_features (Any, optional): A row for each edge, in the graph's
            original order: weights or features, in any form of ``features``;
            in a graph with types, a dictionary by edge type. PyG's layers get
            them as ``edge_attr`` or ``edge_weight``, functions as a third
            argument.
        memory (int or str, optional): Maximum bytes, in addition to arguments
            in memory: a number or text such as ``'512MiB'``.
        dtype (torch.dtype, optional): The dtype of the result: float32,
            float16, bfloat16, or int8 with a scale for each row.
        num_threads (int, optional): Maximum number of tiles at a time;
            default: torch's number of threads.
        disk (DiskModel, optional): The cost of reads; measured if not given.
        direct (bool, optional): Whether to bypass the page cache for the files
            of layers, as in ``FeatureFile(direct=True)``.
        progress (bool, optional): Whether to show a progress bar.
        restart (bool, optional): Whether to start over, and remove the files
            of an interrupted call.

    Returns:
        FeatureFile or Dict[str, FeatureFile]: The result.

    Raises:
        FileExistsError: If ``out`` exists.
        OSError: If a file cannot be read or written; it names the file.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid, a file is damaged, a node does
            not fit in memory, or a call with other arguments left its files;
            the error names the rule.

    Example:
        >>> import tempfile
        >>> from torch_geometric.nn import GraphSAGE
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> model = GraphSAGE(8, 16, num_layers=2, out_channels=3).eval()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     x = FeatureFile.write(f'{folder}/x.gsf', torch.rand(4, 8))
        ...     infer(model, edges, x, out=f'{folder}/y.gsf').shape
        torch.Size([4, 3])
    """
    known = [kind for kind in DTYPES.values() if kind != torch.int64]
    if dtype not in known:
        raise ValueError(
            f"infer: 'dtype' must be one of {known} (got {dtype})"
        )
    limit = _positive('memory', bytes_of(memory, "infer: 'memory'"))
    threads = _positive('num_threads', num_threads or torch.get_num_threads())
    problem = Problem.read(model, graph, features, layers, edge_features)
    facts = {
        'model': fingerprint_of_model(model),
        'layers': [layer.name for layer in problem.layers],
        'graph': fingerprint_of_graph(problem.graph),
        'features': {
            str(kind): rows.fingerprint()
            for kind, rows in problem.features.items()
        },
        'edge_features': {
            str(relation): rows.fingerprint()
            for relation, rows in problem.edge_rows.items()
        },
        'dtype': str(dtype),
    }
    folder = WorkFolder(Path(out), facts, restart)
    try:
        if not folder.done:
            with tqdm(desc='infer', unit='row', disable=not progress) as bar:
                files = _Inference(
                    problem, folder, dtype, limit, threads, disk, direct, bar
                ).run()
            folder.publish(files)
        folder.remove()
        return folder.result([*problem.num_nodes])
    except BaseException:
        folder.remove_if_unused()
        raise
    finally:
        folder.close()


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f'infer: {name!r} must be positive (got {value})')
    return value


class _Inference:
    """Computes the layers of a problem one by one.

    Args:
        problem (Problem): The computation.
        folder (WorkFolder): The files of layers.
        dtype (torch.dtype): Of the result.
        limit (int): The memory.
        threads (int): The most threads.
        disk (DiskModel, optional): What reads cost.
        direct (bool): Whether to read past the page cache.
        bar (tqdm): Is told how many rows are complete.
    """

    def __init__(
        self,
        problem: Problem,
        folder: WorkFolder,
        dtype: torch.dtype,
        limit: int,
        threads: int,
        disk: DiskModel | None,
        direct: bool,
        bar: Any,
    ):
        self._problem, self._folder = problem, folder
        self._dtype, self._limit, self._threads = dtype, limit, threads
        self._disk, self._direct, self._bar = disk, direct, bar
        self._degree: dict[tuple[Any, bool], Tensor] = {}

    def run(self) -> dict[Any, Path]:
        """Computes all layers; returns the files of the last one."""
        problem, layers = self._problem, self._problem.layers
        kept = any(layer.reads_all for layer in layers)
        rows: dict[Any, Rows | LayerFile] = {**problem.features}
        before: list[dict[Any, LayerFile]] = []
        files: dict[Any, LayerFile] = {}
        self._bar.total = len(layers) * sum(problem.num_nodes.values())
        for i in range(len(layers)):
            last, old = i == len(layers) - 1, files
            files = {kind: self._file(i, kind, last) for kind in rows}
            for kind, file in files.items():
                self._bar.update(file.rows)
                if not file.whole:
                    self._compute(i, kind, rows, before, file)
            files = {k: file for k, file in files.items() if not file.absent}
            if not files:
                raise ValueError(
                    f'infer: layer {layers[i].name} returned no rows of any '
                    'type'
                )
            if not kept:
                for file in old.values():
                    file.path.unlink(missing_ok=True)
            rows = {**files}
            before.append(files)
        for file in files.values():
            file.open()  # one that a kill left may be damaged since
        return {kind: file.path for kind, file in files.items()}

    def _file(self, i: int, kind: Any, last: bool) -> LayerFile:
        name = f'layer-{i}-{[*self._problem.num_nodes].index(kind)}.gsf'
        dtype = self._dtype if last else None
        return LayerFile(self._folder.path, name, self._folder.journal, dtype)

    def _compute(
        self,
        i: int,
        target: Any,
        rows: dict[Any, Rows | LayerFile],
        before: list[dict[Any, LayerFile]],
        file: LayerFile,
    ) -> None:
        """Computes the missing rows of a layer for one type of nodes."""
        problem, layer = self._problem, self._problem.layers[i]
        into = [r for r in problem.relations if r[2] == target]
        known = [(t, src, c) for t, src, _, c in into if src in rows]
        kinds = {target, *(src for _, src, _ in known)}
        read = {k: self._opened(rows[k]) for k in rows if k in kinds}
        count = problem.num_nodes[target]
        widths = {k: r.numel * self._itemsize(r) for k, r in read.items()}
        edge_rows = {
            t: problem.edge_rows[t] for t, _, _ in known
            if t in problem.edge_rows
        }  # fmt: skip
        for relation, of_edges in edge_rows.items():
            widths[relation] = of_edges.numel * self._itemsize(of_edges)
        run = LayerRun(
            layer,
            target,
            Tiles(
                known,
                target,
                count,
                max(widths.values()),
                edge_rows,
                split=splits(layer),
            ),
            read,
            [self._opened(b[target]) for b in before]
            if layer.reads_all
            else [],
            {t: src for t, src, _, _ in into if src not in rows},
            {
                key: self._degrees(key)
                for key in layer.degrees
                if any(key[0] == relation for relation, _, _ in known)
            },
            problem.dtype,
            self._direct,
        )
        first = run.probe()
        if first is None:
            file.leave_out()
            return
        size = first[:1].numel() * first.element_size()
        extra = size + sum(r.row_bytes for r in run.before)
        read_rows = *read.values(), *run.before, *edge_rows.values()
        fixed = self._fixed(run, read_rows, count * size // 1024)
        budget = Budget(
            self._limit,
            fixed,
            run.tiles,
            read,
            max(size, *widths.values()),
            extra,
            self._threads,
            layer.name,
        )
        if not budget.resident:
            run.disk = self._model(read)
        run.compute_all(file, budget, self._bar.update)

    def _fixed(
        self, run: LayerRun, rows: Iterable[Rows], checksums: int
    ) -> dict[str, int]:
        """Returns the bytes of permanent allocations, by name."""
        return {
            'checksums and blocks that are read': sum(r.memory for r in rows),
            'checksums of the result': checksums,
            'edges that are read together': run.tiles.memory,
            'degrees': sum(d.nbytes for d in self._degree.values()),
        }

    def _opened(self, rows: Rows | LayerFile) -> Rows:
        return rows.open(self._direct) if isinstance(rows, LayerFile) else rows

    def _itemsize(self, rows: Rows) -> int:
        dtype = self._problem.dtype
        return 4 if dtype is None else dtype.itemsize

    def _degrees(self, key: tuple[Any, bool]) -> Tensor:
        """Returns the in-degrees by a relation, counted once."""
        if key not in self._degree:
            found = {
                t: columns for t, _, _, columns in self._problem.relations
            }
            self._degree[key] = in_degrees(found[key[0]], key[1])
        return self._degree[key]

    def _model(self, rows: dict[Any, Rows]) -> DiskModel:
        """Returns what reads cost, measured once."""
        files = [r.file for r in rows.values() if isinstance(r, FileRows)]
        if self._disk is None and files:
            largest = max(files, key=lambda f: len(f) * f.row_bytes)
            self._disk = DiskModel.calibrate(largest)
        return self._disk or DiskModel(1e-5, 2e9)
