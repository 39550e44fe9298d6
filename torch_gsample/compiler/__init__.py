"""``torch.compile(sampler, backend='gsample')``: compiles sampling programs.

A graph captured by Dynamo comes in, a function goes out.
"""

from torch_gsample.compiler.backend import backend
from torch_gsample.compiler.compiled import Compiled, compile
from torch_gsample.compiler.errors import CompileError
from torch_gsample.compiler.explain import explain
from torch_gsample.compiler.explanation import Explanation
from torch_gsample.compiler.exported.program import (
    ExportedProgram,
    export,
    load_program,
)
from torch_gsample.compiler.options import Options

__all__ = [
    'CompileError',
    'Compiled',
    'Explanation',
    'ExportedProgram',
    'Options',
    'backend',
    'compile',
    'explain',
    'export',
    'load_program',
]
