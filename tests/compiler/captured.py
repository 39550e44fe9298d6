"""Programs that are captured once, and run as different passes leave them."""

import torch

from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options


class Captured:
    """A program that was captured: to capture it takes longer than the rest.

    Args:
        function (Callable): The program.
    """

    def __init__(self, function):
        torch._dynamo.reset()
        self._function = torch.compile(
            function, backend=self._keep, fullgraph=True
        )
        self._module = self._run = None

    def _keep(self, module, example_inputs):
        assert self._module is None, 'the program was captured again'
        self._module = module
        self.rewrite()
        return lambda *inputs: self._run(*inputs)

    def rewrite(self, **options):
        """Makes the next calls those after some passes, and returns the text.

        Args:
            options (Any): Options of the compiler.
        """
        options = Options.read({'strict': True, **options})
        program, trace = optimize(self._module, options)
        self._run = lower(program)
        return trace

    def __call__(self, *args):
        return self._function(*args)
