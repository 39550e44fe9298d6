"""The chunked CSC format: layout of chunks, and description of a graph.

Descriptions come in, bytes of headers and the text of ``meta.json`` go out;
``docs/storage_format.md`` is the specification. `meta.py` reads them.
"""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from torch_gsample.storage.crc32c import BLOCK, crc32c

FORMAT = 'gsample chunked CSC'
#: Version 1 has a CRC-32 for each chunk, version 2 checksums of blocks.
VERSIONS = (1, 2)
#: The version of the layout of a chunk, the same in both.
CHUNK_VERSION = 1
MAGIC = b'gsCSCchk'
META = 'meta.json'

#: magic, version, widths of neighbours, edge ids, weights and times, zero;
#: start node, number of nodes, first edge, number of edges.
HEADER = struct.Struct('<8s6I4q')
#: Bound of the counts of nodes and edges: sums of bytes then fit in int64.
MAX_COUNT = 1 << 48
#: Alignment of the arrays of a chunk.
ITEM = 8

#: Columns of the chunk table; the last one exists only in version 1.
START, NODES, FIRST, EDGES, OFFSET, LENGTH, CHECKSUM = range(7)

#: Block indices of relation r start at r times this number, so a block of
#: another file has another checksum.
BLOCKS_OF_FILE = 1 << 40

WIDTHS = {
    'neighbor': (4, 8),
    'edge_id': (0, 4, 8),
    'weight': (0, 4, 8),
    'time': (0, 8),
}
_DTYPES = {
    ('offset', 8): '<i8',
    ('weight', 4): '<f4',
    ('weight', 8): '<f8',
}
#: The torch dtype of each NumPy dtype of an array.
TORCH = {'<i4': torch.int32, '<i8': torch.int64}
TORCH |= {'<f4': torch.float32, '<f8': torch.float64}


def malformed(
    path: Any, offset: int, rule: str, name: str = 'ChunkedGraph'
) -> NoReturn:
    """Raises the error of a file that breaks a rule of its format.

    Args:
        path (Path or Stripes): The file, or the stripes that map offsets to
            files.
        offset (int): The offset of the violation.
        rule (str): The rule.
        name (str): The class that read it.

    Raises:
        ValueError: Always; it names the file and the offset in it.
    """
    if hasattr(path, 'where'):
        path, offset = path.where(offset)
    raise ValueError(f'{name}: {path}, offset {offset}: {rule}')


def round_up(value: Any, multiple: int) -> Any:
    """Rounds ``value`` up to a multiple."""
    return (value + multiple - 1) // multiple * multiple


@dataclass
class RelationMeta:
    """One edge type on disk.

    Args:
        edge_type (Tuple[str, str, str], optional): Its name.
        file (str): Name of the file of its chunks.
        num_rows (int): Number of sources.
        num_cols (int): Number of destinations.
        num_edges (int): Number of edges.
        widths (Dict[str, int]): Bytes of an item of each array, 0 if absent:
            ``neighbor``, ``edge_id``, ``weight`` and ``time``.
        chunks (numpy.ndarray): int64 ``[num_chunks, 6]``, the chunk table
            (7 in version 1).
        number (int): Its index in the graph.
        checksum (int, optional): The checksum of its file of checksums.
    """

    edge_type: tuple[str, str, str] | None
    file: str
    num_rows: int
    num_cols: int
    num_edges: int
    widths: dict[str, int]
    chunks: np.ndarray
    number: int = 0
    checksum: int | None = None

    @property
    def table_file(self) -> str:
        """The name of the file with the checksums of its blocks."""
        return f'{Path(self.file).stem}.crc'

    def dtype(self, name: str) -> np.dtype:
        """Returns the dtype of an array."""
        width = 8 if name == 'offset' else self.widths[name]
        return np.dtype(_DTYPES.get((name, width), f'<i{width}'))

    def places(self, nodes: Any, edges: Any) -> dict[str, Any]:
        """Returns the offset of each array in a chunk, and its ``end``.

        Args:
            nodes (int or numpy.ndarray): Number of nodes of the chunk(s).
            edges (int or numpy.ndarray): Number of edges.
        """
        at = HEADER.size + 8 * (nodes + 1)
        places = {'offset': HEADER.size + 0 * nodes}
        for name in WIDTHS:
            places[name] = at
            at = at + round_up(self.widths[name] * edges, ITEM)
        places['end'] = at
        return places

    def header(self, chunk: int) -> bytes:
        """Returns the expected header of a chunk."""
        row = self.chunks[chunk].tolist()
        widths = [self.widths[name] for name in WIDTHS]
        return HEADER.pack(MAGIC, CHUNK_VERSION, *widths, 0, *row[:OFFSET])


@dataclass
class GraphMeta:
    """A graph on disk, as described in ``meta.json``.

    Args:
        node_types (List[str]): Their names, or ``[None]``.
        num_nodes (List[int]): The number of nodes of each.
        node_times (List[str]): The files of their times, or None.
        time_checksums (List[int]): The checksum of each of these files, or
            None in graphs of early versions.
        relations (List[RelationMeta]): The edge types.
        alignment (int): Chunks are padded to a multiple of it.
        version (int): The version of the format.
        generation (int): A random 64-bit number of this graph.
        directories (List[str]): Further directories with chunks.
        sizes (Dict[str, int]): Bytes of each file, summed over directories.
        further_files (Dict[str, int]): The checksums of further files in the
            folder.
    """

    node_types: list[str | None]
    num_nodes: list[int]
    node_times: list[str | None]
    time_checksums: list[int | None]
    relations: list[RelationMeta]
    alignment: int = 4096
    version: int = 2
    generation: int = 0
    directories: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    further_files: dict[str, int] = field(default_factory=dict)

    @property
    def block_bytes(self) -> int:
        """Bytes per checksum; chunks are multiples of it."""
        return min(self.alignment, BLOCK)

    def files(self, folder: Path, relation: RelationMeta) -> list[Path]:
        """Returns the file of a relation in each directory."""
        folders = [folder, *map(Path, self.directories)]
        return [path / relation.file for path in folders]

    def file_checksum(self, name: str, data: Any) -> int:
        """Returns the checksum of a file of this graph.

        Args:
            name (str): Its name.
            data (bytes or numpy.ndarray): Its contents.
        """
        return crc32c(data, self.file_seed(name))

    def file_seed(self, name: str) -> int:
        """Returns the start value of the checksum of a file."""
        return crc32c(f'{self.generation:016x} {name}'.encode())

    def dump(self) -> str:
        """Returns the text of ``meta.json``."""
        second = self.version > 1
        relations = [
            {
                'edge_type': relation.edge_type,
                'file': relation.file,
                'num_rows': relation.num_rows,
                'num_cols': relation.num_cols,
                'num_edges': relation.num_edges,
                'widths': relation.widths,
                'chunks': relation.chunks.tolist(),
                **({'checksum': relation.checksum} if second else {}),
            }
            for relation in self.relations
        ]
        out: dict[str, Any] = {
            'format': FORMAT,
            'version': self.version,
            'alignment': self.alignment,
            'node_types': self.node_types,
            'num_nodes': self.num_nodes,
            'node_times': self.node_times,
            'time_checksums': self.time_checksums,
            'relations': relations,
        }
        if not second:
            return json.dumps(out)
        out['generation'] = f'{self.generation:016x}'
        out['directories'] = self.directories
        if self.further_files:
            out['files'] = self.further_files
        return seal(out)


def seal(fields: dict[str, Any]) -> str:
    """Adds the checksum of its text to a JSON object."""
    text = json.dumps(fields)[:-1]
    return f'{text}, "checksum": {crc32c(text.encode())}}}'


def is_sealed(text: bytes) -> bool:
    """Whether the checksum at the end of a text is correct."""
    at = text.rfind(b', "checksum": ')
    end = f', "checksum": {crc32c(text[: max(at, 0)])}}}'
    return at > 0 and text[at:] == end.encode()
