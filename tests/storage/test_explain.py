"""The docs show what a plan of reads explains."""

import re
from pathlib import Path

from torch_gsample.storage import DiskModel
from torch_gsample.storage.read_model import Reads
from torch_gsample.storage.read_plan import ReadPlan


def test_the_table_in_the_docs_is_one_of_explain():
    """Its numbers are read, and written again."""
    page = (Path(__file__).parents[2] / 'docs/storage.md').read_text()
    text = page.partition('```\ndisk: ')[2].partition('\n```')[0]
    text = f'disk: {text}'
    disk, memory, _, *rows, measured = text.splitlines()
    request, *rates, row = map(float, re.findall(r'(\d+\.\d+) [uG]', disk))
    plan = object.__new__(ReadPlan)
    read, scanned, written = (1e9 * rate for rate in rates)
    model = DiskModel(request / 1e6, read, written, scanned, row / 1e6)
    plan.models = {(None, 'x'): model}
    parts = re.findall(r'([a-z][a-z, ]*) (\d+\.\d+) MB', memory)
    plan.memory = {name: int(float(mb) * 1e6) for name, mb in parts}
    plan.budget = plan.memory.pop('rows and samples')
    plan.expected = {}
    for line in rows:
        name, batches, *numbers = line.split()[:7]
        requests, *mb, ms = map(float, numbers)
        size, scan, write = (x * 1e6 for x in mb)
        reads = Reads(requests, size, write, scan)
        plan.expected[name] = int(batches), reads, ms / 1e3
        if line.endswith('<- chosen'):
            plan.plan = name
    seconds = float(measured.split()[1]) / 1e3
    plan.measured = lambda: seconds
    assert list(plan.expected) == ['single', 'hot', 'window', 'packed']
    assert plan.explain() == text
