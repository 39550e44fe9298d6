"""The commands of ``gsample``, one function each.

Their input is the arguments parsed by :mod:`torch_gsample.cli.command`; their
output is an exit status and the report on standard output.
"""

from torch_gsample.cli.command import main as main
