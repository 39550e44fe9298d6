"""Errors of captures, which tell who failed, and conditions on sizes."""

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

__all__ = [
    'BackendCompilerFailed',
    'FailOnRecompileLimitHit',
    'GuardOnDataDependentSymNode',
    'TorchDynamoException',
    'TorchRuntimeError',
    'guard_or_false',
]
