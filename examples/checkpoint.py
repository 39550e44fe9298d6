"""Saves a training run, and goes on with it after it was killed.

``train_debian.py --resume PATH`` shows how.
"""

import os
from typing import Any

import torch


class Checkpoint:
    """Saves a run to a file, which is there as a whole or not at all.

    Args:
        path (str, optional): The file; nothing is saved without one.
        every (int): Save whenever this many batches are done.
        **parts (Any): What has a ``state_dict()``: model, loader, ...
    """

    def __init__(self, path: str | None, every: int, **parts: Any):
        self.path, self.every, self.parts = path, every, parts

    def save(self, **numbers: Any) -> None:
        """Writes the states of all parts, and where the run is."""
        if self.path is None:
            return
        states = {name: part.state_dict() for name, part in self.parts.items()}
        numbers['rng'] = torch.get_rng_state()  # of dropout
        torch.save({'parts': states, **numbers}, f'{self.path}.part')
        os.replace(f'{self.path}.part', self.path)

    def load(self) -> dict[str, Any]:
        """Sets all parts to what was saved; returns where the run was."""
        if self.path is None or not os.path.exists(self.path):
            return {}
        saved = torch.load(self.path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(saved['parts'][name])
        return saved
