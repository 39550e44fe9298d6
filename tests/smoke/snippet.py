"""Runs the first Python example of a page, as a user would who copies it."""

import re
import sys
from pathlib import Path

page = Path(sys.argv[1]).read_text()
exec(re.search(r'```python\n(.*?)```', page, re.DOTALL)[1])
