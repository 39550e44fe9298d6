"""Data sets that come with the package, and generators of random graphs.

Nothing is downloaded; the output is PyG data objects.
"""

from torch_gsample.datasets.debian_changelogs import write_debian_database
from torch_gsample.datasets.debian_packages import DebianPackages
from torch_gsample.datasets.gcc_changelog import GccChangelog
from torch_gsample.datasets.synthetic import power_law, power_law_edges, rmat

__all__ = [
    'DebianPackages',
    'GccChangelog',
    'power_law',
    'power_law_edges',
    'rmat',
    'write_debian_database',
]
