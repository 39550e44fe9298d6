"""``python -m torch_gsample``, where ``gsample`` is not on the path."""

import sys

from torch_gsample.cli.command import main

if __name__ == '__main__':
    sys.exit(main())
