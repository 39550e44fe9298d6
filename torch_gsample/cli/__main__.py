"""``python -m torch_gsample.cli``, the older form of ``-m torch_gsample``."""

import sys

from torch_gsample.cli.command import main

if __name__ == '__main__':
    sys.exit(main())
