"""Errors of captures, whose messages depend on who failed."""

from torch._dynamo.exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    TorchDynamoException,
    TorchRuntimeError,
)
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    guard_or_false,
)
