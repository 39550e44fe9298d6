"""Reports of fused models."""

import sys

from torch_gsample.fusion.calls import ALL, Layer, State, Step


def text_of(state: State) -> str:
    """Returns one line for each layer of a model."""
    lines = [f'{state.name}: {_summary(state)}']
    steps: dict[str, list[Step]] = {}
    for step in state.steps or []:
        steps.setdefault(step.layer, []).append(step)
    width = max((len(x.name) for x in state.layers), default=0)
    for layer in state.layers:
        parts = [
            _kind(state, layer),
            *_blocks(state, steps.get(layer.name, [])),
        ]
        lines.append(
            f'  {layer.name:{width}}  {layer.kind}: ' + ', '.join(parts)
        )
    for training, reason in sorted(state.refused.items()):
        mode = 'training' if training else 'evaluation'
        lines.append(f'  whole batches in {mode}: {reason}')
    return '\n'.join(lines)


def print_report(state: State) -> None:
    """Prints the report of a model."""
    print(f'fuse: {text_of(state)}', file=sys.stderr)


def _summary(state: State) -> str:
    fused = sum(
        layer.is_fused or _messages(state, layer)[0] for layer in state.layers
    )
    out = f'{fused} of {len(state.layers)} layers fused'
    if state.is_whole:
        return out
    if len(state.refused) == 2:
        return f'{out}, whole batches'
    if state.steps is None:
        return f'{out}, blocks from the first batch of {state.min_nodes} nodes'
    return f'{out}, blocks'


def _messages(state: State, layer: Layer) -> tuple[bool, str]:
    return state.messages.get(layer.name, (False, ''))


def _kind(state: State, layer: Layer) -> str:
    if layer.is_fused:
        return 'fused'
    is_fused, reason = _messages(state, layer)
    if is_fused:
        return 'messages fused'
    return f"PyG's ({reason or layer.note})"


def _blocks(state: State, steps: list[Step]) -> list[str]:
    """Describes the distinct calls of a layer."""
    if state.steps is None or len(state.refused) == 2:
        return []
    if not steps:
        return ['not called']
    out = []
    for step in steps:
        if step.form is None:
            out.append(f'whole batch ({step.note})')
        else:
            hops = f' of {step.num_hops} hops' if step.num_hops > 1 else ''
            out.append(f'exact block{hops}, computes {_nodes(step.level)}')
    return list(dict.fromkeys(out))


def _nodes(level: int | None) -> str:
    if not level:
        return 'the seeds'
    if level >= ALL:
        return 'all nodes'
    return f'the nodes of {level} hop{"s" if level > 1 else ""}'
