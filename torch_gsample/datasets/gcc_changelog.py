"""Changes of GCC's files by persons, with their times."""

from functools import cached_property

from torch_geometric.data import HeteroData

from torch_gsample.datasets.debian_packages import (
    Arrays,
    BundledDataset,
    edge_key,
    to_hetero_data,
    to_long,
)

CHANGED = ('person', 'changed', 'file')


class GccChangelog(BundledDataset):
    r"""Who changed which file of GCC on which day, from 1990-12-06 to
    2022-08-17, read from the 265 ChangeLog files of GCC 12.2.0.

    Each edge is one dated event: its :obj:`time` counts the days since
    1970-01-01, and edges are sorted by time (then by person, then by file).
    A person who changes a file again on another day gives another edge.
    The graph is meant for time-ordered sampling and link prediction, so split
    it by time; see the example.

    Files are labelled by their directory (:obj:`-1` if it has fewer than 200
    files). As the file name reveals the label, there is no split. Persons are
    ids without a name. No node has features.

    Args:
        root (str, optional): Folder for the processed graph, about 16 MB. If
            set to :obj:`None`, it is built in memory, and nothing is written
            to disk. (default: :obj:`None`)
        transform (callable, optional): A function that takes in the graph and
            returns a transformed version, called at every access.
            (default: :obj:`None`)
        pre_transform (callable, optional): A function that takes in the graph
            and returns a transformed version, called once when the graph is
            processed. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the graph again even
            if it is found in :obj:`root`. (default: :obj:`False`)

    Shapes:
        - :obj:`data["person", "changed", "file"].edge_index`: :obj:`int64`
          :math:`(2, 615096)`
        - :obj:`data["person", "changed", "file"].time`: :obj:`int64`
          :math:`(615096)`
        - :obj:`data["file"].y`: :obj:`int64` :math:`(113559)`

    The names of files and classes are attributes of the dataset
    (:obj:`file_names`, :obj:`class_names`), lists of strings that are decoded
    at the first access.

    **Example:**

    .. code-block:: python

        >>> from torch_gsample.datasets import GccChangelog
        >>> dataset = GccChangelog()
        >>> data = dataset[0]
        >>> events = data['person', 'changed', 'file']
        >>> cut = int(0.9 * events.num_edges)
        >>> past = events.time < events.time[cut]
        >>> events.edge_index[:, past].shape
        torch.Size([2, 553506])

    **STATS:**

    .. list-table::
        :widths: 10 10 10 10
        :header-rows: 1

        * - #persons
          - #files
          - #edges
          - #classes
        * - 3,810
          - 113,559
          - 615,096
          - 13

    **Source and terms:** The ChangeLog files of GCC are Copyright (C) Free
    Software Foundation, Inc. Copying and distribution of this file, with or
    without modification, are permitted in any medium without royalty provided
    the copyright notice and this notice are preserved.
    """

    file = 'gcc_changelog.npz'

    def _build(self, arrays: Arrays) -> HeteroData:
        data = to_hetero_data(arrays)
        time_key = edge_key(CHANGED).replace('edge/', 'time/')
        data[CHANGED].time = to_long(arrays[time_key])
        data['file'].y = to_long(arrays['y/file'])
        return data

    @cached_property
    def file_names(self) -> list[str]:
        """The path of each file, read at the first access."""
        return self._names('name/file')
