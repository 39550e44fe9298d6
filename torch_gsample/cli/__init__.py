"""The commands of ``gsample``, a function each.

Parsed arguments come in, from :mod:`torch_gsample.cli.command`; an exit status
goes out, and what was found to standard output.
"""

from torch_gsample.cli.command import main as main
