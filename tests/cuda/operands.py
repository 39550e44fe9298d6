"""Moves the arguments of an operator, by the names of its schema."""

from torch.utils._pytree import tree_map


def is_key(argument):
    """Whether kernels are started with an argument, which stays on the CPU."""
    return argument.name in ('key', 'seed_ptr')


def placed(operator, args, kwargs, move):
    """The arguments of an operator, moved but for its keys."""
    schema = operator._schema.arguments
    named = {argument.name: argument for argument in schema}

    def put(argument, value):
        return value if is_key(argument) else tree_map(move, value)

    return (
        [put(a, value) for a, value in zip(schema, args, strict=False)],
        {name: put(named[name], kwargs[name]) for name in kwargs},
    )


def without_keys(operator, args, kwargs):
    """All values of the arguments of an operator but its keys."""
    found = []
    placed(operator, args, kwargs, found.append)
    return found
