"""Errors of captures, whose messages depend on who failed."""

from torch._dynamo.exc import (  # noqa: F401  (for the compiler)
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    TorchDynamoException,
    TorchRuntimeError,
)
from torch.fx.experimental.symbolic_shapes import (  # noqa: F401
    GuardOnDataDependentSymNode,
    guard_or_false,
)
