"""Prepares the edges of one sample in a temporary folder.

A graph on disk costs a shuffle of all edges, as joins of them do; but then
tasks sample whole batches, and nothing that is drawn is shuffled.
"""

import atexit
import re
import tempfile
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.spark.batch_types import BatchTypes
from torch_gsample.spark.frames import DataFrame
from torch_gsample.spark.prepare import (
    CHUNK_BYTES,
    LEAST_EDGES,
    counted,
    write_relations,
)
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.chunk_writer import (
    new_directories,
    write_description,
)

#: Nodes for each edge above which a chunk table would be mostly empty.
_MOST_NODES = 4


class ScratchGraph:
    """A graph in a temporary folder.

    :meth:`remove` removes it, or the end of the process, or, if that was
    killed, the next process that makes such a folder.

    Args:
        parent (str): Where the folder is made.
    """

    graph: ChunkedGraph

    def __init__(self, parent: str):
        self._folder = OwnedFolder(parent, 'gsample-')
        self.path = self._folder.path / 'graph'
        atexit.register(self.remove)

    def remove(self) -> None:
        """Removes the folder; once is enough."""
        self._folder.remove()
        atexit.unregister(self.remove)


def prepared_here(
    op: str,
    types: BatchTypes,
    frames: list[DataFrame],
    least: Mapping[int, int],
) -> ScratchGraph | None:
    """Prepares edges in a temporary folder, if that is possible and cheap.

    All tasks must see the folder of the driver: they run in its process. The
    chunk table has a row for each node below the largest id, so most ids must
    have edges.

    Args:
        op (str): The operator, for errors.
        types (BatchTypes): Of the graph.
        frames (List[DataFrame]): The edges of each relation, checked.
        least (Dict[int, int]): Least numbers of nodes, by node type.
    """
    folder = _folder_of(frames[0].sparkSession)
    if folder is None:
        return None
    sizes, counts = counted(types, frames)
    for t, size in least.items():
        sizes[t] = max(sizes[t], size)
    for (_, target), count in zip(types.ends, counts, strict=True):
        if sizes[target] > _MOST_NODES * count + LEAST_EDGES:
            return None
    scratch = ScratchGraph(folder)
    try:
        with new_directories(scratch.path) as made:
            meta = write_relations(
                made, types, frames, sizes, counts, CHUNK_BYTES, op
            )
            write_description(made, meta, scratch.path)
        scratch.graph = ChunkedGraph(scratch.path)
    except BaseException:
        scratch.remove()
        raise
    return scratch


def _folder_of(session: SparkSession) -> str | None:
    """Returns the folder of Spark's own shuffles; None on a cluster."""
    try:
        context = session.sparkContext
    except (AttributeError, PySparkException):  # Spark Connect
        return None
    if not re.fullmatch(r'local(\[.*\])?', str(context.master)):
        return None
    found = context.getConf().get('spark.local.dir') or tempfile.gettempdir()
    return str(found).split(',')[0]
