"""Databases as graphs, with batches of rows that were known at a time.

Tables with keys and times come in, PyG mini-batches and sequences go out.
"""

from torch_gsample.relational.append import append_tables
from torch_gsample.relational.compact import compact_tables
from torch_gsample.relational.contexts import Contexts, ContextSampler
from torch_gsample.relational.convert import convert_tables
from torch_gsample.relational.folder import TableFolder
from torch_gsample.relational.frames import TensorFrames
from torch_gsample.relational.loader import (
    RelationalLinkLoader,
    RelationalLoader,
    check_batch,
)
from torch_gsample.relational.schema import (
    ForeignKey,
    TableSchema,
    read_manifest,
)
from torch_gsample.relational.tables import RelationalData, from_tables
from torch_gsample.relational.tasks import (
    EntityTask,
    LinkTask,
    autocomplete,
)
from torch_gsample.relational.temporal_hooks import RecentNeighborHook
from torch_gsample.relational.temporal_negatives import (
    TemporalNegatives,
    TemporalNegativesHook,
)
from torch_gsample.relational.values import Values

__all__ = [
    'ContextSampler',
    'Contexts',
    'EntityTask',
    'ForeignKey',
    'LinkTask',
    'RecentNeighborHook',
    'RelationalData',
    'RelationalLinkLoader',
    'RelationalLoader',
    'TableFolder',
    'TableSchema',
    'TemporalNegatives',
    'TemporalNegativesHook',
    'TensorFrames',
    'Values',
    'append_tables',
    'autocomplete',
    'check_batch',
    'compact_tables',
    'convert_tables',
    'from_tables',
    'read_manifest',
]
