"""``python -m torch_gsample.cli``, where the command is not installed."""

import sys

from torch_gsample.cli.command import main

if __name__ == '__main__':
    sys.exit(main())
