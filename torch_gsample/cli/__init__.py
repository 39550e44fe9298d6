"""The commands of ``gsample``, a function each.

Parsed arguments come in, from the module ``gsample_cli``; an exit status goes
out, and what was found to standard output.
"""

from gsample_cli import main as main
