"""A benchmark of this machine, beside the samplers that are installed on it.

A few numbers come in; medians of candidates that took turns go out.
"""

from torch_gsample.bench.machine import machine, versions
from torch_gsample.bench.tasks import Row, run_tasks
from torch_gsample.bench.timing import Timing, compare

__all__ = ['Row', 'Timing', 'compare', 'machine', 'run_tasks', 'versions']
